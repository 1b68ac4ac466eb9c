//! Notation: which signatures an artifact has, and whether one of them is good by the trust policy.

use artifact::digest::Digest;
use jiff::Timestamp;
use oci_client::manifest::{Descriptor, Manifest};
use oci_client::registry::Repository;
use oci_client::{PullError, verified_manifest};
use signature::notation::{self, Artifact, Statement, TrustPolicy, Verdict};

use super::error::{Cause, Error, no_match, not_found, reference};
use super::material::{Material, NamedSecret, Outcome};

/// Key of the trust policy in the Secret.
const TRUST_POLICY: &str = "trustpolicy.json";
/// Endings of the keys that hold certificates.
const CERTIFICATES: [&str; 2] = [".crt", ".pem"];
const SIGNATURE: &str = "application/vnd.cncf.notary.signature";
/// Signatures of one artifact that are looked at, as in Flux.
const MAX_SIGNATURES: usize = 3;
/// Referrers whose kind is not told by the registry and that are looked into for it.
const MAX_UNDECLARED: usize = 50;
/// An envelope holds a chain of certificates and perhaps a time stamp.
const MAX_ENVELOPE_BYTES: u64 = 1 << 20;

pub(crate) async fn verify(
    repository: &Repository,
    digest: Digest,
    material: &Material,
) -> Result<Outcome, Error> {
    let missing = || Error::MissingSecret {
        reference: reference(repository, digest),
    };
    let secret = material.secret.as_ref().ok_or_else(missing)?;
    let policy = TrustPolicy::parse(secret.get(TRUST_POLICY)?).map_err(Error::Policy)?;
    let trusted = certificates(secret)?;
    let name = &repository.name;
    let scope = format!("{}/{}", name.registry, name.repository);
    let statement = policy.statement(&scope).map_err(Error::Policy)?;
    if statement.skips() {
        return Ok(Outcome::Ignored);
    }
    let failed = |source: PullError| not_found(repository, digest, source);
    let artifact = describe(repository, digest).await.map_err(failed)?;
    let signatures = signatures(repository, digest).await.map_err(failed)?;
    let mut cause = Cause::Unsigned;
    for (number, manifest) in signatures.iter().enumerate() {
        if number == MAX_SIGNATURES {
            cause = Cause::TooMany {
                limit: MAX_SIGNATURES,
            };
            break;
        }
        match check(repository, manifest, statement, &trusted, &artifact)
            .await
            .map_err(failed)?
        {
            Ok(Verdict::Trusted) => return Ok(Outcome::Verified { recorded_at: None }),
            Ok(Verdict::Untrusted) => {
                tracing::info!(
                    artifact = reference(repository, digest),
                    "the artifact is signed by nobody whom the trust policy trusts, which it only wants logged"
                );
                return Ok(Outcome::Ignored);
            }
            Err(error) => cause = Cause::Notation(error),
        }
    }
    Err(no_match(repository, digest, cause))
}

/// The certificates of a Secret, in DER; what is no PEM is taken as DER.
fn certificates(secret: &NamedSecret) -> Result<Vec<Vec<u8>>, Error> {
    let is_certificate = |key: &str| CERTIFICATES.iter().any(|ending| key.ends_with(ending));
    let data = secret.data.iter().filter(|(key, _)| is_certificate(key));
    let certificates: Vec<_> = data.map(|(_, file)| notation::certificate(file)).collect();
    if certificates.is_empty() {
        return Err(Error::NoCertificates {
            secret: secret.name.clone(),
        });
    }
    Ok(certificates)
}

/// Returns the descriptor that a signature must be about: not the digest alone.
async fn describe(repository: &Repository, digest: Digest) -> Result<Artifact, PullError> {
    let (bytes, media_type) = repository.manifest(&digest.to_string()).await?;
    let actual = Digest::from_content(&bytes);
    if actual != digest {
        return Err(PullError::Verify {
            expected: digest,
            actual,
        });
    }
    Ok(Artifact {
        media_type: media_type.unwrap_or_default(),
        digest: digest.to_string(),
        size: bytes.len() as u64,
    })
}

/// The manifests of signatures of notation. Registries that do not tell what refers are asked for the manifests.
async fn signatures(repository: &Repository, digest: Digest) -> Result<Vec<Manifest>, PullError> {
    let referrers = repository.referrers(&digest).await?;
    let mut signatures = Vec::new();
    let mut undeclared = 0;
    for referrer in referrers {
        let declared = referrer.artifact_type.as_deref().filter(|kind| !kind.is_empty());
        undeclared += usize::from(declared.is_none());
        let is_other = declared.is_some_and(|kind| kind != SIGNATURE);
        if is_other || (declared.is_none() && undeclared > MAX_UNDECLARED) {
            continue;
        }
        if let Some(manifest) = manifest(repository, &referrer).await?
            && manifest.artifact_type() == SIGNATURE
        {
            signatures.push(manifest);
        }
        if signatures.len() > MAX_SIGNATURES {
            break;
        }
    }
    Ok(signatures)
}

async fn manifest(repository: &Repository, referrer: &Descriptor) -> Result<Option<Manifest>, PullError> {
    let Ok(digest) = referrer.digest.parse() else {
        return Ok(None);
    };
    Ok(Manifest::parse(&verified_manifest(repository, digest).await?).ok())
}

async fn check(
    repository: &Repository,
    manifest: &Manifest,
    statement: &Statement,
    trusted: &[Vec<u8>],
    artifact: &Artifact,
) -> Result<Result<Verdict, notation::Error>, PullError> {
    let [layer] = manifest.layers() else {
        let problem = "signature manifest requires exactly one signature envelope blob".to_owned();
        return Ok(Err(notation::Error::Integrity(problem)));
    };
    if layer.size > MAX_ENVELOPE_BYTES {
        let problem = format!("signature blob too large: {} bytes", layer.size);
        return Ok(Err(notation::Error::Integrity(problem)));
    }
    let envelope = repository.small_blob(layer, MAX_ENVELOPE_BYTES).await?;
    let now = Timestamp::now();
    Ok(notation::verify(
        &layer.media_type,
        &envelope,
        statement,
        trusted,
        artifact,
        now,
    ))
}
