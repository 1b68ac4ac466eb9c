//! Cosign: which signatures an artifact has, and whether one of them is good.
//!
//! Bundles that refer to the manifest come first. Where there are none, the image with the tag `sha256-<hex>.sig` is
//! looked for. As in Flux, an artifact with bundles of which none is good is not verified by its older signatures.

use api::source::ArtifactVerification;
use artifact::digest::Digest;
use oci_client::manifest::{Descriptor, Manifest};
use oci_client::registry::Repository;
use oci_client::{PullError, verified_manifest};
use signature::cosign::{
    Authority, Identity, PublicKey, SimpleSignature, TrustedRoot, Verified, Witness, is_attestation,
    is_bundle,
};

use super::SigstoreRoot;
use super::error::{Cause, Error, no_match, not_found};
use super::material::{Material, NamedSecret, Outcome};

/// Key of a trusted root in its Secret.
const TRUSTED_ROOT: &str = "trusted_root.json";
/// Ending of the keys that hold public keys.
const PUBLIC_KEY: &str = ".pub";
/// Signatures of one artifact that are looked at.
const MAX_SIGNATURES: usize = 50;
/// A bundle is a few kilobytes, with an attestation perhaps some more; a payload is less than one.
const MAX_SIGNATURE_BYTES: u64 = 4 << 20;
/// Bytes of all of them together: when there are more, the rest is not looked at.
const MAX_BYTES: usize = 16 << 20;
const BUNDLE_LAYER: &str = "application/vnd.dev.sigstore.bundle";

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
    let own_root = material.trusted_root.as_ref();
    let own_root = own_root.map(|secret| secret.get(TRUSTED_ROOT)).transpose()?;
    let verdict = if let Some(secret) = &material.secret {
        let keys = public_keys(secret)?;
        let authorities: Vec<_> = keys.iter().map(Authority::Key).collect();
        if authorities.is_empty() {
            let secret = secret.name.clone();
            return Err(no_match(repository, digest, Cause::NoKeys { secret }));
        }
        check(&find(repository, digest).await?, &authorities, digest)
    } else {
        let identities = specification.match_oidc_identity.iter();
        let identities = identities.map(|wanted| Identity::new(&wanted.issuer, &wanted.subject));
        let identities: Vec<_> = identities.collect::<Result<_, _>>().map_err(Error::Trust)?;
        let root = match own_root {
            Some(json) => TrustedRoot::from_json(json).map_err(Error::Trust)?,
            None => sigstore.load().await?,
        };
        let authority = Authority::Keyless {
            root: &root,
            identities: &identities,
        };
        check(&find(repository, digest).await?, &[authority], digest)
    };
    verdict.map_err(|cause| no_match(repository, digest, cause))
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

/// All keys must be readable: one that is not may be the one that someone relies upon.
fn public_keys(secret: &NamedSecret) -> Result<Vec<PublicKey>, Error> {
    let mut keys: Vec<_> = secret
        .data
        .iter()
        .filter(|(key, _)| key.ends_with(PUBLIC_KEY))
        .collect();
    keys.sort();
    keys.into_iter()
        .map(|(key, pem)| {
            PublicKey::from_pem(pem).map_err(|source| Error::ParseKey {
                key: key.clone(),
                secret: secret.name.clone(),
                source,
            })
        })
        .collect()
}

async fn find(repository: &Repository, digest: Digest) -> Result<Signatures, Error> {
    let failed = |source: PullError| not_found(repository, digest, source);
    let bundles = bundles(repository, digest).await.map_err(failed)?;
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

async fn bundles(repository: &Repository, digest: Digest) -> Result<Vec<bytes::Bytes>, PullError> {
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
    let manifest = match repository.manifest(&format!("sha256-{}.sig", digest.hex())).await {
        Ok((bytes, _)) => Manifest::parse(&bytes),
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let Ok(manifest) = manifest else {
        return Ok(Vec::new());
    };
    let (mut signatures, mut bytes) = (Vec::new(), 0);
    for layer in manifest.layers().iter().take(MAX_SIGNATURES) {
        let annotation = |name: &str| layer.annotation(name).map(str::to_owned);
        let Some(signature) = annotation("dev.cosignproject.cosign/signature") else {
            continue;
        };
        let payload = repository.small_blob(layer, MAX_SIGNATURE_BYTES).await?;
        bytes += payload.len();
        if bytes > MAX_BYTES {
            break;
        }
        signatures.push(SimpleSignature {
            payload: payload.to_vec(),
            signature,
            witness: witness(layer),
        });
    }
    Ok(signatures)
}

fn witness(layer: &Descriptor) -> Witness {
    let annotation = |name: &str| layer.annotation(name).map(str::to_owned);
    Witness {
        certificate: annotation("dev.sigstore.cosign/certificate"),
        chain: annotation("dev.sigstore.cosign/chain"),
        log_entry: annotation("dev.sigstore.cosign/bundle"),
    }
}
