//! Metrics of image automation beyond those of every controller: scans, pauses, commits, pull requests, held tags.
//!
//! In: what scans and automations report. What objects say themselves is read from them at the scrape.

use std::fmt;
use std::time::Duration;

use api::image::{ImagePolicy, ImageRepository};
use controller_kit::ObjectKey;
use controller_kit::metrics::{Metrics, gauges};
use image_policy::hold::{self, Holds};
use kube::ResourceExt as _;
use kube::runtime::reflector::Store;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

/// From an answer of a registry nearby to the time that very long lists take.
const SECONDS: [f64; 12] = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Result of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scan {
    /// All tags were listed.
    Listed,
    /// The registry said that the list is the same.
    NotModified,
    /// Only tags that the registry had reported were looked for.
    Looked,
    /// There are no tags.
    Failed,
}

impl Scan {
    const ALL: [Self; 4] = [Self::Listed, Self::NotModified, Self::Looked, Self::Failed];

    fn word(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::NotModified => "not_modified",
            Self::Looked => "looked",
            Self::Failed => "failed",
        }
    }
}

/// What happened, counted. Clones share their values.
#[derive(Clone)]
pub(crate) struct Meters {
    scans: Family<ResultLabel, Histogram, fn() -> Histogram>,
    pauses: Counter,
    lost_races: Counter,
    commits: Family<AutomationLabels, Counter>,
    requests: Family<AutomationLabels, Gauge>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AutomationLabels {
    name: String,
    namespace: String,
}

impl AutomationLabels {
    fn new(key: &ObjectKey) -> Self {
        Self {
            name: key.name.clone(),
            namespace: key.namespace.clone(),
        }
    }
}

impl Meters {
    /// Registers all of them, and what the objects say. The series of scans are there from the start.
    pub(crate) fn register(
        metrics: &Metrics,
        repositories: Store<ImageRepository>,
        policies: Store<ImagePolicy>,
    ) -> Self {
        let meters = Self {
            scans: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            pauses: Counter::default(),
            lost_races: Counter::default(),
            commits: Family::default(),
            requests: Family::default(),
        };
        for scan in Scan::ALL {
            let result = scan.word();
            drop(meters.scans.get_or_create(&ResultLabel { result }));
        }
        metrics.register(|registry| {
            registry.register(
                "windlass_image_scan_duration_seconds",
                "How long it took to ask a registry for the tags of an image",
                meters.scans.clone(),
            );
            registry.register(
                "windlass_image_registry_pauses",
                "Answers of registries that asked for a pause",
                meters.pauses.clone(),
            );
            registry.register(
                "windlass_image_lost_races",
                "Pushes that someone else's push to the branch came before; they are made again",
                meters.lost_races.clone(),
            );
            registry.register(
                "windlass_image_commits",
                "Commits that an automation pushed, to a branch or for a pull request",
                meters.commits.clone(),
            );
            registry.register(
                "windlass_image_pull_requests_open",
                "Open pull requests of an automation",
                meters.requests.clone(),
            );
            registry.register_collector(Box::new(Objects {
                repositories,
                policies,
            }));
        });
        meters
    }

    /// Records a scan.
    pub(crate) fn scanned(&self, scan: Scan, took: Duration) {
        let result = scan.word();
        self.scans
            .get_or_create(&ResultLabel { result })
            .observe(took.as_secs_f64());
    }

    /// Records that a registry asked for a pause.
    pub(crate) fn paused(&self) {
        self.pauses.inc();
    }

    /// Records that a branch was changed before a push to it.
    pub(crate) fn lost_race(&self) {
        self.lost_races.inc();
    }

    /// Records a run of an automation. Its series begin with the first.
    pub(crate) fn ran(&self, automation: &ObjectKey, commits: u64, open_requests: usize) {
        let labels = AutomationLabels::new(automation);
        self.commits.get_or_create(&labels).inc_by(commits);
        let open = i64::try_from(open_requests).unwrap_or(i64::MAX);
        self.requests.get_or_create(&labels).set(open);
    }

    /// Removes the series of an automation that is gone.
    pub(crate) fn forget(&self, automation: &ObjectKey) {
        let labels = AutomationLabels::new(automation);
        self.commits.remove(&labels);
        self.requests.remove(&labels);
    }
}

/// Reads the objects.
struct Objects {
    repositories: Store<ImageRepository>,
    policies: Store<ImagePolicy>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("image repositories and policies")
    }
}

impl Collector for Objects {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (repositories, policies) = (self.repositories.state(), self.policies.state());
        let tags = repositories.iter().filter_map(|object| {
            let found = object.status.as_ref()?.last_scan_result.as_ref()?;
            Some((labels(&**object), found.tag_count))
        });
        let help = "Tags of an image that the last scan found";
        gauges::encode(&mut encoder, "windlass_image_tags", help, tags)?;
        let held = policies
            .iter()
            .map(|object| (labels(&**object), held_tags(object)));
        let help = "Tags that a policy passes over, since they are held";
        gauges::encode(&mut encoder, "windlass_image_held_tags", help, held)
    }
}

fn labels(object: &impl kube::Resource) -> Vec<(&'static str, &str)> {
    let meta = object.meta();
    vec![
        ("name", meta.name.as_deref().unwrap_or_default()),
        ("namespace", meta.namespace.as_deref().unwrap_or_default()),
    ]
}

fn held_tags(policy: &ImagePolicy) -> u64 {
    let text = policy.annotations().get(hold::ANNOTATION);
    let holds = Holds::parse(text.map(String::as_str)).unwrap_or_default();
    holds.iter().count() as u64
}

#[cfg(test)]
mod tests {
    use kube::runtime::reflector;
    use kube::runtime::watcher::Event;
    use serde_json::json;

    use super::*;

    fn check(metrics: &Metrics, expected: &[&str]) {
        let text = metrics.encode().unwrap();
        for line in expected {
            assert!(
                text.lines().any(|found| found == *line),
                "{line}\nis not in\n{text}"
            );
        }
    }

    #[test]
    fn objects_are_read_at_the_scrape() {
        let (repositories, mut found) = reflector::store();
        let (policies, mut chosen) = reflector::store();
        let metrics = Metrics::new();
        Meters::register(&metrics, repositories, policies);
        check(
            &metrics,
            &[r#"windlass_image_scan_duration_seconds_count{result="failed"} 0"#],
        );
        let repository = json!({
            "metadata": {"name": "web", "namespace": "shop"}, "spec": {"image": "a/b", "interval": "1h"},
            "status": {"lastScanResult": {"tagCount": 7, "scanTime": "2026-11-25T00:00:00Z"}},
        });
        let repository = serde_json::from_value(repository).unwrap();
        found.apply_watcher_event(&Event::Apply(repository));
        for (name, held) in [("web", r#"[{"tag": "1.0"}, {"tag": "1.1"}]"#), ("broken", "[")] {
            let policy = json!({
                "metadata": {"name": name, "namespace": "shop", "annotations": {"windlass.dev/held-tags": held}},
                "spec": {"imageRepositoryRef": {"name": "web"}, "policy": {}},
            });
            chosen.apply_watcher_event(&Event::Apply(serde_json::from_value(policy).unwrap()));
        }
        check(
            &metrics,
            &[
                r#"windlass_image_tags{name="web",namespace="shop"} 7"#,
                r#"windlass_image_held_tags{name="web",namespace="shop"} 2"#,
                r#"windlass_image_held_tags{name="broken",namespace="shop"} 0"#,
            ],
        );
    }

    #[test]
    fn the_series_of_an_automation_go_with_it() {
        let metrics = Metrics::new();
        let meters = Meters::register(&metrics, reflector::store().0, reflector::store().0);
        let key = ObjectKey::new("shop", "auto");
        meters.ran(&key, 0, 0);
        check(
            &metrics,
            &[r#"windlass_image_commits_total{name="auto",namespace="shop"} 0"#],
        );
        meters.ran(&key, 2, 1);
        meters.paused();
        meters.lost_race();
        meters.scanned(Scan::Looked, Duration::from_millis(20));
        check(
            &metrics,
            &[
                r#"windlass_image_commits_total{name="auto",namespace="shop"} 2"#,
                r#"windlass_image_pull_requests_open{name="auto",namespace="shop"} 1"#,
                r#"windlass_image_scan_duration_seconds_bucket{le="0.025",result="looked"} 1"#,
                "windlass_image_registry_pauses_total 1",
                "windlass_image_lost_races_total 1",
            ],
        );
        meters.forget(&key);
        assert!(!metrics.encode().unwrap().contains("shop"));
    }
}
