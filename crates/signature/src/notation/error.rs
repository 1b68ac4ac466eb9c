//! Errors of verifying a notation signature.

/// A signature that is not good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Neither JWS nor COSE.
    #[error("signature envelope format with media type \"{0}\" is not supported")]
    MediaType(String),
    /// The envelope is none, or was not made with the key of its certificate.
    #[error("{0}")]
    Integrity(String),
    /// No certificate of the chain is trusted.
    #[error("the signature's certificate chain does not contain any trusted certificate")]
    Untrusted,
    /// There is nothing to trust.
    #[error("{0}")]
    Authenticity(String),
    /// The signature is no longer good.
    #[error("digital signature has expired on \"{0}\"")]
    Expired(String),
    /// A certificate was not valid when it mattered.
    #[error("{0}")]
    Time(String),
    /// Whether a certificate was revoked is not known.
    #[error(
        "signing certificate with subject \"{0}\" revocation status is unknown: it would have to be asked for over the network"
    )]
    Revocation(String),
    /// The signature needs a program of its maker's.
    #[error("plugin unsupported: the signature demands the verification plugin \"{0}\"")]
    Plugin(String),
    /// The signature is about something else.
    #[error("content descriptor mismatch")]
    Descriptor,
}
