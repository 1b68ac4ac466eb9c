//! Signatures and attestations as cosign makes them with a key.

use anyhow::{Result, anyhow};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Registry;

/// A key as `cosign generate-key-pair` makes it.
pub struct CosignKey(EcdsaKeyPair);

impl CosignKey {
    /// Makes a new key.
    pub fn generate() -> Result<Self> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING);
        Ok(Self(key.map_err(|_| anyhow!("failed to generate a key"))?))
    }

    /// The public key in PEM, as in `cosign.pub`.
    pub fn public_key(&self) -> Result<String> {
        let der = self.0.public_key().as_der();
        let der = der.map_err(|_| anyhow!("failed to encode a public key"))?;
        let text = STANDARD.encode(der.as_ref());
        Ok(format!(
            "-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n"
        ))
    }

    /// Signs a manifest of the registry, and pushes the signature beside it.
    pub async fn sign(&self, registry: &Registry, repository: &str, digest: &str) -> Result<()> {
        let payload = json!({"critical": {
            "identity": {"docker-reference": repository},
            "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        }});
        let payload = payload.to_string();
        let signature = self.signature(payload.as_bytes())?;
        registry
            .push_cosign_signature(repository, digest, payload.as_bytes(), &signature)
            .await
    }

    /// Says something of a manifest of the registry, and pushes that beside it.
    pub async fn attest(
        &self,
        registry: &Registry,
        repository: &str,
        digest: &str,
        predicate_type: &str,
        predicate: &Value,
    ) -> Result<()> {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": repository, "digest": {"sha256": digest.trim_start_matches("sha256:")}}],
            "predicateType": predicate_type, "predicate": predicate,
        });
        let (kind, statement) = ("application/vnd.in-toto+json", statement.to_string());
        let message = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
        let envelope = json!({
            "payloadType": kind, "payload": STANDARD.encode(&statement),
            "signatures": [{"keyid": "", "sig": self.signature(message.as_bytes())?}],
        });
        let envelope = envelope.to_string();
        registry
            .push_cosign_attestation(repository, digest, envelope.as_bytes(), predicate_type)
            .await
    }

    fn signature(&self, message: &[u8]) -> Result<String> {
        let signature = self.0.sign(&SystemRandom::new(), message);
        Ok(STANDARD.encode(signature.map_err(|_| anyhow!("failed to sign"))?))
    }
}
