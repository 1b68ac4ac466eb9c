//! Attestations of cosign: which an artifact has, and whether one of each demanded type is good.

use std::sync::{Mutex, PoisonError};

use api::source::ArtifactVerification;
use artifact::digest::Digest;
use jiff::Timestamp;
use oci_client::PullError;
use oci_client::manifest::{Descriptor, Manifest};
use oci_client::registry::Repository;
use signature::cosign::{Attestation, Attested, is_attestation};

use super::SigstoreRoot;
use super::cosign::{bundles, layers, witness};
use super::error::{Cause, Error, no_attestation, not_found};
use super::material::{Material, Outcome};
use super::trust::Trust;

/// Annotations with the type of an attestation, of the manifest of a bundle and of a layer of `sha256-<hex>.att`.
const BUNDLE_TYPE: &str = "dev.sigstore.bundle.predicateType";
const LAYER_TYPE: &str = "predicateType";

/// Held by who judges attestations: what a few megabytes of JSON become takes a hundred times as much memory, and the owner of the
/// registry chooses them. They are judged one after the other in a process.
static TURN: Mutex<()> = Mutex::new(());

/// What an artifact must have been attested.
pub struct AttestationDemand<'a> {
    /// The type, such as `https://slsa.dev/provenance/v1`.
    pub predicate_type: &'a str,
    /// By whom: keys or identities, as for a signature.
    pub specification: &'a ArtifactVerification,
    /// What its Secrets hold.
    pub material: &'a Material,
    /// Judges what a good attestation says, and when: Err with the reason if that is not enough.
    pub is_met: &'a (dyn Fn(&Attested) -> Result<(), String> + Sync),
}

/// Verifies that the manifest with this digest has an attestation of each demand. Of several with one type, one is enough.
/// Returns when the first of them was recorded.
///
/// # Errors
/// When one has none that is good, when the registry cannot be asked, and when a demand makes no sense.
pub async fn verify_attestations(
    repository: &Repository,
    digest: Digest,
    demands: &[AttestationDemand<'_>],
    sigstore: &SigstoreRoot,
) -> Result<Outcome, Error> {
    let mut trusts = Vec::new();
    for demand in demands {
        let (specification, material) = (demand.specification, demand.material);
        trusts.push(Trust::read(repository, digest, specification, material, sigstore).await?);
    }
    let found = find(repository, digest, demands).await;
    let found = found.map_err(|source| not_found(repository, digest, source))?;
    // Nothing is awaited from here on.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut recorded_at: Option<Timestamp> = None;
    for (demand, trust) in demands.iter().zip(&trusts) {
        let attested = check(&found, demand, trust, digest);
        let attested =
            attested.map_err(|cause| no_attestation(repository, digest, demand.predicate_type, cause))?;
        recorded_at = recorded_at.into_iter().chain(attested.verified.recorded_at).min();
    }
    Ok(Outcome::Verified { recorded_at })
}

fn check(
    found: &[Attestation],
    demand: &AttestationDemand<'_>,
    trust: &Trust,
    digest: Digest,
) -> Result<Attested, Cause> {
    let digest = digest.to_string();
    let mut cause = Cause::NotAttested;
    for authority in trust.authorities() {
        for attestation in found {
            let attested = authority.verify_attestation(attestation, &digest, demand.predicate_type);
            let refused = match attested {
                Ok(attested) => match (demand.is_met)(&attested) {
                    Ok(()) => return Ok(attested),
                    Err(reason) => Cause::Predicate(reason),
                },
                Err(error) => Cause::Cosign(error),
            };
            if refused.rank() >= cause.rank() {
                cause = refused;
            }
        }
    }
    Err(cause)
}

/// Those that are not of another type by their own words. They are small beside lists of what an image contains.
async fn find(
    repository: &Repository,
    digest: Digest,
    demands: &[AttestationDemand<'_>],
) -> Result<Vec<Attestation>, PullError> {
    let is_demanded = |kind: &str| demands.iter().any(|demand| demand.predicate_type == kind);
    let is_wanted_bundle = |manifest: &Manifest| {
        let annotations = manifest.annotations();
        annotations.get(BUNDLE_TYPE).is_none_or(|kind| is_demanded(kind))
    };
    let is_wanted_layer = |layer: &Descriptor| layer.annotation(LAYER_TYPE).is_none_or(is_demanded);
    let bundles = bundles(repository, digest, is_wanted_bundle).await?;
    let bundles = bundles.into_iter().filter(|json| is_attestation(json));
    let bundles = bundles.map(|json| Attestation::Bundle(json.to_vec()));
    let layers = layers(repository, digest, "att", is_wanted_layer).await?;
    let layers = layers.into_iter().map(|(layer, json)| Attestation::Envelope {
        json,
        witness: witness(&layer),
    });
    Ok(bundles.chain(layers).collect())
}
