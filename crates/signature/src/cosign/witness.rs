//! What cosign 1 and 2 write beside a signature that was made without a key: the certificate, and the log's promise.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use sigstore_verify::types::Bundle;
use x509_parser::pem::Pem;

use super::error::Error;

/// Certificates of a chain that are looked at.
const MAX_CHAIN: usize = 10;

/// Annotations of a layer of the images `sha256-<hex>.sig` and `sha256-<hex>.att`. All are None if it was made with a key.
#[derive(Debug, Clone, Default)]
pub struct Witness {
    /// The annotation `dev.sigstore.cosign/certificate`.
    pub certificate: Option<String>,
    /// The annotation `dev.sigstore.cosign/chain`.
    pub chain: Option<String>,
    /// The annotation `dev.sigstore.cosign/bundle`: the promise of the transparency log.
    pub log_entry: Option<String>,
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

impl Witness {
    /// The same facts as a bundle of the first version, whose `field` is what was signed.
    pub(super) fn bundle(&self, field: &str, signed: Value) -> Result<Bundle, Error> {
        let missing = |what| move || Error::Missing { what };
        let certificate = self.certificate.as_deref();
        let certificate = certificate.ok_or_else(missing("certificate"))?;
        let mut certificates = pem_certificates(certificate)?;
        certificates.truncate(1);
        if certificates.is_empty() {
            return Err(Error::Parse { what: "certificate" });
        }
        certificates.extend(pem_certificates(self.chain.as_deref().unwrap_or_default())?);
        let entry = self.log_entry.as_deref();
        let entry = entry.ok_or_else(missing("entry of the transparency log"))?;
        let entry: LogEntry = serde_json::from_str(entry).map_err(|_| unreadable())?;
        let body = STANDARD.decode(&entry.payload.body).map_err(|_| unreadable())?;
        let body: LogBody = serde_json::from_slice(&body).map_err(|_| unreadable())?;
        let log_id = hex::decode(&entry.payload.log_id).map_err(|_| unreadable())?;
        let mut json = json!({
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
        });
        json[field] = signed;
        Bundle::from_json(&json.to_string()).map_err(|_| unreadable())
    }
}

fn unreadable() -> Error {
    Error::Parse {
        what: "the entry of the transparency log",
    }
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
