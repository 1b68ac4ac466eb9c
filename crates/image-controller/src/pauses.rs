//! Pauses that registries asked for (`Retry-After`): one for all objects that come to a host by the same way.
//!
//! A registry limits an account or an address, not an object. An object with a proxy, certificates or plain HTTP of its own
//! shares with its namespace only: whoever owns the way could answer in the name of the host, and silence others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::image::ImageRepository;
use oci_client::credentials::Credentials;
use oci_client::registry::Repository;
use tokio::time::Instant;

/// Pauses that are remembered; with more, those that are over are forgotten.
const MAX_PAUSES: usize = 10_000;

/// How a host is reached.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Way {
    host: String,
    credentials: Option<Credentials>,
    /// The namespace that owns the way; None for the usual one.
    owner: Option<String>,
}

impl Way {
    /// The way of an object to its registry.
    pub(crate) fn new(object: &ImageRepository, remote: &Repository) -> Self {
        let spec = &object.spec;
        let is_own = spec.insecure || spec.proxy_secret_ref.is_some() || spec.cert_secret_ref.is_some();
        let namespace = object.metadata.namespace.clone().unwrap_or_default();
        Self {
            host: remote.name.host().to_owned(),
            credentials: remote.credentials.clone(),
            owner: is_own.then_some(namespace),
        }
    }
}

/// All pauses. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Pauses(Arc<Mutex<HashMap<Way, Instant>>>);

impl Pauses {
    /// Remembers that the host asked for a pause.
    pub(crate) fn pause(&self, way: Way, pause: Duration) {
        let now = Instant::now();
        let Some(until) = now.checked_add(pause) else {
            return;
        };
        let mut pauses = self.locked();
        if pauses.len() >= MAX_PAUSES {
            pauses.retain(|_, until| *until > now);
        }
        if pauses.len() < MAX_PAUSES {
            let known = pauses.entry(way).or_insert(until);
            *known = until.max(*known);
        }
    }

    /// How long the host wants to be left alone yet.
    pub(crate) fn rest(&self, way: &Way) -> Option<Duration> {
        let until = *self.locked().get(way)?;
        let rest = until.saturating_duration_since(Instant::now());
        (!rest.is_zero()).then_some(rest)
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Way, Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use transport::http::{Clients, Settings};

    use super::*;

    fn way(namespace: &str, image: &str, more: Value, credentials: Option<Credentials>) -> Way {
        let mut spec = json!({"image": image, "interval": "1h"});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let object = json!({"metadata": {"name": "a", "namespace": namespace}, "spec": spec});
        let remote = Repository {
            name: oci_client::name::Name::parse(&format!("oci://{image}")).unwrap(),
            insecure: false,
            credentials,
            client: Clients::default().get(&Settings::default()).unwrap(),
            memory: oci_client::registry::Memory::default(),
            deadline: Instant::now(),
        };
        Way::new(&serde_json::from_value(object).unwrap(), &remote)
    }

    #[tokio::test(start_paused = true)]
    async fn all_objects_of_one_way_share_a_pause() {
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let pauses = Pauses::default();
        let account = || Some(Credentials::Basic("a".to_owned(), "b".to_owned()));
        pauses.pause(
            way("a", "ghcr.io/org/app", json!({}), None),
            Duration::from_secs(60),
        );
        pauses.pause(
            way("b", "ghcr.io/org/other", json!({}), None),
            Duration::from_secs(30),
        );
        let rest = |way: Way| pauses.rest(&way).map(|rest| rest.as_secs());
        assert_eq!(rest(way("b", "ghcr.io/org/web", json!({}), None)), Some(60));
        assert_eq!(
            rest(way("a", "ghcr.io/org/app", json!({}), account())),
            None,
            "another account"
        );
        assert_eq!(
            rest(way("a", "quay.io/org/app", json!({}), None)),
            None,
            "another host"
        );
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(rest(way("b", "ghcr.io/org/web", json!({}), None)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn who_owns_the_way_silences_no_one_else() {
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        for own in [
            json!({"insecure": true}),
            json!({"proxySecretRef": {"name": "mine"}}),
            json!({"certSecretRef": {"name": "mine"}}),
        ] {
            let pauses = Pauses::default();
            let mine = || way("attacker", "ghcr.io/org/app", own.clone(), None);
            pauses.pause(mine(), Duration::from_secs(3600));
            assert!(pauses.rest(&mine()).is_some());
            assert_eq!(
                pauses.rest(&way("victim", "ghcr.io/org/app", json!({}), None)),
                None,
                "{own}"
            );
            assert_eq!(
                pauses.rest(&way("victim", "ghcr.io/org/app", own.clone(), None)),
                None,
                "{own}"
            );
        }
    }
}
