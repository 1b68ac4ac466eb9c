//! Signatures of OCI artifacts and OCI charts: cosign and notation.
//!
//! In: the repository, the digest of the manifest, `spec.verify` ([`ArtifactVerification`], which a chart's converts
//! into) and what its Secrets hold ([`Material`]). Out: an [`Outcome`]. Signatures are looked for in the same repository,
//! and nothing else is asked over the network. What signatures mean is the crate `signature`'s.

use api::source::{ArtifactVerification, SignatureProvider};
use artifact::digest::Digest;

use crate::fetch::git::auth::SecretData;
use crate::fetch::oci::registry::{self, Repository};
use crate::reconcile::observe::{ReadError, Reader};

/// What a verification that did not fail came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(dead_code, reason = "the providers come next")]
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
    /// The registry could not be asked for signatures.
    #[expect(dead_code, reason = "the providers come next")]
    #[error("failed to look for signatures of '{reference}'")]
    Find {
        /// The artifact.
        reference: String,
        /// What the registry answered.
        #[source]
        source: registry::Error,
    },
    /// Better said than passed over.
    #[error("{what} is not supported by this controller yet")]
    Unsupported {
        /// Which verification.
        what: &'static str,
    },
}

/// What the Secrets of `spec.verify` hold.
#[derive(Clone, Default)]
pub(crate) struct Material {
    /// Of `secretRef`: public keys, or certificates and a trust policy.
    pub(crate) secret: Option<SecretData>,
    /// Of `trustedRootSecretRef`: a Sigstore installation of one's own.
    pub(crate) trusted_root: Option<SecretData>,
}

/// Reads the Secrets that `spec.verify` names.
pub(crate) async fn read(
    specification: &ArtifactVerification,
    reader: &Reader<'_>,
) -> Result<Material, Error> {
    let mut material = Material::default();
    if let Some(reference) = &specification.secret_ref {
        material.secret = Some(reader.secret(&reference.name).await?);
    }
    if let Some(reference) = &specification.trusted_root_secret_ref {
        material.trusted_root = Some(reader.secret(&reference.name).await?);
    }
    Ok(material)
}

/// Verifies that the manifest with this digest has the signature that the spec demands.
pub(crate) async fn verify(
    _repository: &Repository,
    _digest: Digest,
    specification: &ArtifactVerification,
    _material: &Material,
) -> Result<Outcome, Error> {
    match specification.provider {
        SignatureProvider::Cosign => Err(Error::Unsupported {
            what: "spec.verify.provider 'cosign'",
        }),
        SignatureProvider::Notation => Err(Error::Unsupported {
            what: "spec.verify.provider 'notation'",
        }),
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
