//! How well delivery goes, for each object: how often something new arrived, how long after it was made, how often it failed, and how
//! long until it was well again (the four keys of DORA, as far as a controller can see them).
//!
//! A delivery is seen by what a status was and what it becomes. Prometheus sees a counter grow only if it was there before: those of an
//! object begin with its first reconcile. Times are told as they were last for each object, and as histograms for each kind.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::meta::{Condition, FALSE, TRUE};
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::labels::ObjectLabels;

/// From half a minute to a week.
const BUCKETS: [f64; 12] = [
    5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 259_200.0, 604_800.0,
];

/// Progress of a delivery, read from a status.
#[derive(Debug, Clone, Default)]
pub struct Progress<'a> {
    /// Revision, or chart with its values, that runs.
    pub delivered: Option<String>,
    /// Revision that was tried last, in the same form.
    pub attempted: Option<String>,
    /// The condition Ready.
    pub ready: Option<&'a Condition>,
    /// True if it is not ready for something that is not its own: a source, a dependency, a newer revision.
    pub waits: bool,
}

impl Progress<'_> {
    /// When it began to fail by itself.
    fn failing_since(&self) -> Option<Timestamp> {
        let ready = self.ready.filter(|ready| ready.status == FALSE)?;
        (!self.waits).then_some(ready.last_transition_time.0)
    }

    fn is_ready(&self) -> bool {
        self.ready.is_some_and(|ready| ready.status == TRUE)
    }
}

/// Memory of an object.
#[derive(Debug, Default)]
struct Known {
    failing_since: Option<Timestamp>,
    /// Revision that was counted as delivered, or that ran when the process began.
    delivered: Option<String>,
    /// Revision that was counted as failed.
    failed: Option<String>,
}

/// Counts that follow from a change of a status.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    delivered: bool,
    /// Something else ran before.
    replaced: bool,
    failed: bool,
    recovered_after: Option<Duration>,
}

impl Known {
    /// Memory of an object that the process sees for the first time.
    fn from(before: &Progress<'_>) -> Self {
        let failing_since = before.failing_since();
        Self {
            delivered: before.delivered.clone(),
            failed: failing_since.and(before.attempted.clone()),
            failing_since,
        }
    }

    fn see(&mut self, after: &Progress<'_>, now: Timestamp) -> News {
        let mut news = News::default();
        if let Some(since) = after.failing_since() {
            self.failing_since.get_or_insert(since);
            // What runs already can only break.
            let is_new = after.attempted != self.delivered && after.attempted != self.failed;
            if is_new && after.attempted.is_some() {
                news.failed = true;
                self.failed.clone_from(&after.attempted);
            }
        } else if after.is_ready() {
            let begun = self.failing_since.take();
            news.recovered_after = begun.map(|since| now.duration_since(since).unsigned_abs());
            // Before it is ready, tests of a release may still fail.
            if after.delivered.is_some() && after.delivered != self.delivered {
                news.delivered = true;
                news.replaced = self.delivered.is_some();
                self.delivered.clone_from(&after.delivered);
            }
        }
        news
    }
}

/// Seconds that something took last.
type Seconds = Gauge<f64, AtomicU64>;

/// Clones share their values.
#[derive(Clone, Debug)]
pub(super) struct Deliveries {
    known: Arc<Mutex<HashMap<ObjectLabels, Known>>>,
    total: Family<ResultLabels, Counter>,
    lead_time: Times,
    recovery: Times,
}

/// How long something took: of each object the last time, and of each kind all times.
#[derive(Clone, Debug)]
struct Times {
    last: Family<ObjectLabels, Seconds>,
    all: Family<KindLabel, Histogram, fn() -> Histogram>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    kind: String,
    name: String,
    namespace: String,
    result: &'static str,
}

impl ResultLabels {
    fn new(object: &ObjectLabels, result: &'static str) -> Self {
        Self {
            kind: object.kind.clone(),
            name: object.name.clone(),
            namespace: object.namespace.clone(),
            result,
        }
    }
}

impl Times {
    fn register(registry: &mut Registry, name: &str, what: &str) -> Self {
        let times = Self {
            last: Family::default(),
            all: Family::new_with_constructor((|| Histogram::new(BUCKETS)) as fn() -> Histogram),
        };
        registry.register(
            format!("windlass_delivery_{name}_seconds"),
            what,
            times.all.clone(),
        );
        let last = format!("The newest of windlass_delivery_{name}_seconds for each object");
        registry.register(
            format!("windlass_delivery_last_{name}_seconds"),
            last,
            times.last.clone(),
        );
        times
    }

    fn expect(&self, object: &ObjectLabels) {
        let kind = object.kind.clone();
        drop(self.all.get_or_create(&KindLabel { kind }));
    }

    fn observe(&self, object: &ObjectLabels, took: Duration) {
        let kind = object.kind.clone();
        self.all
            .get_or_create(&KindLabel { kind })
            .observe(took.as_secs_f64());
        self.last.get_or_create(object).set(took.as_secs_f64());
    }
}

const RESULTS: [&str; 2] = ["success", "failure"];

impl Deliveries {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let total = Family::default();
        registry.register(
            "windlass_deliveries",
            "What was delivered to the cluster (success), and what failed (failure), each new revision once",
            total.clone(),
        );
        Self {
            known: Arc::default(),
            total,
            lead_time: Times::register(
                registry,
                "lead_time",
                "From the commit, or from when the artifact or chart was made, until it took the place of what was there",
            ),
            recovery: Times::register(
                registry,
                "recovery",
                "From the first failure of an object until it was ready again",
            ),
        }
    }

    /// Begins the series of an object.
    pub(super) fn expect(&self, object: &ObjectLabels) {
        for result in RESULTS {
            drop(self.total.get_or_create(&ResultLabels::new(object, result)));
        }
        self.lead_time.expect(object);
        self.recovery.expect(object);
    }

    pub(super) fn see(
        &self,
        object: &ObjectLabels,
        before: &Progress<'_>,
        after: &Progress<'_>,
        now: Timestamp,
        made_at: impl FnOnce() -> Option<Timestamp>,
    ) {
        let news = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let known = known.entry(object.clone());
            known.or_insert_with(|| Known::from(before)).see(after, now)
        };
        for (happened, result) in [news.delivered, news.failed].into_iter().zip(RESULTS) {
            if happened {
                self.total.get_or_create(&ResultLabels::new(object, result)).inc();
            }
        }
        if let Some(after) = news.recovered_after {
            self.recovery.observe(object, after);
        }
        // What comes first to a cluster may be as old as it likes. A clock may be ahead of ours, and some builds have no time.
        let known = |made_at: &Timestamp| *made_at <= now && made_at.as_second() > 0;
        if news.replaced
            && let Some(made_at) = made_at().filter(known)
        {
            let took = now.duration_since(made_at).unsigned_abs();
            self.lead_time.observe(object, took);
        }
    }

    pub(super) fn forget(&self, object: &ObjectLabels) {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
        for result in RESULTS {
            self.total.remove(&ResultLabels::new(object, result));
        }
        self.lead_time.last.remove(object);
        self.recovery.last.remove(object);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::ObjectKey;
    use crate::metrics::Metrics;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ready(status: &str, since: i64) -> Condition {
        Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: "Reason".to_owned(),
            message: String::new(),
            last_transition_time: Time(at(since)),
            observed_generation: None,
        }
    }

    fn progress<'a>(delivered: &str, attempted: &str, ready: &'a Condition) -> Progress<'a> {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Progress {
            delivered: some(delivered),
            attempted: some(attempted),
            ready: Some(ready),
            waits: false,
        }
    }

    /// Counts for an object that goes through these states: `+` delivered, `-` failed, and the seconds until
    /// recovery.
    fn counts_of(states: &[Progress<'_>]) -> String {
        let mut known = Known::from(&states[0]);
        let mut told = String::new();
        for after in &states[1..] {
            let news = known.see(after, at(100));
            told.push_str(if news.delivered { "+" } else { "" });
            told.push_str(if news.failed { "-" } else { "" });
            if let Some(after) = news.recovered_after {
                told.push_str(&after.as_secs().to_string());
            }
            told.push('.');
        }
        told
    }

    #[test]
    fn each_revision_is_delivered_or_fails_once_and_its_object_recovers_once() {
        let (good, works, bad) = (ready("True", 0), ready("Unknown", 5), ready("False", 10));
        let states = [
            progress("1", "1", &good),
            progress("1", "2", &works),
            progress("1", "2", &bad),
            // It is tried again.
            progress("1", "2", &works),
            progress("1", "2", &bad),
            // The next revision fails too.
            progress("1", "3", &bad),
            progress("1", "4", &works),
            progress("4", "4", &good),
            progress("4", "4", &good),
        ];
        assert_eq!(counts_of(&states), ".-...-..+90..");
    }

    #[test]
    fn what_runs_already_breaks_and_recovers_but_is_not_delivered_again() {
        let (good, bad) = (ready("True", 0), ready("False", 40));
        let states = [&good, &bad, &good, &bad].map(|ready| progress("1", "1", ready));
        assert_eq!(counts_of(&states), ".60..");
    }

    #[test]
    fn a_release_is_delivered_when_its_tests_are_through() {
        let (good, works, bad) = (ready("True", 0), ready("Unknown", 5), ready("False", 40));
        let tested = [
            progress("1", "1", &good),
            progress("2", "2", &works),
            progress("2", "2", &good),
        ];
        assert_eq!(counts_of(&tested), ".+.");
        let failed = [
            progress("1", "1", &good),
            progress("2", "2", &works),
            progress("2", "2", &bad),
        ];
        assert_eq!(counts_of(&failed), ".-.");
    }

    #[test]
    fn a_failure_of_an_earlier_process_is_not_counted_again_and_its_end_is_seen() {
        let (good, works, bad) = (ready("True", 70), ready("Unknown", 20), ready("False", 10));
        let states = [
            progress("1", "2", &bad),
            progress("1", "2", &works),
            progress("1", "2", &bad),
            progress("3", "3", &good),
        ];
        assert_eq!(counts_of(&states), "..+90.");
    }

    #[test]
    fn who_waits_has_not_failed() {
        let bad = ready("False", 10);
        let waits = Progress {
            waits: true,
            ..progress("", "1", &bad)
        };
        assert_eq!(counts_of(&[Progress::default(), waits]), ".");
    }

    #[test]
    fn series_of_an_object_begin_at_zero_and_go_with_it() {
        let metrics = Metrics::new();
        let (good, made_at) = (ready("True", 0), Timestamp::now() - Duration::from_secs(60));
        let key = ObjectKey::new("apps", "web");
        let labels = r#"kind="Kustomization",name="web",namespace="apps""#;
        let has = |line: String| {
            let text = metrics.encode().unwrap();
            assert!(
                text.lines().any(|found| found.starts_with(&line)),
                "{line} is not in\n{text}"
            );
        };
        metrics.expect_deliveries("Kustomization", &key);
        has(format!(
            r#"windlass_deliveries_total{{{labels},result="success"}} 0"#
        ));
        has(format!(
            r#"windlass_deliveries_total{{{labels},result="failure"}} 0"#
        ));
        has(r#"windlass_delivery_lead_time_seconds_count{kind="Kustomization"} 0"#.to_owned());

        let revision = |revision: &str| progress(revision, revision, &good);
        metrics.progressed(
            "Kustomization",
            &key,
            &Progress::default(),
            &revision("1"),
            || Some(made_at),
        );
        has(format!(
            r#"windlass_deliveries_total{{{labels},result="success"}} 1"#
        ));
        has(r#"windlass_delivery_lead_time_seconds_count{kind="Kustomization"} 0"#.to_owned());
        metrics.progressed("Kustomization", &key, &revision("1"), &revision("2"), || {
            Some(made_at)
        });
        has(r#"windlass_delivery_lead_time_seconds_bucket{le="30.0",kind="Kustomization"} 0"#.to_owned());
        has(r#"windlass_delivery_lead_time_seconds_bucket{le="120.0",kind="Kustomization"} 1"#.to_owned());
        has(format!("windlass_delivery_last_lead_time_seconds{{{labels}}} 6"));

        metrics.forget_object("Kustomization", "apps", "web");
        assert!(!metrics.encode().unwrap().contains(labels));
    }
}
