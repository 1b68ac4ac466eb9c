//! One image at its registry: which digest its tag has, and whether that is signed and attested as a policy wants it.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use artifact::digest::Digest;
use error_chain::chain;
use oci_client::credentials;
use oci_client::image_name::ImageName;
use oci_client::name::Name;
use oci_client::registry::{Memory, Repository};
use oci_verify::SigstoreRoot;
use tokio::time::Instant;
use transport::http::Clients;

use crate::trust::Trust;

/// A digest has what it has, and other keys are another trust: what may change is a transparency log that is revoked, or an attestation
/// that grows old. As long images that are named by digest are delivered while the registry is away.
const GOOD_FOR: Duration = Duration::from_secs(3600);
/// Many deliveries at once ask for the same tag.
const TAG_FOR: Duration = Duration::from_secs(5);
/// Answers that are remembered of each sort.
const MAX_KNOWN: usize = 10_000;

/// Asks registries, and remembers what was good.
pub(crate) struct Inspector {
    clients: Clients,
    registries: Memory,
    sigstore: SigstoreRoot,
    /// By policy, what it trusts, where the image is, and its digest.
    good: Known<(String, u64, Name, Digest), ()>,
    /// By where the image is, its tag, and as whom the registry is asked.
    digests: Known<(Name, String, u64), Digest>,
}

impl Inspector {
    pub(crate) fn new(sigstore: SigstoreRoot) -> Self {
        Self {
            clients: Clients::default(),
            registries: Memory::default(),
            sigstore,
            good: Known::new(GOOD_FOR),
            digests: Known::new(TAG_FOR),
        }
    }

    /// Returns the digest of an image.
    pub(crate) async fn digest(
        &self,
        image: &ImageName,
        trust: &Trust,
        end: Instant,
    ) -> Result<Digest, String> {
        if let Some(digest) = image.digest {
            return Ok(digest);
        }
        let key = (image.name.clone(), image.tag().to_owned(), trust.digest);
        if let Some(digest) = self.digests.get(&key) {
            return Ok(digest);
        }
        let repository = self.repository(image, trust, end)?;
        let digest = oci_client::digest_of_tag(&repository, image.tag()).await;
        let digest = digest.map_err(|error| format!("failed to determine its digest: {}", chain(&error)))?;
        self.digests.insert(key, digest);
        Ok(digest)
    }

    /// Verifies what a policy (by its UID) demands of an image.
    pub(crate) async fn verify(
        &self,
        (image, digest): (&ImageName, Digest),
        (policy, trust): (&str, &Trust),
        end: Instant,
    ) -> Result<(), String> {
        if !trust.is_about_registries() {
            return Ok(());
        }
        let key = (policy.to_owned(), trust.digest, image.name.clone(), digest);
        if self.good.get(&key).is_some() {
            return Ok(());
        }
        let repository = self.repository(image, trust, end)?;
        trust.verify(&repository, digest, &self.sigstore).await?;
        self.good.insert(key, ());
        Ok(())
    }

    fn repository(&self, image: &ImageName, trust: &Trust, deadline: Instant) -> Result<Repository, String> {
        let name = image.name.clone();
        let credentials = credentials::find(&trust.pull_secrets, &name).map_err(|error| chain(&error))?;
        let settings = trust.settings.clone().towards(name.host());
        let client = self.clients.get(&settings).map_err(|error| chain(&error))?;
        Ok(Repository {
            name,
            insecure: false,
            credentials,
            client,
            memory: self.registries.clone(),
            deadline,
        })
    }
}

/// Answers that hold for a time.
struct Known<K, V> {
    lasts: Duration,
    answers: Mutex<HashMap<K, (Instant, V)>>,
}

impl<K: Hash + Eq, V: Clone> Known<K, V> {
    fn new(lasts: Duration) -> Self {
        Self {
            lasts,
            answers: Mutex::default(),
        }
    }

    fn get(&self, key: &K) -> Option<V> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, answer) = answers.get(key)?;
        (since.elapsed() < self.lasts).then(|| answer.clone())
    }

    fn insert(&self, key: K, answer: V) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_KNOWN {
            answers.retain(|_, (since, _)| since.elapsed() < self.lasts);
        }
        if answers.len() >= MAX_KNOWN {
            answers.clear();
        }
        answers.insert(key, (Instant::now(), answer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn answers_hold_for_a_time_and_are_bounded() {
        let known = Known::new(Duration::from_secs(10));
        known.insert(0, "a");
        assert_eq!(known.get(&0), Some("a"));
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(known.get(&0), None);
        for number in 0..2 * MAX_KNOWN {
            known.insert(number, "b");
        }
        assert!(known.answers.lock().unwrap().len() <= MAX_KNOWN);
    }
}
