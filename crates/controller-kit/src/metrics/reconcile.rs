//! The work queue's and the reconcile loop's metrics, as client-go and controller-runtime name them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets of controller_runtime_reconcile_time_seconds, from controller-runtime.
const RECONCILE_TIME_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25,
    1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0,
    50.0, 60.0,
];

/// Buckets of the durations of work queues, from controller-runtime: `ExponentialBuckets(10e-9, 10, 12)`.
const QUEUE_DURATION_BUCKETS: [f64; 12] = [
    1e-8,
    1e-7,
    1e-6,
    9.999999999999999e-6,
    9.999999999999999e-5,
    1e-3,
    1e-2,
    1e-1,
    1.0,
    10.0,
    100.0,
    1000.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ControllerLabel {
    controller: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabels {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct QueueLabels {
    name: String,
    controller: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DepthLabels {
    name: String,
    controller: String,
    priority: &'static str,
}

/// State of a queue at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueSnapshot {
    /// Keys that wait for a worker.
    pub depth: usize,
    /// Keys that are being worked on.
    pub active: usize,
    /// Time spent so far on what is being worked on, summed.
    pub unfinished: Duration,
    /// Time spent so far on the oldest of it.
    pub longest: Duration,
}

type Probe = Box<dyn Fn() -> QueueSnapshot + Send + Sync>;

/// All families, of which [`QueueMetrics`] holds one series each.
#[derive(Clone, Debug)]
pub(super) struct Families {
    results: Family<ResultLabels, Counter>,
    errors: Family<ControllerLabel, Counter>,
    terminal_errors: Family<ControllerLabel, Counter>,
    panics: Family<ControllerLabel, Counter>,
    time: Family<ControllerLabel, Histogram, fn() -> Histogram>,
    max_concurrent: Family<ControllerLabel, Gauge>,
    adds: Family<QueueLabels, Counter>,
    retries: Family<QueueLabels, Counter>,
    queue_duration: Family<QueueLabels, Histogram, fn() -> Histogram>,
    work_duration: Family<QueueLabels, Histogram, fn() -> Histogram>,
    probes: Probes,
}

/// Series of one controller.
#[derive(Clone, Debug)]
pub struct QueueMetrics {
    controller: String,
    pub(crate) success: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) requeue: Counter,
    pub(crate) error: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal_errors: Counter,
    pub(crate) panics: Counter,
    pub(crate) time: Histogram,
    pub(crate) max_concurrent: Gauge,
    pub(crate) adds: Counter,
    pub(crate) retries: Counter,
    pub(crate) queue_duration: Histogram,
    pub(crate) work_duration: Histogram,
    probes: Probes,
}

impl Families {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let families = Self {
            results: Family::default(),
            errors: Family::default(),
            terminal_errors: Family::default(),
            panics: Family::default(),
            time: Family::new_with_constructor(|| Histogram::new(RECONCILE_TIME_BUCKETS)),
            max_concurrent: Family::default(),
            adds: Family::default(),
            retries: Family::default(),
            queue_duration: Family::new_with_constructor(duration_histogram),
            work_duration: Family::new_with_constructor(duration_histogram),
            probes: Probes::default(),
        };
        families.register_controller_runtime(registry);
        families.register_workqueue(registry);
        registry.register_collector(Box::new(families.probes.clone()));
        families
    }

    fn register_controller_runtime(&self, registry: &mut Registry) {
        let prefix = |name: &str| format!("controller_runtime_{name}");
        registry.register(
            prefix("reconcile"),
            "Total number of reconciliations per controller",
            self.results.clone(),
        );
        registry.register(
            prefix("reconcile_errors"),
            "Total number of reconciliation errors per controller",
            self.errors.clone(),
        );
        registry.register(
            prefix("terminal_reconcile_errors"),
            "Total number of terminal reconciliation errors per controller",
            self.terminal_errors.clone(),
        );
        registry.register(
            prefix("reconcile_panics"),
            "Total number of reconciliation panics per controller",
            self.panics.clone(),
        );
        registry.register(
            prefix("reconcile_time_seconds"),
            "Length of time per reconciliation per controller",
            self.time.clone(),
        );
        registry.register(
            prefix("max_concurrent_reconciles"),
            "Maximum number of concurrent reconciles per controller",
            self.max_concurrent.clone(),
        );
    }

    fn register_workqueue(&self, registry: &mut Registry) {
        let prefix = |name: &str| format!("workqueue_{name}");
        registry.register(
            prefix("adds"),
            "Total number of adds handled by workqueue",
            self.adds.clone(),
        );
        registry.register(
            prefix("retries"),
            "Total number of retries handled by workqueue",
            self.retries.clone(),
        );
        registry.register(
            prefix("queue_duration_seconds"),
            "How long in seconds an item stays in workqueue before being requested",
            self.queue_duration.clone(),
        );
        registry.register(
            prefix("work_duration_seconds"),
            "How long in seconds processing an item from workqueue takes",
            self.work_duration.clone(),
        );
    }

    pub(super) fn queue(&self, controller: &str) -> QueueMetrics {
        let label = ControllerLabel {
            controller: controller.to_owned(),
        };
        let queue = QueueLabels {
            name: controller.to_owned(),
            controller: controller.to_owned(),
        };
        let result = |result| {
            self.results.get_or_create_owned(&ResultLabels {
                controller: controller.to_owned(),
                result,
            })
        };
        QueueMetrics {
            controller: controller.to_owned(),
            success: result("success"),
            requeue_after: result("requeue_after"),
            requeue: result("requeue"),
            error: result("error"),
            errors: self.errors.get_or_create_owned(&label),
            terminal_errors: self.terminal_errors.get_or_create_owned(&label),
            panics: self.panics.get_or_create_owned(&label),
            time: self.time.get_or_create_owned(&label),
            max_concurrent: self.max_concurrent.get_or_create_owned(&label),
            adds: self.adds.get_or_create_owned(&queue),
            retries: self.retries.get_or_create_owned(&queue),
            queue_duration: self.queue_duration.get_or_create_owned(&queue),
            work_duration: self.work_duration.get_or_create_owned(&queue),
            probes: self.probes.clone(),
        }
    }
}

impl QueueMetrics {
    /// Has `probe` called at each scrape for what changes by itself: depth and running work.
    pub fn probe(&self, probe: impl Fn() -> QueueSnapshot + Send + Sync + 'static) {
        let mut probes = self.probes.0.lock().unwrap_or_else(PoisonError::into_inner);
        probes.retain(|(controller, _)| *controller != self.controller);
        probes.push((self.controller.clone(), Box::new(probe)));
    }
}

fn duration_histogram() -> Histogram {
    Histogram::new(QUEUE_DURATION_BUCKETS)
}

/// Queues that are asked at each scrape.
#[derive(Clone, Default)]
struct Probes(Arc<Mutex<Vec<(String, Probe)>>>);

impl fmt::Debug for Probes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Probes").finish_non_exhaustive()
    }
}

impl collector::Collector for Probes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let probes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshots: Vec<(&str, QueueSnapshot)> = probes
            .iter()
            .map(|(controller, probe)| (controller.as_str(), probe()))
            .collect();
        if snapshots.is_empty() {
            return Ok(());
        }
        encode_active(&mut encoder, &snapshots)?;
        encode_depth(&mut encoder, &snapshots)?;
        let unfinished = "How many seconds of work are in progress and not yet in work_duration";
        encode_seconds(
            &mut encoder,
            "workqueue_unfinished_work_seconds",
            unfinished,
            &snapshots,
            |snapshot| snapshot.unfinished,
        )?;
        let longest = "How many seconds the longest running processor has been running";
        encode_seconds(
            &mut encoder,
            "workqueue_longest_running_processor_seconds",
            longest,
            &snapshots,
            |snapshot| snapshot.longest,
        )
    }
}

fn encode_active(encoder: &mut DescriptorEncoder<'_>, snapshots: &[(&str, QueueSnapshot)]) -> fmt::Result {
    let help = "Number of currently used workers per controller";
    let mut metric =
        encoder.encode_descriptor("controller_runtime_active_workers", help, None, MetricType::Gauge)?;
    for (controller, snapshot) in snapshots {
        let labels = ControllerLabel {
            controller: (*controller).to_owned(),
        };
        metric
            .encode_family(&labels)?
            .encode_gauge(&(snapshot.active as u64))?;
    }
    Ok(())
}

/// controller-runtime's queue has priorities, and 0 is that of ordinary work; ours has only that one.
fn encode_depth(encoder: &mut DescriptorEncoder<'_>, snapshots: &[(&str, QueueSnapshot)]) -> fmt::Result {
    let help = "Current depth of workqueue by queue and priority";
    let mut metric = encoder.encode_descriptor("workqueue_depth", help, None, MetricType::Gauge)?;
    for (controller, snapshot) in snapshots {
        let name = (*controller).to_owned();
        let labels = DepthLabels {
            controller: name.clone(),
            name,
            priority: "0",
        };
        metric
            .encode_family(&labels)?
            .encode_gauge(&(snapshot.depth as u64))?;
    }
    Ok(())
}

fn encode_seconds(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    snapshots: &[(&str, QueueSnapshot)],
    value: fn(&QueueSnapshot) -> Duration,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (controller, snapshot) in snapshots {
        let name = (*controller).to_owned();
        let labels = QueueLabels {
            controller: name.clone(),
            name,
        };
        metric
            .encode_family(&labels)?
            .encode_gauge(&value(snapshot).as_secs_f64())?;
    }
    Ok(())
}
