//! Cosign: which signatures an artifact has, and whether one of them is good.
//!
//! Bundles that refer to the manifest come first. Where there are none, the image with the tag `sha256-<hex>.sig` is
//! looked for. As in Flux, an artifact with bundles of which none is good is not verified by its older signatures.

use api::source::ArtifactVerification;
use artifact::digest::Digest;
use oci_client::manifest::{Descriptor, Manifest};
use oci_client::registry::Repository;
use oci_client::{PullError, verified_manifest};
use signature::cosign::{Authority, SimpleSignature, Verified, Witness, is_attestation, is_bundle};

use super::SigstoreRoot;
use super::error::{Cause, Error, no_match, not_found};
use super::material::{Material, Outcome};
use super::trust::Trust;

/// Signatures of one artifact that are looked at.
const MAX_SIGNATURES: usize = 50;
/// A bundle is a few kilobytes, with an attestation perhaps some more; a payload is less than one.
const MAX_SIGNATURE_BYTES: u64 = 4 << 20;
/// Bytes of all of them together: when there are more, the rest is not looked at.
const MAX_BYTES: usize = 16 << 20;
const BUNDLE_LAYER: &str = "application/vnd.dev.sigstore.bundle";
/// Annotation of a layer with its signature.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";

/// The signatures of an artifact, in one of the two forms.
enum Signatures {
    Bundles(Vec<bytes::Bytes>),
    Simple(Vec<SimpleSignature>),
}

pub(crate) async fn verify(
    repository: &Repository,
    digest: Digest,
    specification: &ArtifactVerification,
    material: &Material,
    sigstore: &SigstoreRoot,
) -> Result<Outcome, Error> {
    // What is wrong with the demand is said before anybody is asked.
    let trust = Trust::read(repository, digest, specification, material, sigstore).await?;
    let signatures = find(repository, digest).await?;
    check(&signatures, &trust.authorities(), digest).map_err(|cause| no_match(repository, digest, cause))
}

/// One good signature of one authority is enough.
fn check(signatures: &Signatures, authorities: &[Authority<'_>], digest: Digest) -> Result<Outcome, Cause> {
    let digest = digest.to_string();
    let mut cause = Cause::Unsigned;
    for authority in authorities {
        let verdicts: Box<dyn Iterator<Item = Result<Verified, signature::cosign::Error>> + '_> =
            match signatures {
                Signatures::Bundles(bundles) => {
                    Box::new(bundles.iter().map(|json| authority.verify_bundle(json, &digest)))
                }
                Signatures::Simple(simple) => {
                    Box::new(simple.iter().map(|one| authority.verify_simple(one, &digest)))
                }
            };
        for verdict in verdicts {
            match verdict {
                Ok(Verified { recorded_at }) => return Ok(Outcome::Verified { recorded_at }),
                Err(error) => cause = Cause::Cosign(error),
            }
        }
    }
    Err(cause)
}

async fn find(repository: &Repository, digest: Digest) -> Result<Signatures, Error> {
    let failed = |source: PullError| not_found(repository, digest, source);
    let bundles = bundles(repository, digest, |_| true).await.map_err(failed)?;
    let (attestations, bundles): (Vec<_>, Vec<_>) =
        bundles.into_iter().partition(|json| is_attestation(json));
    if !bundles.is_empty() {
        return Ok(Signatures::Bundles(bundles));
    }
    let simple = simple_signatures(repository, digest).await.map_err(failed)?;
    // Where there is nothing else, the message says what they are.
    Ok(match simple.is_empty() {
        true => Signatures::Bundles(attestations),
        false => Signatures::Simple(simple),
    })
}

/// The bundles that refer to the manifest and whose own manifests are wanted.
pub(crate) async fn bundles(
    repository: &Repository,
    digest: Digest,
    is_wanted: impl Fn(&Manifest) -> bool,
) -> Result<Vec<bytes::Bytes>, PullError> {
    let mut referrers = repository.referrers(&digest).await?;
    // What says that it is a bundle first: others may be many.
    let is_declared =
        |kind: &Option<String>| kind.as_deref().is_some_and(|kind| kind.starts_with(BUNDLE_LAYER));
    referrers.sort_by_key(|referrer| !is_declared(&referrer.artifact_type));
    let (mut bundles, mut bytes) = (Vec::new(), 0);
    for referrer in referrers.into_iter().take(MAX_SIGNATURES) {
        let Ok(digest) = referrer.digest.parse() else {
            continue;
        };
        let Ok(manifest) = Manifest::parse(&verified_manifest(repository, digest).await?) else {
            continue;
        };
        let [layer] = manifest.layers() else { continue };
        if !is_wanted(&manifest) {
            continue;
        }
        if !layer.media_type.starts_with(BUNDLE_LAYER) || layer.size > MAX_SIGNATURE_BYTES {
            continue;
        }
        let json = repository.small_blob(layer, MAX_SIGNATURE_BYTES).await?;
        bytes += json.len();
        if bytes > MAX_BYTES {
            break;
        }
        if is_bundle(&json) {
            bundles.push(json);
        }
    }
    Ok(bundles)
}

async fn simple_signatures(
    repository: &Repository,
    digest: Digest,
) -> Result<Vec<SimpleSignature>, PullError> {
    let is_signature = |layer: &Descriptor| layer.annotation(SIGNATURE).is_some();
    let layers = layers(repository, digest, "sig", is_signature).await?;
    let signatures = layers.into_iter().map(|(layer, payload)| SimpleSignature {
        payload,
        signature: layer.annotation(SIGNATURE).unwrap_or_default().to_owned(),
        witness: witness(&layer),
    });
    Ok(signatures.collect())
}

/// The wanted layers of the image that cosign 1 and 2 put beside an artifact: `sha256-<hex>.sig` or `sha256-<hex>.att`.
pub(crate) async fn layers(
    repository: &Repository,
    digest: Digest,
    ending: &str,
    is_wanted: impl Fn(&Descriptor) -> bool,
) -> Result<Vec<(Descriptor, Vec<u8>)>, PullError> {
    let manifest = match repository
        .manifest(&format!("sha256-{}.{ending}", digest.hex()))
        .await
    {
        Ok((bytes, _)) => Manifest::parse(&bytes),
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let Ok(manifest) = manifest else {
        return Ok(Vec::new());
    };
    let (mut found, mut bytes) = (Vec::new(), 0);
    for layer in manifest.layers().iter().take(MAX_SIGNATURES) {
        if !is_wanted(layer) || layer.size > MAX_SIGNATURE_BYTES {
            continue;
        }
        let content = repository.small_blob(layer, MAX_SIGNATURE_BYTES).await?;
        bytes += content.len();
        if bytes > MAX_BYTES {
            break;
        }
        found.push((layer.clone(), content.to_vec()));
    }
    Ok(found)
}

/// What is written beside a signature that was made without a key.
pub(crate) fn witness(layer: &Descriptor) -> Witness {
    let annotation = |name: &str| layer.annotation(name).map(str::to_owned);
    Witness {
        certificate: annotation("dev.sigstore.cosign/certificate"),
        chain: annotation("dev.sigstore.cosign/chain"),
        log_entry: annotation("dev.sigstore.cosign/bundle"),
    }
}
