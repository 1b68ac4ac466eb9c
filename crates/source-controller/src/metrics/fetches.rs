//! How often and how long remotes are asked, what that comes to, and how much they send.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// From an answer of a server nearby to the time that a large repository takes.
const SECONDS: [f64; 14] = [
    0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
];

/// Result of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Result {
    /// There is a new artifact.
    Fetched,
    /// The remote has what is stored.
    NotModified,
    /// There is no answer, or what came cannot be used.
    Failed,
}

/// `windlass_fetch_duration_seconds` and `windlass_fetched_bytes_total`. Clones share their values.
#[derive(Clone)]
pub(crate) struct Fetches {
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    received: Family<KindLabel, Counter>,
}

/// Those of one kind; all series are there from the start.
#[derive(Clone)]
pub(crate) struct FetchesOfKind {
    fetched: Histogram,
    not_modified: Histogram,
    failed: Histogram,
    /// Bytes that remotes sent.
    pub(crate) received: Counter,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    kind: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

impl Default for Fetches {
    fn default() -> Self {
        Self {
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            received: Family::default(),
        }
    }
}

impl Fetches {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "windlass_fetch_duration_seconds",
            "How long it took to ask a remote, and to fetch, verify and store what it has if that is new",
            self.durations.clone(),
        );
        registry.register(
            "windlass_fetched_bytes",
            "Bytes of content that remotes sent",
            self.received.clone(),
        );
    }

    /// The series of a kind.
    pub(crate) fn of_kind(&self, kind: &'static str) -> FetchesOfKind {
        let duration = |result| self.durations.get_or_create_owned(&Labels { kind, result });
        FetchesOfKind {
            fetched: duration("fetched"),
            not_modified: duration("not_modified"),
            failed: duration("failed"),
            received: self.received(kind),
        }
    }

    /// The bytes of a kind, for one that is made of other sources.
    pub(crate) fn received(&self, kind: &'static str) -> Counter {
        self.received.get_or_create_owned(&KindLabel { kind })
    }
}

impl FetchesOfKind {
    /// Records a fetch.
    pub(crate) fn observe(&self, result: Result, took: Duration) {
        let duration = match result {
            Result::Fetched => &self.fetched,
            Result::NotModified => &self.not_modified,
            Result::Failed => &self.failed,
        };
        duration.observe(took.as_secs_f64());
    }
}
