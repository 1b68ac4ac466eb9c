//! The metrics of a controller, under the names that Flux's dashboards know.
//!
//! In: what the queue, the client, leader election and the reconcilers report. Out: one text in the
//! OpenMetrics format, served by `admin`. Values that can be read when asked for (process, queue depth,
//! running work) are collected at the scrape, so that nothing ticks in between.
//!
//! The library appends `_total` to the name of a counter: counters are registered without it.

mod deliveries;
pub mod gauges;
mod joined;
mod labels;
mod objects;
mod process;
mod reconcile;
mod rest;
mod token_cache;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::facts::HasFacts;
use jiff::Timestamp;
use kube::runtime::reflector::Store;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use labels::{NameLabel, ObjectLabels};

pub use deliveries::Progress;
pub(crate) use joined::joined;
pub use reconcile::{QueueMetrics, QueueSnapshot};
pub use rest::RestMetrics;
pub use token_cache::TokenCacheCounts;

use crate::ObjectKey;

/// Content type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Buckets of gotk_reconcile_duration_seconds: what Go's `ExponentialBucketsRange(10e-3, 1800, 10)` gives. They
/// are written out because the power function here differs in the last digit, which would make other series.
const RECONCILE_DURATION_BUCKETS: [f64; 10] = [
    0.01,
    0.038363583488692544,
    0.1471764538093883,
    0.5646216173286169,
    2.166090855590701,
    8.309900738254731,
    31.879757075478317,
    122.30217221643493,
    469.19495946736544,
    1799.9999999999986,
];

/// All metrics of one process. Clones share their values.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    reconcile_duration: Family<ObjectLabels, Histogram, fn() -> Histogram>,
    leader: Family<NameLabel, Gauge>,
    slow_renewals: Family<NameLabel, Counter>,
    rest: RestMetrics,
    reconcile: reconcile::Families,
    objects: objects::Objects,
    deliveries: deliveries::Deliveries,
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// Makes the registry and registers what every controller has.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        let reconcile_duration = Family::new_with_constructor(
            (|| Histogram::new(RECONCILE_DURATION_BUCKETS)) as fn() -> Histogram,
        );
        registry.register(
            "gotk_reconcile_duration_seconds",
            "The duration in seconds of the reconciliation of one object",
            reconcile_duration.clone(),
        );
        let leader = Family::default();
        registry.register(
            "leader_election_master_status",
            "Whether this process holds the Lease of this name: 1 if so, else 0",
            leader.clone(),
        );
        let slow_renewals = Family::default();
        registry.register(
            "leader_election_slowpath",
            "Renewals of this Lease that had to look at it first, since it could not be written as it was known",
            slow_renewals.clone(),
        );
        let rest = RestMetrics::register(&mut registry);
        let reconcile = reconcile::Families::register(&mut registry);
        let objects = objects::Objects::default();
        registry.register_collector(Box::new(objects.clone()));
        let deliveries = deliveries::Deliveries::register(&mut registry);
        registry.register_collector(Box::new(process::Collector));
        Self {
            registry: Arc::new(Mutex::new(registry)),
            reconcile_duration,
            leader,
            slow_renewals,
            rest,
            reconcile,
            objects,
            deliveries,
        }
    }

    /// Registers a controller's own metrics.
    pub fn register(&self, register: impl FnOnce(&mut Registry)) {
        register(&mut self.registry.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Registers the cache of cloud providers' tokens, which is asked at each scrape.
    pub fn token_cache(&self, counts: impl Fn() -> TokenCacheCounts + Send + Sync + 'static) {
        self.register(|registry| registry.register_collector(Box::new(token_cache::Collector(counts))));
    }

    /// Tells of the objects of a store that `is_ours`, at each scrape.
    pub fn objects<K>(&self, store: Store<K>, is_ours: impl Fn(&K) -> bool + Send + Sync + 'static)
    where
        K: HasFacts + Clone + Send + Sync + 'static,
    {
        self.objects.add(store, is_ours);
    }

    /// Tells which program this is. Rules choose by this metric which series are ours.
    pub fn build(&self, name: &'static str) {
        let info = Info::new(vec![("name", name), ("version", env!("CARGO_PKG_VERSION"))]);
        self.register(|registry| registry.register("windlass_build", "Which program this is", info));
    }

    /// Begins the series of an object's deliveries, before there are any.
    pub fn expect_deliveries(&self, kind: &str, key: &ObjectKey) {
        self.deliveries
            .expect(&ObjectLabels::new(kind, &key.namespace, &key.name));
    }

    /// Records what a new status says of delivery. `made_at` is asked when something was delivered: the time of its commit.
    pub fn progressed(
        &self,
        kind: &str,
        key: &ObjectKey,
        before: &Progress<'_>,
        after: &Progress<'_>,
        made_at: impl FnOnce() -> Option<Timestamp>,
    ) {
        let object = ObjectLabels::new(kind, &key.namespace, &key.name);
        self.deliveries
            .see(&object, before, after, Timestamp::now(), made_at);
    }

    /// Records how long the reconciliation of one object took.
    pub fn observe_reconcile(&self, kind: &str, namespace: &str, name: &str, duration: Duration) {
        self.reconcile_duration
            .get_or_create(&ObjectLabels::new(kind, namespace, name))
            .observe(duration.as_secs_f64());
    }

    /// Removes the series of an object that is gone: series never expire by themselves.
    pub fn forget_object(&self, kind: &str, namespace: &str, name: &str) {
        let object = ObjectLabels::new(kind, namespace, name);
        self.reconcile_duration.remove(&object);
        self.deliveries.forget(&object);
    }

    /// The counter of renewals that took client-go's slow path, which is there once it was asked for.
    pub(crate) fn slow_renewals(&self, lease: &str) -> Counter {
        self.slow_renewals.get_or_create_owned(&NameLabel {
            name: lease.to_owned(),
        })
    }

    /// Records whether this process holds the Lease.
    pub fn set_leader(&self, lease: &str, leads: bool) {
        self.leader
            .get_or_create(&NameLabel {
                name: lease.to_owned(),
            })
            .set(i64::from(leads));
    }

    /// Counters of requests to the Kubernetes API.
    pub fn rest(&self) -> &RestMetrics {
        &self.rest
    }

    /// Metrics of one controller's queue; all its series start at zero.
    pub fn queue(&self, controller: &str) -> QueueMetrics {
        self.reconcile.queue(controller)
    }

    /// Everything as OpenMetrics text.
    pub fn encode(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        text::encode(
            &mut text,
            &self.registry.lock().unwrap_or_else(PoisonError::into_inner),
        )?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use api::meta::Condition;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn encoded(metrics: &Metrics) -> String {
        metrics.encode().expect("writing to a String does not fail")
    }

    /// Names of samples without the suffixes of histograms.
    fn names(text: &str) -> BTreeSet<&str> {
        text.lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.split(['{', ' ']).next().unwrap_or_default())
            .map(|name| {
                ["_bucket", "_sum", "_count"]
                    .iter()
                    .find_map(|suffix| name.strip_suffix(suffix))
                    .unwrap_or(name)
            })
            .collect()
    }

    fn deliver_and_recover(metrics: &Metrics) {
        let began = Timestamp::now() - Duration::from_secs(60);
        let ready = |status: &str| Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: "Reason".to_owned(),
            message: String::new(),
            last_transition_time: Time(began),
            observed_generation: None,
        };
        let (good, bad) = (ready("True"), ready("False"));
        let before = Progress {
            ready: Some(&bad),
            ..Progress::default()
        };
        let after = Progress {
            delivered: Some("1".to_owned()),
            ready: Some(&good),
            ..Progress::default()
        };
        let key = ObjectKey::new("apps", "web");
        metrics.expect_deliveries("Kustomization", &key);
        metrics.progressed("Kustomization", &key, &before, &after, || Some(began));
        let next = Progress {
            delivered: Some("2".to_owned()),
            ..after.clone()
        };
        metrics.progressed("Kustomization", &key, &after, &next, || Some(began));
    }

    #[test]
    fn exposed_names_are_those_of_flux_and_our_own() {
        let metrics = Metrics::new();
        metrics.observe_reconcile("Kustomization", "apps", "web", Duration::from_millis(5));
        metrics.set_leader("source-controller-leader-election", true);
        metrics.slow_renewals("source-controller-leader-election");
        metrics.rest().observe("GET", "200", "10.0.0.1:443");
        let queue = metrics.queue("kustomization");
        queue.probe(QueueSnapshot::default);
        deliver_and_recover(&metrics);
        let expected = BTreeSet::from([
            "controller_runtime_active_workers",
            "controller_runtime_max_concurrent_reconciles",
            "controller_runtime_reconcile_errors_total",
            "controller_runtime_reconcile_panics_total",
            "controller_runtime_reconcile_time_seconds",
            "controller_runtime_reconcile_total",
            "controller_runtime_terminal_reconcile_errors_total",
            "gotk_reconcile_duration_seconds",
            "leader_election_master_status",
            "leader_election_slowpath_total",
            "process_cpu_seconds_total",
            "process_max_fds",
            "process_open_fds",
            "process_resident_memory_bytes",
            "process_start_time_seconds",
            "process_virtual_memory_bytes",
            "rest_client_requests_total",
            "windlass_deliveries_total",
            "windlass_delivery_last_lead_time_seconds",
            "windlass_delivery_last_recovery_seconds",
            "windlass_delivery_lead_time_seconds",
            "windlass_delivery_recovery_seconds",
            "workqueue_adds_total",
            "workqueue_depth",
            "workqueue_longest_running_processor_seconds",
            "workqueue_queue_duration_seconds",
            "workqueue_retries_total",
            "workqueue_unfinished_work_seconds",
            "workqueue_work_duration_seconds",
        ]);
        assert_eq!(names(&encoded(&metrics)), expected);
    }

    #[test]
    fn labels_are_those_of_flux() {
        let metrics = Metrics::new();
        metrics.observe_reconcile("Kustomization", "apps", "web", Duration::from_millis(5));
        metrics.set_leader("lease", true);
        metrics.rest().observe("GET", "200", "10.0.0.1:443");
        metrics.queue("kustomization").probe(|| QueueSnapshot {
            depth: 3,
            ..QueueSnapshot::default()
        });
        let text = encoded(&metrics);
        for line in [
            r#"gotk_reconcile_duration_seconds_count{kind="Kustomization",name="web",namespace="apps"} 1"#,
            r#"leader_election_master_status{name="lease"} 1"#,
            r#"rest_client_requests_total{code="200",host="10.0.0.1:443",method="GET"} 1"#,
            r#"controller_runtime_reconcile_total{controller="kustomization",result="requeue_after"} 0"#,
            r#"controller_runtime_reconcile_errors_total{controller="kustomization"} 0"#,
            r#"workqueue_depth{name="kustomization",controller="kustomization",priority="0"} 3"#,
            r#"workqueue_adds_total{name="kustomization",controller="kustomization"} 0"#,
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line}\nis not in\n{text}"
            );
        }
    }

    #[test]
    fn buckets_of_the_reconcile_duration_are_those_of_flux() {
        // As Flux exposes them. The library may print more digits, of the same number.
        let expected = [
            0.01,
            0.038363583488692544,
            0.1471764538093883,
            0.5646216173286169,
            2.166090855590701,
            8.309900738254731,
            31.879757075478317,
            122.30217221643493,
            469.19495946736544,
            1799.9999999999986,
            f64::INFINITY,
        ];
        let metrics = Metrics::new();
        metrics.observe_reconcile("K", "ns", "n", Duration::from_secs(1));
        let text = encoded(&metrics);
        let bounds: Vec<f64> = text
            .lines()
            .filter(|line| line.starts_with("gotk_reconcile_duration_seconds_bucket"))
            .filter_map(|line| line.split("le=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(bounds, expected);
    }

    #[test]
    fn series_of_a_deleted_object_are_removed() {
        let metrics = Metrics::new();
        metrics.observe_reconcile("Kustomization", "apps", "web", Duration::from_millis(5));
        metrics.observe_reconcile("Kustomization", "apps", "db", Duration::from_millis(5));
        metrics.forget_object("Kustomization", "apps", "web");
        let text = encoded(&metrics);
        assert!(!text.contains(r#"name="web""#), "{text}");
        assert!(text.contains(r#"name="db""#), "{text}");
    }

    #[test]
    fn the_token_cache_is_asked_at_each_scrape() {
        let metrics = Metrics::new();
        metrics.token_cache(|| TokenCacheCounts {
            hits: 5,
            misses: 2,
            evictions: 1,
            issued: 1,
            failures: 1,
            kept: 3,
        });
        let text = encoded(&metrics);
        for line in [
            r#"gotk_token_cache_events_total{event_type="cache_hit"} 5"#,
            r#"gotk_token_cache_events_total{event_type="cache_miss"} 2"#,
            r#"gotk_token_cache_requests_total{status="success"} 6"#,
            r#"gotk_token_cache_requests_total{status="failure"} 1"#,
            "gotk_token_cache_evictions_total 1",
            "gotk_token_cached_items 3",
        ] {
            assert!(
                text.lines().any(|found| found == line),
                "{line}\nis not in\n{text}"
            );
        }
    }

    #[test]
    fn a_controllers_own_metrics_are_exposed() {
        let metrics = Metrics::new();
        let own: Gauge = Gauge::default();
        metrics.register(|registry| registry.register("windlass_own", "Our own", own.clone()));
        own.set(7);
        assert!(encoded(&metrics).contains("\nwindlass_own 7\n"));
    }
}
