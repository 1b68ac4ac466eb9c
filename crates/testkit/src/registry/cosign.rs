//! Signatures as cosign makes them with a key.

use anyhow::{Result, anyhow};
use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

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
        let signature = self.0.sign(&SystemRandom::new(), payload.as_bytes());
        let signature = STANDARD.encode(signature.map_err(|_| anyhow!("failed to sign"))?);
        registry
            .push_cosign_signature(repository, digest, payload.as_bytes(), &signature)
            .await
    }
}
