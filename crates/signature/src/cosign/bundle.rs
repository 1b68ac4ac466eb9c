//! The form of cosign 3: a bundle with an in-toto statement about the digest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use sigstore_verify::types::{Bundle, Sha256Hash, SignatureContent};

use super::error::Error;
use super::{Identity, PublicKey, TrustedRoot, Verified};

/// The only kind of payload that speaks of digests.
const STATEMENT: &str = "application/vnd.in-toto+json";
/// Type of cosign's signatures. Statements of other types are about an artifact, too (how it was built, what
/// a scanner found), perhaps with the same key, and perhaps they say nothing good.
const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    #[serde(default)]
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(default)]
    predicate_type: String,
    #[serde(default)]
    subject: Vec<Subject>,
}

#[derive(Deserialize)]
struct Subject {
    #[serde(default)]
    digest: Digests,
}

#[derive(Default, Deserialize)]
struct Digests {
    #[serde(default)]
    sha256: Option<String>,
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
    let payload = decoded(&dsse_envelope.payload).unwrap_or_default();
    serde_json::from_slice::<Statement>(&payload).is_ok_and(|statement| statement.predicate_type != SIGNATURE)
}

/// The transparency log is not asked for, as in Flux.
pub(super) fn verify_with_key(json: &[u8], digest: &str, key: &PublicKey) -> Result<(), Error> {
    let bundle: KeyedBundle = serde_json::from_slice(json).map_err(|_| unreadable("the bundle"))?;
    if !MEDIA_TYPES.contains(&&*bundle.media_type) {
        return Err(unreadable("the bundle"));
    }
    if bundle.verification_material.public_key.is_none() {
        return Err(Error::VerifyKeyless(
            "expected key signature, not certificate".to_owned(),
        ));
    }
    let envelope = bundle.dsse_envelope.ok_or(Error::NotAStatement)?;
    let [signature] = envelope.signatures.as_slice() else {
        return Err(unreadable("the envelope, which must have one signature"));
    };
    let payload = decoded(&envelope.payload)?;
    let message = pre_authentication_encoding(&envelope.payload_type, &payload);
    key.verify(&message, &decoded(&signature.sig)?)?;
    if envelope.payload_type != STATEMENT {
        return Err(unreadable("the payload, which is no statement"));
    }
    check_subject(&payload, digest)
}

pub(super) fn verify_keyless(
    json: &[u8],
    digest: &str,
    root: &TrustedRoot,
    identities: &[Identity],
) -> Result<Verified, Error> {
    let text = std::str::from_utf8(json).map_err(|_| unreadable("the bundle"))?;
    let bundle = Bundle::from_json(text).map_err(|_| unreadable("the bundle"))?;
    let SignatureContent::DsseEnvelope(envelope) = &bundle.content else {
        return Err(Error::NotAStatement);
    };
    let payload = envelope.payload.as_bytes().to_vec();
    let hash = digest
        .strip_prefix("sha256:")
        .and_then(|hex| Sha256Hash::from_hex(hex).ok());
    let hash = hash.ok_or_else(|| unreadable("the digest"))?;
    let verified = root.verify(hash, &bundle, identities)?;
    // Only now is it known who says so.
    check_type(&read_statement(&payload)?)?;
    Ok(verified)
}

/// One of the things that the statement is about must be the artifact.
fn check_subject(statement: &[u8], digest: &str) -> Result<(), Error> {
    let statement = read_statement(statement)?;
    check_type(&statement)?;
    let mut found = statement
        .subject
        .into_iter()
        .filter_map(|subject| subject.digest.sha256)
        .map(|hex| format!("sha256:{hex}"));
    let mut first = None;
    let matches = found.any(|name| {
        let matches = name == digest;
        first.get_or_insert(name);
        matches
    });
    if matches {
        return Ok(());
    }
    Err(Error::MatchDigest {
        found: first.unwrap_or_default(),
        expected: digest.to_owned(),
    })
}

fn read_statement(payload: &[u8]) -> Result<Statement, Error> {
    serde_json::from_slice(payload).map_err(|_| unreadable("the statement"))
}

fn check_type(statement: &Statement) -> Result<(), Error> {
    if statement.predicate_type == SIGNATURE {
        return Ok(());
    }
    Err(Error::Attestation {
        predicate_type: statement.predicate_type.chars().take(200).collect(),
    })
}

/// Builds the text that DSSE signs.
fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn decoded(text: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|_| unreadable("the envelope"))
}

fn unreadable(what: &'static str) -> Error {
    Error::Parse { what }
}
