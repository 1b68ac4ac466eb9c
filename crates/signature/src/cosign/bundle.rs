//! The form of cosign 3: a bundle with an in-toto statement about the digest.

use serde::Deserialize;
use sigstore_verify::types::{Bundle, Sha256Hash, SignatureContent};

use super::envelope::{Envelope, Statement};
use super::error::Error;
use super::{Identity, PublicKey, TrustedRoot, Verified};

/// The versions that cosign takes from registries.
const MEDIA_TYPES: [&str; 2] = [
    "application/vnd.dev.sigstore.bundle.v0.3+json",
    "application/vnd.dev.sigstore.bundle+json;version=0.3",
];

/// The parts of a bundle that a verification with a key looks at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeyedBundle {
    media_type: String,
    verification_material: Material,
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Material {
    public_key: Option<serde::de::IgnoredAny>,
}

pub(super) fn is_supported(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Any {
        media_type: String,
    }
    serde_json::from_slice::<Any>(json).is_ok_and(|bundle| MEDIA_TYPES.contains(&&*bundle.media_type))
}

/// Returns whether it holds a statement of another type than a signature's. Nothing is verified.
pub(super) fn is_attestation(json: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Any {
        dsse_envelope: Envelope,
    }
    let Ok(Any { dsse_envelope }) = serde_json::from_slice::<Any>(json) else {
        return false;
    };
    dsse_envelope.claims_attestation()
}

/// The transparency log is not asked for, as in Flux.
pub(super) fn open_with_key(json: &[u8], digest: &str, key: &PublicKey) -> Result<Statement, Error> {
    let bundle: KeyedBundle = serde_json::from_slice(json).map_err(|_| unreadable())?;
    if !MEDIA_TYPES.contains(&&*bundle.media_type) {
        return Err(unreadable());
    }
    if bundle.verification_material.public_key.is_none() {
        return Err(Error::VerifyKeyless(
            "expected key signature, not certificate".to_owned(),
        ));
    }
    let envelope = bundle.dsse_envelope.ok_or(Error::NotAStatement)?;
    envelope.open(digest, key)
}

pub(super) fn open_keyless(
    json: &[u8],
    digest: &str,
    root: &TrustedRoot,
    identities: &[Identity],
) -> Result<(Statement, Verified), Error> {
    let text = std::str::from_utf8(json).map_err(|_| unreadable())?;
    let bundle = Bundle::from_json(text).map_err(|_| unreadable())?;
    verify(&bundle, digest, root, identities)
}

/// Verifies a bundle around a statement about this digest.
pub(super) fn verify(
    bundle: &Bundle,
    digest: &str,
    root: &TrustedRoot,
    identities: &[Identity],
) -> Result<(Statement, Verified), Error> {
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return Err(Error::NotAStatement);
    };
    let payload = envelope.payload.as_bytes().to_vec();
    let hash = digest
        .strip_prefix("sha256:")
        .and_then(|hex| Sha256Hash::from_hex(hex).ok());
    let hash = hash.ok_or(Error::Parse { what: "the digest" })?;
    let verified = root.verify(hash, bundle, identities)?;
    // Only now is it known who says so.
    Ok((Statement::read(payload)?, verified))
}

fn unreadable() -> Error {
    Error::Parse { what: "the bundle" }
}
