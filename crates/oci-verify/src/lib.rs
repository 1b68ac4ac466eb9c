//! Signatures of what is in OCI registries, artifacts, charts and images: cosign and notation.
//!
//! In: the repository, the digest of the manifest, `spec.verify` ([`ArtifactVerification`], which a chart's converts
//! into) and what its Secrets hold ([`Material`]). Out: an [`Outcome`]. Attestations of cosign are verified the same way ([`verify_attestations`]). Signatures are looked for in the same repository,
//! and nothing else is asked over the network, but for the roots of Sigstore ([`sigstore_root`]). What signatures mean is the crate `signature`'s.

mod attestations;
mod cosign;
mod error;
mod flags;
mod material;
mod notation;
mod sigstore_root;
mod statement;
mod trust;

use api::source::{ArtifactVerification, SignatureProvider};
use artifact::digest::Digest;
use material::read_secret;
use oci_client::registry::Repository;
use remote_access::Reader;

pub use attestations::{AttestationDemand, verify_attestations};
pub use error::{Cause, Error};
pub use flags::{InvalidMirror, SigstoreFlags};
pub use material::{Material, NamedSecret, Outcome};
pub use signature::cosign::Attested;
pub use sigstore_root::SigstoreRoot;
pub use statement::{PREDICATE, Statement};

/// Reads the Secrets that `spec.verify` names.
///
/// # Errors
/// When one of them cannot be read.
pub async fn read(specification: &ArtifactVerification, reader: &Reader) -> Result<Material, Error> {
    let mut material = Material::default();
    if let Some(reference) = &specification.secret_ref {
        material.secret = Some(read_secret(reader, &reference.name).await?);
    }
    if let Some(reference) = &specification.trusted_root_secret_ref {
        material.trusted_root = Some(read_secret(reader, &reference.name).await?);
    }
    Ok(material)
}

/// Verifies that the manifest with this digest has the signature that the spec demands.
///
/// # Errors
/// When it has none that is good, when the registry cannot be asked, and when the demand makes no sense.
pub async fn verify(
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
pub fn provider(specification: &ArtifactVerification) -> &'static str {
    match (specification.provider, &specification.secret_ref) {
        (SignatureProvider::Cosign, None) => "cosign keyless",
        (SignatureProvider::Cosign, Some(_)) => "cosign",
        (SignatureProvider::Notation, _) => "notation",
    }
}

#[cfg(test)]
mod tests;
