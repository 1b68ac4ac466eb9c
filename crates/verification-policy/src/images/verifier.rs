//! One image, held against one policy.

use api::delivery::VerificationPolicy;
use artifact::digest::Digest;
use kube::Client;
use oci_client::image_name::ImageName;
use oci_verify::SigstoreRoot;
use tokio::time::Instant;

use super::inspect::Inspector;
use crate::scope;
use crate::trust::Trusts;

/// Holds images against policies: reads their Secrets, and asks registries.
pub struct Verifier {
    trusts: Trusts,
    inspector: Inspector,
}

impl Verifier {
    /// Reads Secrets with this client.
    pub fn new(client: Client, sigstore: SigstoreRoot) -> Self {
        Self {
            trusts: Trusts::new(client),
            inspector: Inspector::new(sigstore),
        }
    }

    /// Holds one image against one policy. The first that needs the digest asks for it.
    ///
    /// # Errors
    /// With what it does not meet, for people in the namespace `from`.
    pub async fn meets(
        &self,
        from: &str,
        image: &ImageName,
        policy: &VerificationPolicy,
        digest: &mut Option<Digest>,
        end: Instant,
    ) -> Result<(), String> {
        let repository = image.repository();
        if !scope::lets_in(policy, &repository) {
            return Err(format!("images may not come from {repository}"));
        }
        let spec = &policy.spec;
        if spec.verify.is_none() && spec.attestations.is_empty() && !scope::pins(policy) {
            return Ok(());
        }
        let trust = self.trusts.of(from, policy).await?;
        let digest = match digest {
            Some(digest) => *digest,
            None => *digest.insert(self.inspector.digest(image, &trust, end).await?),
        };
        let uid = policy.metadata.uid.as_deref().unwrap_or_default();
        self.inspector.verify((image, digest), (uid, &trust), end).await
    }
}
