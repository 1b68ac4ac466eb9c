//! Envelopes ([DSSE](https://github.com/secure-systems-lab/dsse)) with an in-toto statement about a digest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::PublicKey;
use super::error::Error;

/// The only kind of payload that speaks of digests.
pub(super) const STATEMENT: &str = "application/vnd.in-toto+json";
/// Type of cosign's signatures. Statements of other types are about an artifact, too (how it was built, what
/// a scanner found), perhaps with the same key, and perhaps they say nothing good.
const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Envelope {
    payload: String,
    payload_type: String,
    #[serde(default)]
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    sig: String,
}

/// A statement whose envelope was verified.
pub(super) struct Statement {
    payload: Vec<u8>,
    head: Head,
}

/// What every statement has.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
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

impl Envelope {
    /// Returns whether it holds a statement of another type than a signature's. Nothing is verified.
    pub(super) fn claims_attestation(&self) -> bool {
        let payload = decoded(&self.payload).unwrap_or_default();
        serde_json::from_slice::<Head>(&payload).is_ok_and(|head| head.predicate_type != SIGNATURE)
    }

    /// The statement, if this key signed it and it is about this digest.
    pub(super) fn open(self, digest: &str, key: &PublicKey) -> Result<Statement, Error> {
        let [signature] = self.signatures.as_slice() else {
            return Err(unreadable("the envelope, which must have one signature"));
        };
        let payload = decoded(&self.payload)?;
        let message = pre_authentication_encoding(&self.payload_type, &payload);
        key.verify(&message, &decoded(&signature.sig)?)?;
        if self.payload_type != STATEMENT {
            return Err(unreadable("the payload, which is no statement"));
        }
        let statement = Statement::read(payload)?;
        statement.check_subject(digest)?;
        Ok(statement)
    }
}

impl Statement {
    pub(super) fn read(payload: Vec<u8>) -> Result<Self, Error> {
        let head = serde_json::from_slice(&payload).map_err(|_| unreadable("the statement"))?;
        Ok(Self { payload, head })
    }

    /// It must be a signature, and nothing else that is said of an artifact.
    pub(super) fn check_is_signature(&self) -> Result<(), Error> {
        let predicate_type = &self.head.predicate_type;
        if predicate_type == SIGNATURE {
            return Ok(());
        }
        Err(Error::Attestation {
            predicate_type: predicate_type.chars().take(200).collect(),
        })
    }

    /// What it says of the artifact, if it is of this type.
    pub(super) fn predicate(&self, predicate_type: &str) -> Result<Value, Error> {
        #[derive(Deserialize)]
        struct Body {
            #[serde(default)]
            predicate: Value,
        }
        let found = &self.head.predicate_type;
        if found != predicate_type {
            return Err(Error::PredicateType {
                found: found.chars().take(200).collect(),
            });
        }
        let body: Body = serde_json::from_slice(&self.payload).map_err(|_| unreadable("the predicate"))?;
        Ok(body.predicate)
    }

    /// One of the things that the statement is about must be the artifact.
    fn check_subject(&self, digest: &str) -> Result<(), Error> {
        let subjects = self.head.subject.iter();
        let found = subjects.filter_map(|subject| subject.digest.sha256.as_deref());
        let found: Vec<&str> = found.collect();
        if found
            .iter()
            .any(|hex| digest.strip_prefix("sha256:") == Some(hex))
        {
            return Ok(());
        }
        Err(Error::MatchDigest {
            found: found
                .first()
                .map(|hex| format!("sha256:{hex}"))
                .unwrap_or_default(),
            expected: digest.to_owned(),
        })
    }
}

/// Builds the text that DSSE signs.
pub(super) fn pre_authentication_encoding(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn decoded(text: &str) -> Result<Vec<u8>, Error> {
    STANDARD.decode(text).map_err(|_| unreadable("the envelope"))
}

fn unreadable(what: &'static str) -> Error {
    Error::Parse { what }
}
