//! One candidate: what it saw of the Lease, and one attempt to get or keep it.

use std::future::pending;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use prometheus_client::metrics::counter::Counter;
use tokio::time::Instant;

use super::announcement::{Announcement, Leader};
use crate::telemetry::random_id;

/// Annotation of a Lease: the holder, and where it serves what others ask it.
const ADDRESSES: &str = "windlass.dev/addresses";

/// What a Lease is like for who only looks at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seat {
    /// There is none, and never was.
    Missing,
    /// It was given up, or has run out.
    Vacant,
    /// Someone else leads.
    Taken,
}

/// Changes of a Lease, as the API server reports them.
type Changes = BoxStream<'static, kube::Result<WatchEvent<Lease>>>;

/// How an attempt ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// This process holds the Lease.
    Leads,
    /// Someone else does.
    HeldBy(String),
}

pub(super) struct Elector {
    api: Api<Lease>,
    name: String,
    namespace: String,
    identity: String,
    lease_duration: Duration,
    /// The Lease as last seen, and when it was first seen like that.
    observed: Option<(Lease, Instant)>,
    /// Changes of the Lease while this process waits.
    watched: Option<Changes>,
    /// Counts the renewals that one request was not enough for.
    slow_renewals: Counter,
    /// Where this process and the leader serve.
    pub(super) announcement: Announcement,
}

impl Elector {
    pub(super) fn new(
        client: Client,
        name: &str,
        namespace: &str,
        lease_duration: Duration,
        slow_renewals: Counter,
    ) -> Self {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            api: Api::namespaced(client, namespace),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            identity: format!("{}_{}", host.trim(), random_id()),
            lease_duration,
            observed: None,
            watched: None,
            slow_renewals,
            announcement: Announcement::default(),
        }
    }

    /// Host name and a random id, so that a restarted pod is another candidate.
    pub(super) fn identity(&self) -> &str {
        &self.identity
    }

    /// Renews the Lease if this process holds it, or takes it if no one does any more.
    pub(super) async fn try_acquire_or_renew(&mut self) -> Result<Attempt, kube::Error> {
        // While our own Lease holds, no one else may have written: one request is enough.
        if let Some((lease, since)) = self.observed.clone()
            && self.is_ours(&lease)
            && holds(&lease, since, Instant::now())
        {
            if self.replace(&lease).await.is_ok() {
                return Ok(Attempt::Leads);
            }
            self.slow_renewals.inc();
        }
        let Some(found) = self.api.get_opt(&self.name).await? else {
            return self.create().await;
        };
        if self.is_taken(&found) {
            return Ok(Attempt::HeldBy(holder(&found).unwrap_or_default().to_owned()));
        }
        match self.replace(&found).await {
            Ok(()) => Ok(Attempt::Leads),
            // Someone was quicker; the next look tells who.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Attempt::HeldBy(String::new())),
            Err(error) => Err(error),
        }
    }

    /// Looks whether someone leads, and where, without a wish to.
    pub(super) async fn look(&mut self) -> Result<Seat, kube::Error> {
        let Some(found) = self.api.get_opt(&self.name).await? else {
            return Ok(Seat::Missing);
        };
        let is_taken = self.is_taken(&found);
        Ok(if is_taken { Seat::Taken } else { Seat::Vacant })
    }

    /// Returns when the holder gives the Lease up. Never where the Lease cannot be watched: who waits looks now and then as well.
    pub(super) async fn until_given_up(&mut self) {
        loop {
            let watched = match &mut self.watched {
                Some(watched) => watched,
                None => match self.watch().await {
                    Ok(watched) => self.watched.insert(watched),
                    Err(error) => {
                        tracing::debug!(%error, "failed to watch the leader lease");
                        return pending().await;
                    }
                },
            };
            match watched.next().await {
                Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease)))
                    if holder(&lease).is_none() =>
                {
                    return;
                }
                Some(Ok(WatchEvent::Deleted(_))) => return,
                Some(Ok(_)) => {}
                Some(Err(_)) | None => {
                    self.watched = None;
                    return pending().await;
                }
            }
        }
    }

    /// Watches the Lease from where it was last seen.
    async fn watch(&mut self) -> kube::Result<Changes> {
        let seen = self.observed.as_ref();
        let version = seen.and_then(|(lease, _)| lease.metadata.resource_version.clone());
        let only = WatchParams::default().fields(&format!("metadata.name={}", self.name));
        let changes = self
            .api
            .watch(&only, &version.unwrap_or_else(|| "0".to_owned()))
            .await?;
        Ok(changes.boxed())
    }

    /// Returns whether someone else holds the Lease, and notes where that is.
    fn is_taken(&mut self, found: &Lease) -> bool {
        let since = self.observe(found.clone());
        let is_taken = !self.is_ours(found) && holder(found).is_some() && holds(found, since, Instant::now());
        if is_taken {
            let at = leader(found);
            self.announcement.leader.send_if_modified(|known| {
                let is_new = *known != at;
                *known = at;
                is_new
            });
        }
        is_taken
    }

    /// Writes an empty holder, so that the next candidate need not wait. Does nothing if this process does not
    /// hold the Lease any more.
    pub(super) async fn release(&mut self) -> Result<(), kube::Error> {
        let Some(mut lease) = self
            .api
            .get_opt(&self.name)
            .await?
            .filter(|lease| self.is_ours(lease))
        else {
            return Ok(());
        };
        let now = MicroTime(Timestamp::now());
        let transitions = lease.spec.as_ref().and_then(|spec| spec.lease_transitions);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: transitions,
            ..LeaseSpec::default()
        });
        self.api
            .replace(&self.name, &PostParams::default(), &lease)
            .await?;
        self.observed = None;
        Ok(())
    }

    /// For tests: the same candidate, talking to another server.
    #[cfg(test)]
    pub(super) fn with_client(mut self, client: Client) -> Self {
        self.api = Api::namespaced(client, &self.namespace);
        self
    }

    async fn create(&mut self) -> Result<Attempt, kube::Error> {
        let began = Instant::now();
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(self.name.clone()),
                namespace: Some(self.namespace.clone()),
                ..ObjectMeta::default()
            },
            spec: Some(self.spec(None)),
        };
        let lease = self.announced(lease);
        match self.api.create(&PostParams::default(), &lease).await {
            Ok(created) => {
                self.observed = Some((created, began));
                Ok(Attempt::Leads)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Attempt::HeldBy(String::new())),
            Err(error) => Err(error),
        }
    }

    /// Writes our record over `lease`; the resource version in it makes this fail if someone was quicker.
    async fn replace(&mut self, lease: &Lease) -> Result<(), kube::Error> {
        // The Lease counts from before the request: the server may write at any moment from now on.
        let began = Instant::now();
        let mut renewed = lease.clone();
        renewed.spec = Some(self.spec(Some(lease)));
        let renewed = self.announced(renewed);
        let written = self
            .api
            .replace(&self.name, &PostParams::default(), &renewed)
            .await?;
        self.observed = Some((written, began));
        Ok(())
    }

    /// Says on the Lease where this process serves.
    fn announced(&self, mut lease: Lease) -> Lease {
        let annotations = lease.metadata.annotations.get_or_insert_default();
        if self.announcement.own.is_empty() {
            annotations.remove(ADDRESSES);
        } else {
            let own: Vec<_> = self.announcement.own.iter().map(ToString::to_string).collect();
            annotations.insert(
                ADDRESSES.to_owned(),
                format!("{} {}", self.identity, own.join(",")),
            );
        }
        if annotations.is_empty() {
            lease.metadata.annotations = None;
        }
        lease
    }

    /// Our record: a renewal keeps the time of acquisition, a change of holder counts a transition.
    fn spec(&self, previous: Option<&Lease>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let ours = previous.is_some_and(|lease| self.is_ours(lease));
        let previous = previous.and_then(|lease| lease.spec.as_ref());
        let transitions = previous.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        let transitions = if ours || previous.is_none() {
            transitions
        } else {
            transitions.saturating_add(1)
        };
        let acquired = previous
            .and_then(|spec| spec.acquire_time.clone())
            .filter(|_| ours);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)),
            acquire_time: Some(acquired.unwrap_or_else(|| now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        }
    }

    /// Notes what was found; gives the time since when it is known to be like that.
    fn observe(&mut self, found: Lease) -> Instant {
        match &self.observed {
            Some((known, since)) if known.spec == found.spec => *since,
            _ => {
                let now = Instant::now();
                self.observed = Some((found, now));
                now
            }
        }
    }

    fn is_ours(&self, lease: &Lease) -> bool {
        holder(lease) == Some(self.identity.as_str())
    }
}

/// The holder of a Lease. Another program that holds it leaves what ours has said there, with the holder of then.
fn leader(lease: &Lease) -> Leader {
    let annotation = lease
        .metadata
        .annotations
        .as_ref()
        .and_then(|all| all.get(ADDRESSES));
    let said = annotation.and_then(|said| said.split_once(' '));
    let of_holder = said.filter(|(of, _)| holder(lease) == Some(of));
    let parsed = of_holder.map(|(_, addresses)| addresses.split(',').map(str::parse).collect());
    parsed.and_then(Result::ok).map_or(Leader::Silent, Leader::At)
}

/// Holder of the Lease; None if it was released.
fn holder(lease: &Lease) -> Option<&str> {
    lease
        .spec
        .as_ref()?
        .holder_identity
        .as_deref()
        .filter(|holder| !holder.is_empty())
}

/// Returns whether the Lease still holds, counted from when it was seen.
fn holds(lease: &Lease, since: Instant, now: Instant) -> bool {
    let seconds = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.lease_duration_seconds)
        .unwrap_or(0);
    now < since + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}
