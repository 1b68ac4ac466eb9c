//! The form of cosign 1 and 2: a payload that names the digest, and its signature in annotations of the layer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;

use super::error::Error;
use super::witness::Witness;
use super::{Identity, PublicKey, TrustedRoot, Verified};

/// A layer of the image `sha256-<hex>.sig`.
#[derive(Debug, Clone, Default)]
pub struct SimpleSignature {
    /// The layer's content.
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`.
    pub signature: String,
    /// Who signed, of a signature without a key.
    pub witness: Witness,
}

#[derive(Deserialize)]
struct Payload {
    critical: Critical,
}

#[derive(Deserialize)]
struct Critical {
    image: Image,
}

#[derive(Deserialize)]
struct Image {
    #[serde(default, rename = "docker-manifest-digest")]
    digest: String,
}

/// The payload must speak of this digest.
pub(super) fn check_claim(payload: &[u8], digest: &str) -> Result<(), Error> {
    let payload: Payload =
        serde_json::from_slice(payload).map_err(|_| Error::Parse { what: "the payload" })?;
    let found = payload.critical.image.digest;
    if found == digest {
        return Ok(());
    }
    Err(Error::MatchDigest {
        found,
        expected: digest.to_owned(),
    })
}

/// The transparency log is not asked for, as in Flux.
pub(super) fn verify_with_key(signature: &SimpleSignature, key: &PublicKey) -> Result<(), Error> {
    key.verify(
        &signature.payload,
        &decoded(&signature.signature, "the signature")?,
    )
}

/// The same facts as a bundle of the first version, which is verified as such.
pub(super) fn verify_keyless(
    signature: &SimpleSignature,
    root: &TrustedRoot,
    identities: &[Identity],
) -> Result<Verified, Error> {
    decoded(&signature.signature, "the signature")?;
    let content = json!({"signature": signature.signature});
    let bundle = signature.witness.bundle("messageSignature", content)?;
    root.verify(signature.payload.as_slice(), &bundle, identities)
}

fn decoded(text: &str, what: &'static str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|_| Error::Parse { what })
}
