//! Every metric that Flux's controllers register, beside what ours have at `/metrics`.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use testkit::controller::ControllerOptions;
use testkit::tools::repository_root;
use testkit::{Controller, Prometheus};
use tokio::time::{sleep, timeout};

use crate::world::{PATIENCE, Test, run};

/// Which of our controllers has it.
#[derive(Clone, Copy)]
enum Exposed {
    /// All, from the start.
    AtStart,
    /// These, once they have had an object or a call to tell of.
    Later(&'static [&'static str]),
    /// None; docs/operations/metrics.md says why.
    Never,
}

const ALL: &[&str] = &[
    "source-controller",
    "apply-controller",
    "helm-controller",
    "notification-controller",
];
const SOURCE: &[&str] = &["source-controller"];
const NOTIFICATION: &[&str] = &["notification-controller"];

use Exposed::{AtStart, Later, Never};

/// Metrics of Flux 2.9, controller-runtime 0.24 and client-go. Labels are checked where each is made.
const OF_FLUX: &[(&str, Exposed)] = &[
    ("gotk_reconcile_duration_seconds", Later(ALL)),
    ("gotk_reconcile_condition", Never),
    ("gotk_suspend_status", Never),
    ("gotk_resource_info", Later(ALL)),
    ("gotk_cache_events_total", Later(SOURCE)),
    ("gotk_token_cache_events_total", AtStart),
    ("gotk_token_cache_requests_total", AtStart),
    ("gotk_token_cache_evictions_total", AtStart),
    ("gotk_token_cached_items", AtStart),
    ("gotk_event_http_request_duration_seconds", Later(NOTIFICATION)),
    ("gotk_event_http_response_size_bytes", Later(NOTIFICATION)),
    ("gotk_event_http_requests_inflight", Later(NOTIFICATION)),
    ("gotk_receiver_http_request_duration_seconds", Later(NOTIFICATION)),
    ("gotk_receiver_http_response_size_bytes", Later(NOTIFICATION)),
    ("gotk_receiver_http_requests_inflight", Later(NOTIFICATION)),
    ("controller_runtime_reconcile_total", AtStart),
    ("controller_runtime_reconcile_errors_total", AtStart),
    ("controller_runtime_terminal_reconcile_errors_total", AtStart),
    ("controller_runtime_reconcile_panics_total", AtStart),
    ("controller_runtime_reconcile_timeouts_total", Never),
    ("controller_runtime_reconcile_time_seconds", AtStart),
    ("controller_runtime_max_concurrent_reconciles", AtStart),
    ("controller_runtime_active_workers", AtStart),
    ("controller_runtime_webhook_latency_seconds", Never),
    ("controller_runtime_webhook_requests_total", Never),
    ("controller_runtime_webhook_requests_in_flight", Never),
    ("controller_runtime_webhook_panics_total", Never),
    ("controller_runtime_conversion_webhook_panics_total", Never),
    ("certwatcher_read_certificate_total", Never),
    ("certwatcher_read_certificate_errors_total", Never),
    ("leader_election_master_status", AtStart),
    ("leader_election_slowpath_total", AtStart),
    ("rest_client_requests_total", AtStart),
    ("workqueue_depth", AtStart),
    ("workqueue_adds_total", AtStart),
    ("workqueue_queue_duration_seconds", AtStart),
    ("workqueue_work_duration_seconds", AtStart),
    ("workqueue_unfinished_work_seconds", AtStart),
    ("workqueue_longest_running_processor_seconds", AtStart),
    ("workqueue_retries_total", AtStart),
    ("process_cpu_seconds_total", AtStart),
    ("process_start_time_seconds", AtStart),
    ("process_resident_memory_bytes", AtStart),
    ("process_virtual_memory_bytes", AtStart),
    ("process_open_fds", AtStart),
    ("process_max_fds", AtStart),
    ("process_network_receive_bytes_total", Never),
    ("process_network_transmit_bytes_total", Never),
    ("go_goroutines", Never),
    ("go_info", Never),
];

/// Names of samples, those of histograms without what they end with.
fn names(page: &str) -> BTreeSet<&str> {
    page.lines()
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

/// Waits for the metrics that a controller has from the start: it adds each when it takes up a part, and a
/// standby has taken up little.
async fn metrics_at_work(controller: &Controller) -> Result<String> {
    let mut missing = Vec::new();
    let at_work = async {
        loop {
            let metrics = controller.metrics().await?;
            let found = names(&metrics);
            let lacks = |(name, exposed): &&(&'static str, Exposed)| {
                matches!(exposed, AtStart) && !found.contains(name)
            };
            missing = OF_FLUX.iter().filter(lacks).map(|(name, _)| *name).collect();
            if missing.is_empty() {
                return anyhow::Ok(metrics);
            }
            sleep(Duration::from_millis(50)).await; // nothing tells of a change of metrics
        }
    };
    let at_work = timeout(PATIENCE, at_work).await;
    at_work.with_context(|| format!("{} lacks {missing:?}", controller.name()))?
}

async fn start_all(test: &Test) -> Result<[Controller; 5]> {
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    let options = || {
        let mut options = test.own_shard();
        options.flags.push("--enable-leader-election".to_owned());
        options.namespace.clone_from(&test.namespace);
        options
    };
    let source = Controller::start_source(kubeconfig, options()).await?;
    let apply = Controller::start_apply(kubeconfig, &source, options()).await?;
    let helm = Controller::start_helm(kubeconfig, &source, options()).await?;
    // It takes no label selector: an Alert is told of objects of all shards.
    let flags = ["--watch-all-namespaces=false", "--enable-leader-election"];
    let only_here = ControllerOptions {
        flags: flags.map(str::to_owned).to_vec(),
        ..options()
    };
    let notification = Controller::start_notification(kubeconfig, only_here).await?;
    let images = Controller::start_image(kubeconfig, options()).await?;
    Ok([source, apply, helm, notification, images])
}

#[test]
fn what_flux_exposes_is_there_or_told_to_be_missing() {
    run("metric-names", |test| async move {
        let page = fs::read_to_string(repository_root().join("docs/operations/metrics.md"))?;
        let told = |name: &str| {
            let family = |line: &str| {
                let all = line.split('`').skip(1).step_by(2);
                let mut all = all.map(|listed| listed.trim_end_matches('*'));
                all.any(|listed| listed == name || (listed.ends_with('_') && name.starts_with(listed)))
            };
            page.lines().any(family)
        };
        for controller in start_all(&test).await? {
            let who = controller.name();
            let metrics = metrics_at_work(&controller).await?;
            let found = names(&metrics);
            for (name, exposed) in OF_FLUX {
                let is_made_up = matches!(exposed, Never) && found.contains(name);
                ensure!(!is_made_up, "{who} has {name}, which means nothing here");
                ensure!(told(name), "docs/operations/metrics.md does not tell of {name}");
            }
            let made_up = found.iter().find(|name| name.starts_with("go_"));
            ensure!(made_up.is_none(), "{who} has {made_up:?}");
        }
        Ok(())
    });
}

/// Those that are there once there is something to tell.
pub(super) async fn with_objects(prometheus: &Prometheus) -> Result<()> {
    for (name, exposed) in OF_FLUX {
        let Later(controllers) = exposed else { continue };
        for controller in *controllers {
            let query = format!("{{__name__=~\"{name}(_count)?\",pod=\"{controller}-0\"}}");
            prometheus.until_some(&query).await?;
        }
    }
    Ok(())
}
