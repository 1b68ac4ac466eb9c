//! Metrics of the console beyond those of every program: its answers, what it shows, and the figures of the ledger.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use controller_kit::metrics::{Metrics, gauges};
use fleet::picture::Picture;
use jiff::{SignedDuration, Timestamp};
use ledger::dora::{self, By, Figures, Spread};
use ledger::store::{Error, Filter, Ledger};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::serve::MAX_STREAMS;

/// From an answer out of memory to one that many wait for.
const SECONDS: [f64; 10] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.0, 10.0];
/// What the figures are of, and how often they are computed.
const WINDOW: SignedDuration = SignedDuration::from_hours(30 * 24);
const EVERY: Duration = Duration::from_secs(300);
/// Paths that are told apart; of all others anybody can make up any number.
const PATHS: [&str; 12] = [
    "actions",
    "changes",
    "charts",
    "clusters",
    "deliveries",
    "diff",
    "dora",
    "me",
    "objects",
    "openapi.json",
    "watch",
    "where",
];

/// What happened, counted. Clones share their values.
#[derive(Clone)]
pub struct Meters {
    answers: Family<AnswerLabels, Counter>,
    durations: Family<PathLabel, Histogram, fn() -> Histogram>,
    /// Rows that this process added to the ledger.
    pub recorded: Counter,
    /// Times that the ledger took nothing.
    pub unrecorded: Counter,
    figures: Figured,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct AnswerLabels {
    path: &'static str,
    code: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PathLabel {
    path: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PlaceLabels {
    cluster: String,
    namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QuantileLabels {
    cluster: String,
    namespace: String,
    quantile: &'static str,
}

type Number = Gauge<f64, AtomicU64>;

/// The figures of DORA of the last 30 days, of each namespace of each cluster.
#[derive(Clone, Default)]
struct Figured {
    deployments: Family<PlaceLabels, Gauge>,
    changes: Family<PlaceLabels, Gauge>,
    failed_changes: Family<PlaceLabels, Gauge>,
    gaps: Family<PlaceLabels, Gauge>,
    lead_times: Family<QuantileLabels, Number>,
    recoveries: Family<QuantileLabels, Number>,
}

impl Meters {
    /// Registers all of them. `streams` has the room that is left for streams.
    pub fn register(metrics: &Metrics, picture: Picture, streams: Arc<Semaphore>) -> Self {
        let meters = Self {
            answers: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            recorded: Counter::default(),
            unrecorded: Counter::default(),
            figures: Figured::default(),
        };
        let figures = meters.figures.clone();
        metrics.register(|registry| {
            registry.register(
                "windlass_console_answers",
                "Answers of the API",
                meters.answers.clone(),
            );
            registry.register(
                "windlass_console_answer_duration_seconds",
                "How long answers of the API took, without streams",
                meters.durations.clone(),
            );
            registry.register(
                "windlass_ledger_recorded",
                "Deliveries that were added to the ledger",
                meters.recorded.clone(),
            );
            registry.register(
                "windlass_ledger_failures",
                "Times that the ledger took no delivery",
                meters.unrecorded.clone(),
            );
            let families = [
                (
                    "windlass_dora_deployments",
                    "Changes deployed in the last 30 days",
                    figures.deployments,
                ),
                (
                    "windlass_dora_changes",
                    "Changes tried in the last 30 days",
                    figures.changes,
                ),
                (
                    "windlass_dora_failed_changes",
                    "Changes that failed in the last 30 days",
                    figures.failed_changes,
                ),
                (
                    "windlass_dora_gaps",
                    "Times in the last 30 days of which nothing is known",
                    figures.gaps,
                ),
            ];
            for (name, help, family) in families {
                registry.register(name, help, family);
            }
            registry.register(
                "windlass_dora_lead_time_seconds",
                "From the commit to its deployment, in the last 30 days",
                figures.lead_times,
            );
            registry.register(
                "windlass_dora_time_to_recover_seconds",
                "From a failure to the next success, in the last 30 days",
                figures.recoveries,
            );
            registry.register_collector(Box::new(Shown { picture, streams }));
        });
        meters
    }

    /// Computes the figures of the ledger again and again.
    pub async fn figure(&self, ledger: &Ledger) {
        loop {
            if let Err(error) = self.figure_once(ledger).await {
                let error = format!("{:#}", anyhow::Error::from(error));
                tracing::warn!(error, "the figures of the ledger are not computed");
            }
            tokio::time::sleep(EVERY).await; // figures of 30 days do not hurry
        }
    }

    async fn figure_once(&self, ledger: &Ledger) -> Result<(), Error> {
        let until = Timestamp::now();
        let since = until - WINDOW;
        let filter = Filter {
            since: Some(since),
            ..Filter::default()
        };
        let rows = ledger.all(&ledger.scopes().await?, &filter).await?;
        let computing = tokio::task::spawn_blocking(move || {
            let of_all = dora::figures(&rows, (since, until), &By::Place);
            of_all.into_iter().collect::<Vec<(String, Figures)>>()
        });
        if let Ok(groups) = computing.await {
            self.figures.set(groups);
        }
        Ok(())
    }
}

impl Figured {
    fn set(&self, groups: Vec<(String, Figures)>) {
        for family in [&self.deployments, &self.changes, &self.failed_changes, &self.gaps] {
            family.clear();
        }
        self.lead_times.clear();
        self.recoveries.clear();
        for (place, figures) in groups {
            let (cluster, namespace) = place.split_once('/').unwrap_or_default();
            let labels = PlaceLabels {
                cluster: cluster.to_owned(),
                namespace: namespace.to_owned(),
            };
            for (family, count) in [
                (&self.deployments, figures.deployments),
                (&self.changes, figures.changes),
                (&self.failed_changes, figures.failed_changes),
                (&self.gaps, figures.gaps),
            ] {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                family.get_or_create(&labels).set(count);
            }
            spread(&self.lead_times, &labels, figures.lead_time);
            spread(&self.recoveries, &labels, figures.time_to_recover);
        }
    }
}

fn spread(family: &Family<QuantileLabels, Number>, place: &PlaceLabels, spread: Option<Spread>) {
    let Some(Spread { median, p90 }) = spread else {
        return;
    };
    for (quantile, value) in [("0.5", median), ("0.9", p90)] {
        let labels = QuantileLabels {
            cluster: place.cluster.clone(),
            namespace: place.namespace.clone(),
            quantile,
        };
        family.get_or_create(&labels).set(value);
    }
}

/// Counts answers, and measures them.
pub async fn observe(State(meters): State<Meters>, request: Request, next: Next) -> Response {
    let path = path(request.uri().path());
    let began = Instant::now();
    let response = next.run(request).await;
    let code = response.status().as_u16();
    meters.answers.get_or_create(&AnswerLabels { path, code }).inc();
    if path != "watch" && path != "live" {
        let durations = meters.durations.get_or_create(&PathLabel { path });
        durations.observe(began.elapsed().as_secs_f64());
    }
    response
}

fn path(path: &str) -> &'static str {
    let Some(rest) = path.strip_prefix("/api/v1/") else {
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        return match first {
            "live" => "live",
            "" | "apps" | "pipelines" | "sources" | "images" | "notifications" | "fleet" | "change"
            | "changes" | "new" | "history" | "state" | "wall" | "compare" | "graph" | "find" | "objects"
            | "me" | "design" => "page",
            _ => "other",
        };
    };
    let first = rest.split('/').next().unwrap_or_default();
    let known = PATHS.into_iter().find(|known| *known == first);
    known.unwrap_or("other")
}

/// What is shown, read at the scrape.
struct Shown {
    picture: Picture,
    streams: Arc<Semaphore>,
}

impl fmt::Debug for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}

impl Collector for Shown {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (clusters, sizes) = (self.picture.clusters(), self.picture.sizes());
        let objects = sizes
            .iter()
            .map(|(name, rows)| (vec![("cluster", &**name)], *rows));
        let help = "Objects of Flux and Windlass that are shown";
        gauges::encode(&mut encoder, "windlass_console_objects", help, objects)?;
        let up = clusters.iter().map(|cluster| {
            let is_up = cluster.complete && !cluster.away;
            (vec![("cluster", &*cluster.name)], u64::from(is_up))
        });
        let help = "Whether what is shown of a cluster is up to date";
        gauges::encode(&mut encoder, "windlass_console_cluster_up", help, up)?;
        let open = MAX_STREAMS.saturating_sub(self.streams.available_permits());
        let open = [(Vec::new(), u64::try_from(open).unwrap_or(u64::MAX))];
        let help = "Streams that are open";
        gauges::encode(&mut encoder, "windlass_console_streams", help, open)
    }
}
