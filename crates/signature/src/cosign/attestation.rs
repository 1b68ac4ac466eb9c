//! What others say of an artifact: how it was built, what is in it, what a scanner found.

use serde_json::{Value, json};

use super::envelope::Envelope;
use super::error::Error;
use super::witness::Witness;
use super::{Identity, PublicKey, TrustedRoot, Verified, bundle};

/// An attestation in one of its two forms.
#[derive(Debug, Clone)]
pub enum Attestation {
    /// Of cosign 3 and of GitHub: the JSON of a bundle that refers to the manifest.
    Bundle(Vec<u8>),
    /// Of cosign 1 and 2: a layer of the image `sha256-<hex>.att`.
    Envelope {
        /// The layer's content.
        json: Vec<u8>,
        /// Its annotations.
        witness: Witness,
    },
}

/// An attestation that is good.
#[derive(Debug, Clone, PartialEq)]
pub struct Attested {
    /// When it was recorded.
    pub verified: Verified,
    /// What it says, in the shape of its type.
    pub predicate: Value,
}

impl Attestation {
    pub(super) fn verify_with_key(
        &self,
        digest: &str,
        predicate_type: &str,
        key: &PublicKey,
    ) -> Result<Attested, Error> {
        let statement = match self {
            Self::Bundle(json) => bundle::open_with_key(json, digest, key)?,
            Self::Envelope { json, .. } => {
                let envelope: Envelope = serde_json::from_slice(json).map_err(|_| unreadable())?;
                envelope.open(digest, key)?
            }
        };
        Ok(Attested {
            verified: Verified::default(),
            predicate: statement.predicate(predicate_type)?,
        })
    }

    pub(super) fn verify_keyless(
        &self,
        digest: &str,
        predicate_type: &str,
        root: &TrustedRoot,
        identities: &[Identity],
    ) -> Result<Attested, Error> {
        let (statement, verified) = match self {
            Self::Bundle(json) => bundle::open_keyless(json, digest, root, identities)?,
            Self::Envelope { json, witness } => {
                let envelope: Value = serde_json::from_slice(json).map_err(|_| unreadable())?;
                // Only what a bundle may have.
                let envelope = json!({
                    "payload": envelope["payload"], "payloadType": envelope["payloadType"],
                    "signatures": envelope["signatures"],
                });
                let bundle = witness.bundle("dsseEnvelope", envelope)?;
                bundle::verify(&bundle, digest, root, identities)?
            }
        };
        Ok(Attested {
            verified,
            predicate: statement.predicate(predicate_type)?,
        })
    }
}

fn unreadable() -> Error {
    Error::Parse { what: "the envelope" }
}
