//! Gentleness towards registries: pauses that they asked for (`Retry-After`), and a budget of requests. Both are shared by all
//! objects that come to a host by the same way.
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

/// Ways that are remembered; with more, those that nothing waits for are forgotten.
const MAX_WAYS: usize = 10_000;

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

/// What is known of one way.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// The end of the pause that was asked for.
    until: Instant,
    /// When the next turn is.
    next: Instant,
}

/// All pauses, and whose turn it is. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct Pauses {
    ways: Arc<Mutex<HashMap<Way, Known>>>,
    /// Between two turns at one host; none is zero.
    spacing: Duration,
}

impl Pauses {
    /// So many turns a second at one host, and as many at once after a second of rest; 0 sets no limit.
    pub(crate) fn new(turns_per_second: u16) -> Self {
        let spacing = Duration::from_secs(1).checked_div(turns_per_second.into());
        Self {
            ways: Arc::default(),
            spacing: spacing.unwrap_or_default(),
        }
    }

    /// Remembers that the host asked for a pause.
    pub(crate) fn pause(&self, way: Way, pause: Duration) {
        let Some(until) = Instant::now().checked_add(pause) else {
            return;
        };
        self.with(way, |known| known.until = until.max(known.until));
    }

    /// How long the host wants to be left alone yet.
    pub(crate) fn rest(&self, way: &Way) -> Option<Duration> {
        let until = self.locked().get(way)?.until;
        let rest = until.saturating_duration_since(Instant::now());
        (!rest.is_zero()).then_some(rest)
    }

    /// Waits for a turn at the host.
    pub(crate) async fn turn(&self, way: Way) {
        if self.spacing.is_zero() {
            return;
        }
        let turn = self.with(way, |known| {
            // What was not used in the last second may be used now.
            let earliest = Instant::now().checked_sub(Duration::from_secs(1));
            let turn = earliest.map_or(known.next, |earliest| known.next.max(earliest));
            known.next = turn + self.spacing;
            turn
        });
        if let Some(turn) = turn {
            tokio::time::sleep_until(turn).await;
        }
    }

    /// Changes what is known of a way. None if too many are known already, which is no reason to wait.
    fn with<T>(&self, way: Way, change: impl FnOnce(&mut Known) -> T) -> Option<T> {
        let now = Instant::now();
        let mut ways = self.locked();
        if ways.len() >= MAX_WAYS {
            ways.retain(|_, known| known.until > now || known.next > now);
        }
        if ways.len() >= MAX_WAYS && !ways.contains_key(&way) {
            return None;
        }
        let fresh = Known {
            until: now,
            next: now,
        };
        Some(change(ways.entry(way).or_insert(fresh)))
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<Way, Known>> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
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
        let pauses = Pauses::new(0);
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
            let pauses = Pauses::new(0);
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

    #[tokio::test(start_paused = true)]
    async fn turns_at_a_host_are_spaced_after_the_first_ones() {
        _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let pauses = Pauses::new(10);
        let here = || way("a", "ghcr.io/org/app", json!({}), None);
        let began = Instant::now();
        for _ in 0..5 {
            pauses.turn(here()).await;
        }
        assert_eq!(began.elapsed(), Duration::from_millis(400));
        pauses.turn(way("b", "quay.io/org/app", json!({}), None)).await;
        assert_eq!(began.elapsed(), Duration::from_millis(400), "another host");
        // After a rest, ten come at once.
        tokio::time::advance(Duration::from_secs(60)).await;
        let began = Instant::now();
        for _ in 0..11 {
            pauses.turn(here()).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        pauses.turn(here()).await;
        assert_eq!(began.elapsed(), Duration::from_millis(100));
        Pauses::new(0).turn(here()).await;
        assert_eq!(began.elapsed(), Duration::from_millis(100), "without a limit");
    }
}
