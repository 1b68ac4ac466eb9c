//! Errors of verifying a cosign signature.

/// A signature that is not good, or a demand that makes no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A description of a Sigstore installation that cannot be used.
    #[error("unable to parse trusted root: {0}")]
    ParseTrustedRoot(String),
    /// A pattern for identities that is none.
    #[error("malformed {what} in identity: {expression}")]
    ParseIdentity {
        /// "issuer" or "subject".
        what: &'static str,
        /// As given.
        expression: String,
        /// Why not.
        #[source]
        source: go_regexp::Error,
    },
    /// A part of the signature that cannot be read.
    #[error("failed to parse {what}")]
    Parse {
        /// Which part.
        what: &'static str,
    },
    /// A part that must be there.
    #[error("no {what} found on signature")]
    Missing {
        /// Which part.
        what: &'static str,
    },
    /// A form of bundle that says nothing about images.
    #[error("bundle does not contain a DSSE envelope")]
    NotAStatement,
    /// It says something about the artifact, and not that it is signed.
    #[error("the bundle is an attestation of type '{predicate_type}', and no signature")]
    Attestation {
        /// As the statement has it.
        predicate_type: String,
    },
    /// It says something else of the artifact than what is asked for.
    #[error("the attestation is of type '{found}'")]
    PredicateType {
        /// As the statement has it.
        found: String,
    },
    /// The signature is about something else.
    #[error("invalid or missing digest in claim: '{found}' instead of '{expected}'")]
    MatchDigest {
        /// Digest in the signature.
        found: String,
        /// Expected digest.
        expected: String,
    },
    /// It was not made with this key.
    #[error("invalid signature when validating with the public key")]
    VerifyWithKey,
    /// Certificate, log entry, time or signature are not good.
    #[error("{0}")]
    VerifyKeyless(String),
    /// It was made by someone else.
    #[error(
        "none of the expected identities matched what was in the certificate, got subjects [{subjects}] with \
         issuer {issuer}"
    )]
    MatchIdentity {
        /// Subjects of the certificate.
        subjects: String,
        /// Issuer of the certificate.
        issuer: String,
    },
}

impl Error {
    /// Returns whether only a change of what is trusted helps: no other signature would be good either.
    #[must_use]
    pub fn is_about_trust(&self) -> bool {
        matches!(self, Self::ParseTrustedRoot(_) | Self::ParseIdentity { .. })
    }
}
