//! How well delivery goes, for each object: how often something new arrived, how long after it was made, how often it failed, and how
//! long until it was well again (the four keys of DORA, as far as a controller can see them).
//!
//! A delivery is seen by what a status was and what it becomes. What a restart loses is when a failure began: it counts again from
//! the condition's transition.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::meta::{Condition, FALSE, TRUE, reasons};
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::ObjectLabels;

/// From half a minute to a week.
const BUCKETS: [f64; 12] = [
    5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0, 259_200.0, 604_800.0,
];

/// What a status says of delivery.
#[derive(Debug, Clone, Copy, Default)]
pub struct Progress<'a> {
    /// What runs: a revision, a release.
    pub delivered: Option<&'a str>,
    /// What was tried last.
    pub attempted: Option<&'a str>,
    /// The condition Ready.
    pub ready: Option<&'a Condition>,
}

impl Progress<'_> {
    /// When it began to fail by itself. Whoever waits for others has not failed.
    fn failing_since(&self) -> Option<Timestamp> {
        let ready = self.ready.filter(|ready| ready.status == FALSE)?;
        let waits = match ready.reason.as_str() {
            reasons::DEPENDENCY_NOT_READY => true,
            // Either there is nothing to try, or what was tried lacks something, such as the path.
            reasons::ARTIFACT_FAILED => self.attempted == self.delivered,
            _ => false,
        };
        (!waits).then_some(ready.last_transition_time.0)
    }

    fn is_ready(&self) -> bool {
        self.ready.is_some_and(|ready| ready.status == TRUE)
    }
}

/// What is remembered of an object.
#[derive(Debug, Default)]
struct Known {
    failing_since: Option<Timestamp>,
    /// What was counted as failed.
    failed: Option<String>,
}

/// What came of a change of a status.
#[derive(Debug, Default, PartialEq, Eq)]
struct News {
    delivered: bool,
    failed: bool,
    recovered_after: Option<Duration>,
}

impl Known {
    fn see(&mut self, before: Progress<'_>, after: Progress<'_>, now: Timestamp) -> News {
        let mut news = News::default();
        let was_failing = before.failing_since();
        let begun = self.failing_since.or(was_failing);
        if let Some(since) = after.failing_since() {
            self.failing_since = Some(begun.unwrap_or(since));
            let attempted = after.attempted.unwrap_or_default();
            let is_known = self.failed.as_deref() == Some(attempted)
                || (was_failing.is_some() && before.attempted == after.attempted);
            news.failed = !is_known;
            self.failed = Some(attempted.to_owned());
        } else if after.is_ready() {
            news.recovered_after = begun.map(|since| now.duration_since(since).unsigned_abs());
            *self = Self::default();
        } else if self.failing_since.is_none() {
            self.failing_since = was_failing;
        }
        news.delivered = after.is_ready() && after.delivered.is_some() && before.delivered != after.delivered;
        news
    }
}

/// Clones share their values.
#[derive(Clone, Debug)]
pub(super) struct Deliveries {
    known: Arc<Mutex<HashMap<ObjectLabels, Known>>>,
    total: Family<ResultLabels, Counter>,
    lead_time: Family<ObjectLabels, Histogram, fn() -> Histogram>,
    recovery: Family<ObjectLabels, Histogram, fn() -> Histogram>,
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

impl Deliveries {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let histogram = (|| Histogram::new(BUCKETS)) as fn() -> Histogram;
        let deliveries = Self {
            known: Arc::default(),
            total: Family::default(),
            lead_time: Family::new_with_constructor(histogram),
            recovery: Family::new_with_constructor(histogram),
        };
        registry.register(
            "windlass_deliveries",
            "What was delivered to the cluster (success), and what failed (failure), each new revision once",
            deliveries.total.clone(),
        );
        registry.register(
            "windlass_delivery_lead_time_seconds",
            "From the commit, or from when the artifact or chart was made, until it was ready in the cluster",
            deliveries.lead_time.clone(),
        );
        registry.register(
            "windlass_delivery_recovery_seconds",
            "From the first failure of an object until it was ready again",
            deliveries.recovery.clone(),
        );
        deliveries
    }

    pub(super) fn see(
        &self,
        object: ObjectLabels,
        before: Progress<'_>,
        after: Progress<'_>,
        now: Timestamp,
        made_at: impl FnOnce() -> Option<Timestamp>,
    ) {
        let news = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            known.entry(object.clone()).or_default().see(before, after, now)
        };
        for (happened, result) in [(news.delivered, "success"), (news.failed, "failure")] {
            if happened {
                self.total
                    .get_or_create(&ResultLabels::new(&object, result))
                    .inc();
            }
        }
        if let Some(after) = news.recovered_after {
            self.recovery.get_or_create(&object).observe(after.as_secs_f64());
        }
        // A clock may be ahead of ours.
        if news.delivered
            && let Some(made_at) = made_at().filter(|made_at| *made_at <= now)
        {
            let took = now.duration_since(made_at).as_secs_f64();
            self.lead_time.get_or_create(&object).observe(took);
        }
    }

    pub(super) fn forget(&self, object: &ObjectLabels) {
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
        for result in ["success", "failure"] {
            self.total.remove(&ResultLabels::new(object, result));
        }
        self.lead_time.remove(object);
        self.recovery.remove(object);
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

    fn ready(status: &str, reason: &str, since: i64) -> Condition {
        Condition {
            type_: "Ready".to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: String::new(),
            last_transition_time: Time(at(since)),
            observed_generation: None,
        }
    }

    fn progress<'a>(delivered: &'a str, attempted: &'a str, ready: &'a Condition) -> Progress<'a> {
        Progress {
            delivered: Some(delivered).filter(|text| !text.is_empty()),
            attempted: Some(attempted),
            ready: Some(ready),
        }
    }

    #[test]
    fn a_revision_fails_once_and_its_object_recovers_once() {
        let mut known = Known::default();
        let (good, works) = (ready("True", "Succeeded", 0), ready("Unknown", "Progressing", 5));
        let bad = ready("False", "HealthCheckFailed", 10);
        let steps = [
            (
                progress("1", "1", &good),
                progress("1", "2", &works),
                (false, false, None),
            ),
            (
                progress("1", "2", &works),
                progress("1", "2", &bad),
                (false, true, None),
            ),
            // It is tried again.
            (
                progress("1", "2", &bad),
                progress("1", "2", &works),
                (false, false, None),
            ),
            (
                progress("1", "2", &works),
                progress("1", "2", &bad),
                (false, false, None),
            ),
            // The next revision fails too.
            (
                progress("1", "2", &bad),
                progress("1", "3", &bad),
                (false, true, None),
            ),
            (
                progress("1", "3", &bad),
                progress("1", "4", &works),
                (false, false, None),
            ),
            (
                progress("1", "4", &works),
                progress("4", "4", &good),
                (true, false, Some(90)),
            ),
            (
                progress("4", "4", &good),
                progress("4", "4", &good),
                (false, false, None),
            ),
        ];
        for (number, (before, after, (delivered, failed, recovered))) in steps.into_iter().enumerate() {
            let expected = News {
                delivered,
                failed,
                recovered_after: recovered.map(Duration::from_secs),
            };
            assert_eq!(known.see(before, after, at(100)), expected, "step {number}");
        }
    }

    #[test]
    fn a_failure_of_an_earlier_process_is_not_counted_again_and_its_end_is_seen() {
        let mut known = Known::default();
        let (good, bad) = (ready("True", "Succeeded", 70), ready("False", "BuildFailed", 10));
        let again = known.see(progress("1", "2", &bad), progress("1", "2", &bad), at(60));
        assert_eq!(again, News::default());
        let over = known.see(progress("1", "2", &bad), progress("3", "3", &good), at(70));
        assert_eq!(over.recovered_after, Some(Duration::from_secs(60)));
        assert!(over.delivered);
    }

    #[test]
    fn who_waits_has_not_failed() {
        let mut known = Known::default();
        let waits = ready("False", reasons::DEPENDENCY_NOT_READY, 10);
        let before = Progress::default();
        assert_eq!(
            known.see(before, progress("", "1", &waits), at(20)),
            News::default()
        );
    }

    #[test]
    fn what_is_gone_leaves_no_series() {
        let metrics = Metrics::new();
        let good = ready("True", "Succeeded", 0);
        let (key, made_at) = (
            ObjectKey::new("apps", "web"),
            Timestamp::now() - Duration::from_secs(60),
        );
        let after = progress("1", "1", &good);
        metrics.progressed("Kustomization", &key, Progress::default(), after, || {
            Some(made_at)
        });
        let text = metrics.encode().unwrap();
        let labels = r#"kind="Kustomization",name="web",namespace="apps""#;
        for line in [
            format!(r#"windlass_deliveries_total{{{labels},result="success"}} 1"#),
            format!(r#"windlass_delivery_lead_time_seconds_bucket{{le="30.0",{labels}}} 0"#),
            format!(r#"windlass_delivery_lead_time_seconds_bucket{{le="120.0",{labels}}} 1"#),
        ] {
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        metrics.forget_object("Kustomization", "apps", "web");
        assert!(!metrics.encode().unwrap().contains(labels));
    }
}
