//! The form of cosign 1 and 2: a payload that names the digest, and its signature in annotations of the layer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use sigstore_verify::types::Bundle;
use x509_parser::pem::Pem;

use super::error::Error;
use super::{Identity, PublicKey, TrustedRoot, Verified};

/// Certificates of a chain that are looked at.
const MAX_CHAIN: usize = 10;

/// A layer of the image `sha256-<hex>.sig`.
#[derive(Debug, Clone, Default)]
pub struct SimpleSignature {
    /// The layer's content.
    pub payload: Vec<u8>,
    /// The annotation `dev.cosignproject.cosign/signature`.
    pub signature: String,
    /// The annotation `dev.sigstore.cosign/certificate`.
    pub certificate: Option<String>,
    /// The annotation `dev.sigstore.cosign/chain`.
    pub chain: Option<String>,
    /// The annotation `dev.sigstore.cosign/bundle`: the promise of the transparency log.
    pub log_entry: Option<String>,
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

/// Entry of the log, and its signature.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct LogEntry {
    signed_entry_timestamp: String,
    payload: LogPayload,
}

#[derive(Deserialize)]
struct LogPayload {
    body: String,
    #[serde(rename = "integratedTime")]
    integrated_time: i64,
    #[serde(rename = "logIndex")]
    log_index: i64,
    #[serde(rename = "logID")]
    log_id: String,
}

#[derive(Deserialize)]
struct LogBody {
    kind: String,
    #[serde(rename = "apiVersion")]
    version: String,
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
    let bundle = as_bundle(signature)?;
    root.verify(signature.payload.as_slice(), &bundle, identities)
}

fn as_bundle(signature: &SimpleSignature) -> Result<Bundle, Error> {
    let missing = |what| move || Error::Missing { what };
    let certificate = signature.certificate.as_deref();
    let certificate = certificate.ok_or_else(missing("certificate"))?;
    let mut certificates = pem_certificates(certificate)?;
    certificates.truncate(1);
    if certificates.is_empty() {
        return Err(Error::Parse { what: "certificate" });
    }
    certificates.extend(pem_certificates(signature.chain.as_deref().unwrap_or_default())?);
    let entry = signature.log_entry.as_deref();
    let entry = entry.ok_or_else(missing("entry of the transparency log"))?;
    let unreadable = || Error::Parse {
        what: "the entry of the transparency log",
    };
    let entry: LogEntry = serde_json::from_str(entry).map_err(|_| unreadable())?;
    let body: LogBody = serde_json::from_slice(&decoded(
        &entry.payload.body,
        "the entry of the transparency log",
    )?)
    .map_err(|_| unreadable())?;
    let log_id = hex::decode(&entry.payload.log_id).map_err(|_| unreadable())?;
    decoded(&signature.signature, "the signature")?;
    let json = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.1",
        "verificationMaterial": {
            "x509CertificateChain": {"certificates": certificates},
            "tlogEntries": [{
                "logIndex": entry.payload.log_index.to_string(),
                "logId": {"keyId": STANDARD.encode(log_id)},
                "kindVersion": {"kind": body.kind, "version": body.version},
                "integratedTime": entry.payload.integrated_time.to_string(),
                "inclusionPromise": {"signedEntryTimestamp": entry.signed_entry_timestamp},
                "canonicalizedBody": entry.payload.body,
            }],
        },
        "messageSignature": {"signature": signature.signature},
    });
    Bundle::from_json(&json.to_string()).map_err(|_| unreadable())
}

/// The certificates of a PEM text, as a bundle has them.
fn pem_certificates(text: &str) -> Result<Vec<serde_json::Value>, Error> {
    Pem::iter_from_buffer(text.as_bytes())
        .take(MAX_CHAIN)
        .map(|pem| match pem {
            Ok(pem) if pem.label == "CERTIFICATE" => Ok(json!({"rawBytes": STANDARD.encode(pem.contents)})),
            _ => Err(Error::Parse { what: "certificate" }),
        })
        .collect()
}

fn decoded(text: &str, what: &'static str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|_| Error::Parse { what })
}
