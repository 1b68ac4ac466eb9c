//! Errors of verifying an OCI artifact.

use artifact::digest::Digest;
use oci_client::PullError;
use oci_client::registry::Repository;

use remote_access::error::ReadError;

/// A signature that is not there, or not good. Each caller says which object it is about.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A Secret that `spec.verify` names.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A Secret without what must be in it.
    #[error("'{key}' not found in secret '{secret}'")]
    MissingKey {
        /// The key.
        key: &'static str,
        /// Namespace and name.
        secret: String,
    },
    /// A public key that is none.
    #[error("failed to parse the public key '{key}' of secret '{secret}'")]
    ParseKey {
        /// Its name in the Secret.
        key: String,
        /// Namespace and name.
        secret: String,
        /// Why not.
        #[source]
        source: signature::cosign::KeyError,
    },
    /// The file of `--sigstore-trusted-root` cannot be read.
    #[error("failed to read the trusted root of Sigstore, '{path}' (--sigstore-trusted-root)")]
    ReadRoot {
        /// The flag's value.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Identities or a trusted root that make no sense.
    #[error(transparent)]
    Trust(signature::cosign::Error),
    /// Notation has no way without a Secret.
    #[error("verification secret cannot be empty: '{reference}'")]
    MissingSecret {
        /// The artifact.
        reference: String,
    },
    /// A trust policy or certificates that make no sense.
    #[error(transparent)]
    Policy(signature::notation::PolicyError),
    /// No certificate to trust.
    #[error("no certificates found in secret '{secret}'")]
    NoCertificates {
        /// Namespace and name.
        secret: String,
    },
    /// The registry could not be asked for signatures.
    #[error("failed to look for signatures of '{reference}'")]
    Find {
        /// The artifact.
        reference: String,
        /// Error of the registry.
        #[source]
        source: PullError,
    },
    /// No signature is good.
    #[error("no matching signatures were found for '{reference}'")]
    NoMatch {
        /// The artifact.
        reference: String,
        /// Why the last one is not, or that there is none.
        #[source]
        source: Cause,
    },
    /// No attestation is good.
    #[error(transparent)]
    NoAttestation(Box<NoAttestation>),
}

/// An attestation that is not there, or not good.
#[derive(Debug, thiserror::Error)]
#[error("no matching attestation of type '{predicate_type}' was found for '{reference}'")]
pub struct NoAttestation {
    reference: String,
    predicate_type: String,
    source: Cause,
}

/// Why an artifact counts as not signed.
#[derive(Debug, thiserror::Error)]
pub enum Cause {
    /// It has no signature.
    #[error("no signatures found")]
    Unsigned,
    /// It has no attestation of this type.
    #[error("none of this type found")]
    NotAttested,
    /// An attestation is good, but what it says is not what is demanded.
    #[error("{0}")]
    Predicate(String),
    /// There is no one whose signature would be good.
    #[error("secret '{secret}' has no key with the ending '.pub'")]
    NoKeys {
        /// Namespace and name.
        secret: String,
    },
    /// It has one of cosign.
    #[error(transparent)]
    Cosign(#[from] signature::cosign::Error),
    /// It has one of notation.
    #[error(transparent)]
    Notation(#[from] signature::notation::Error),
    /// More signatures than are looked at.
    #[error(
        "signature evaluation stopped. The configured limit of {limit} signatures to verify per artifact exceeded"
    )]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

impl Cause {
    /// How much the cause helps whoever reads the message: of several attestations, the one with the highest rank is reported.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::Predicate(_) => 3,
            Self::Cosign(signature::cosign::Error::PredicateType { .. }) => 0,
            Self::NotAttested => 1,
            _ => 2,
        }
    }
}

impl Error {
    /// Returns whether the artifact lacks what is demanded, which it may get later.
    pub fn is_about_the_artifact(&self) -> bool {
        matches!(self, Self::NoMatch { .. } | Self::NoAttestation(_))
    }

    /// Returns whether nothing but a change of the object helps.
    pub fn is_about_the_spec(&self) -> bool {
        match self {
            Self::Trust(error) => matches!(error, signature::cosign::Error::ParseIdentity { .. }),
            Self::MissingSecret { .. } => true,
            _ => false,
        }
    }
}

/// The artifact as people write it.
pub(crate) fn reference(repository: &Repository, digest: Digest) -> String {
    repository.name.pinned(&digest.to_string())
}

pub(crate) fn not_found(repository: &Repository, digest: Digest, source: impl Into<PullError>) -> Error {
    Error::Find {
        reference: reference(repository, digest),
        source: source.into(),
    }
}

pub(crate) fn no_match(repository: &Repository, digest: Digest, source: Cause) -> Error {
    Error::NoMatch {
        reference: reference(repository, digest),
        source,
    }
}

pub(crate) fn no_attestation(
    repository: &Repository,
    digest: Digest,
    predicate_type: &str,
    source: Cause,
) -> Error {
    Error::NoAttestation(Box::new(NoAttestation {
        reference: reference(repository, digest),
        predicate_type: predicate_type.to_owned(),
        source,
    }))
}
