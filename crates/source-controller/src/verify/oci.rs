//! Signatures of OCI artifacts and OCI charts: cosign and notation.
//!
//! In: the repository, the digest of the manifest, `spec.verify` ([`ArtifactVerification`], which a chart's converts
//! into) and what its Secrets hold ([`Material`]). Out: an [`Outcome`]. Signatures are looked for in the same repository,
//! and nothing else is asked over the network, but for the roots of Sigstore ([`sigstore_root`]). What signatures mean is the crate `signature`'s.

mod cosign;
mod notation;
mod sigstore_root;

use api::source::{ArtifactVerification, SignatureProvider};
use artifact::digest::Digest;

use crate::reconcile::observe::{ReadError, Reader};
use oci_client::PullError;
use oci_client::registry::Repository;
use transport::auth::SecretData;

pub(crate) use sigstore_root::SigstoreRoot;

/// Result of a verification that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Somebody trusted signed it.
    Verified,
    /// Nobody asked: the trust policy of notation lets it pass unverified. It is not to be called verified.
    Ignored,
}

/// A signature that is not there, or not good. Each caller says which object it is about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
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
}

/// Why an artifact counts as not signed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Cause {
    /// It has no signature.
    #[error("no signatures found")]
    Unsigned,
    /// There is nobody whose signature would be good.
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

impl Error {
    /// Returns whether nothing but a change of the object helps.
    pub(crate) fn is_about_the_spec(&self) -> bool {
        match self {
            Self::Trust(error) => matches!(error, signature::cosign::Error::ParseIdentity { .. }),
            Self::MissingSecret { .. } => true,
            _ => false,
        }
    }
}

/// Contents of the Secrets of `spec.verify`.
#[derive(Clone, Default)]
pub(crate) struct Material {
    /// Of `secretRef`: public keys, or certificates and a trust policy.
    pub(crate) secret: Option<NamedSecret>,
    /// Of `trustedRootSecretRef`: a Sigstore installation of one's own.
    pub(crate) trusted_root: Option<NamedSecret>,
}

/// A Secret as it was read.
#[derive(Clone)]
pub(crate) struct NamedSecret {
    /// Namespace and name, for messages.
    pub(crate) name: String,
    pub(crate) data: SecretData,
}

impl NamedSecret {
    fn get(&self, key: &'static str) -> Result<&[u8], Error> {
        let value = self.data.get(key).map(Vec::as_slice);
        value.ok_or_else(|| Error::MissingKey {
            key,
            secret: self.name.clone(),
        })
    }
}

/// Reads the Secrets that `spec.verify` names.
pub(crate) async fn read(
    specification: &ArtifactVerification,
    reader: &Reader<'_>,
) -> Result<Material, Error> {
    let mut material = Material::default();
    if let Some(reference) = &specification.secret_ref {
        material.secret = Some(read_secret(reader, &reference.name).await?);
    }
    if let Some(reference) = &specification.trusted_root_secret_ref {
        material.trusted_root = Some(read_secret(reader, &reference.name).await?);
    }
    Ok(material)
}

async fn read_secret(reader: &Reader<'_>, name: &str) -> Result<NamedSecret, ReadError> {
    Ok(NamedSecret {
        name: format!("{}/{name}", reader.namespace()),
        data: reader.secret(name).await?,
    })
}

/// Verifies that the manifest with this digest has the signature that the spec demands.
pub(crate) async fn verify(
    repository: &Repository,
    digest: Digest,
    specification: &ArtifactVerification,
    material: &Material,
    sigstore: &SigstoreRoot,
) -> Result<Outcome, Error> {
    match specification.provider {
        SignatureProvider::Cosign => {
            cosign::verify(repository, digest, specification, material, sigstore).await
        }
        SignatureProvider::Notation => notation::verify(repository, digest, material).await,
    }
}

/// The provider in the words of Flux's messages: "cosign", "cosign keyless", "notation".
pub(crate) fn provider(specification: &ArtifactVerification) -> &'static str {
    match (specification.provider, &specification.secret_ref) {
        (SignatureProvider::Cosign, None) => "cosign keyless",
        (SignatureProvider::Cosign, Some(_)) => "cosign",
        (SignatureProvider::Notation, _) => "notation",
    }
}

/// The artifact as people write it.
fn reference(repository: &Repository, digest: Digest) -> String {
    repository.name.pinned(&digest.to_string())
}

fn not_found(repository: &Repository, digest: Digest, source: impl Into<PullError>) -> Error {
    Error::Find {
        reference: reference(repository, digest),
        source: source.into(),
    }
}

fn no_match(repository: &Repository, digest: Digest, source: Cause) -> Error {
    Error::NoMatch {
        reference: reference(repository, digest),
        source,
    }
}

#[cfg(test)]
mod tests;
