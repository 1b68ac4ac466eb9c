//! `bench-releases`: how long N HelmReleases of one chart take from creation to Ready, and what they cost.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use serde_json::{Value, json};
use testkit::control_plane::ApiMetrics;
use testkit::process::Usage;
use testkit::registry::{Artifact, CHART_MEDIA_TYPE, tar_gz};
use testkit::{ControlPlane, Options, Registry, install_crds, objects};

use super::at_rest::{self, AtRest};
use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, requests, seconds};
use super::ready::all_ready;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// HelmReleases, all of one chart.
    #[arg(long, default_value_t = 100)]
    releases: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 30)]
    pub(super) rest: u64,
    /// A folder with Flux's source-controller and helm-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    pub(super) peer: Option<PathBuf>,
}

/// Figures of one contestant.
struct Measured {
    name: &'static str,
    /// From the first creation until all are Ready.
    all_ready: Duration,
    /// Requests to the API server meanwhile, by all of its clients.
    requests: ApiMetrics,
    /// How many of them helm-controller sent, by its own count.
    own_requests: u64,
    /// Peak of memory and processor time of helm-controller until then.
    helm: Usage,
    /// From the change of all values until all are upgraded.
    upgraded: Duration,
    /// How many requests helm-controller sent for that.
    upgrade_requests: u64,
    /// Cost at rest, after the run.
    rest: AtRest,
}

pub const CHART: &str = "web";

/// The files of the chart, which is shaped as podinfo's is.
const FILES: [(&str, &str); 10] = [
    ("web/Chart.yaml", include_str!("releases/chart/Chart.yaml")),
    ("web/values.yaml", include_str!("releases/chart/values.yaml")),
    (
        "web/templates/_helpers.tpl",
        include_str!("releases/chart/templates/_helpers.tpl"),
    ),
    (
        "web/templates/NOTES.txt",
        include_str!("releases/chart/templates/NOTES.txt"),
    ),
    (
        "web/templates/deployment.yaml",
        include_str!("releases/chart/templates/deployment.yaml"),
    ),
    (
        "web/templates/hpa.yaml",
        include_str!("releases/chart/templates/hpa.yaml"),
    ),
    (
        "web/templates/ingress.yaml",
        include_str!("releases/chart/templates/ingress.yaml"),
    ),
    (
        "web/templates/service.yaml",
        include_str!("releases/chart/templates/service.yaml"),
    ),
    (
        "web/templates/serviceaccount.yaml",
        include_str!("releases/chart/templates/serviceaccount.yaml"),
    ),
    (
        "web/templates/tests/http.yaml",
        include_str!("releases/chart/templates/tests/http.yaml"),
    ),
];

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        // A control plane of its own for each, with what makes Pods run: releases wait for them.
        let control_plane = ControlPlane::start(Options::default()).await?;
        install_crds(&control_plane.client()).await?;
        let registry = Registry::start().await?;
        registry.push(CHART, &["1.0.0"], &chart()?).await?;
        let running = contestant.start_for_releases(&control_plane).await?;
        let measured = release(&control_plane, &registry, &contestant, &running, arguments).await;
        results.push(measured.with_context(|| running.log_tails())?);
    }
    report(arguments, &results);
    Ok(())
}

/// The chart as `helm push` stores it.
pub fn chart() -> Result<Artifact> {
    Ok(Artifact::from_chart(tar_gz(&FILES)?))
}

/// The source of the chart.
pub fn chart_source(namespace: &str, registry: &Registry) -> Value {
    let source = objects::oci_repository(namespace, CHART, &registry.url(CHART), "1.0.0");
    let layer = json!({"layerSelector": {
        "mediaType": CHART_MEDIA_TYPE, "operation": "copy",
    }});
    objects::with_spec(source, layer)
}

async fn release(
    control_plane: &ControlPlane,
    registry: &Registry,
    contestant: &Contestant,
    running: &Running,
    arguments: &Arguments,
) -> Result<Measured> {
    let client = control_plane.client();
    let namespace = &control_plane.namespace("releases").await?;
    objects::apply(&client, &chart_source(namespace, registry)).await?;

    let before = control_plane.api_metrics().await?;
    let own = helm_requests(running).await?;
    let (all_ready, installed) = (
        roll(&client, namespace, "hello", arguments).await?,
        running.usage()?,
    );
    let seen = control_plane.api_metrics().await?.since(&before);
    let own_installed = helm_requests(running).await?;
    let upgraded = roll(&client, namespace, "hello again", arguments).await?;
    let own_upgraded = helm_requests(running).await?;
    let [_, helm] = installed[..] else {
        bail!("two controllers were started");
    };
    Ok(Measured {
        name: contestant.name(),
        all_ready,
        requests: seen,
        own_requests: own_installed - own,
        helm,
        upgraded,
        upgrade_requests: own_upgraded - own_installed,
        rest: at_rest::look_on(control_plane, running, arguments.rest).await?,
    })
}

/// Returns the requests of helm-controller, which was started last.
async fn helm_requests(running: &Running) -> Result<u64> {
    running
        .requests()
        .await?
        .last()
        .copied()
        .context("nothing was started")
}

/// Applies all HelmReleases and waits, with one watch, until each is Ready as it is now.
async fn roll(client: &Client, namespace: &str, message: &str, arguments: &Arguments) -> Result<Duration> {
    let start = Instant::now();
    let releases = objects::api(client, "helm.toolkit.fluxcd.io/v2", "HelmRelease", namespace);
    let create = futures::stream::iter(0..arguments.releases)
        .map(|number| async move { objects::apply(client, &helm_release(namespace, number, message)).await });
    let create = create.buffer_unordered(8).try_for_each(|_| async { Ok(()) });
    let patience = Duration::from_secs(300 + arguments.releases as u64);
    let made = async {
        create.await?;
        // Ready objects are those whose status is of the generation that the apply made.
        tokio::time::timeout(patience, all_ready(releases, arguments.releases))
            .await
            .with_context(|| format!("not ready after {patience:?}"))?
    };
    made.await?;
    Ok(start.elapsed())
}

pub fn helm_release(namespace: &str, number: usize, message: &str) -> Value {
    json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": format!("app-{number}"), "namespace": namespace},
        "spec": {
            "interval": "1h",
            "chartRef": {"kind": "OCIRepository", "name": CHART},
            "values": {"message": message},
        },
    })
}

fn report(arguments: &Arguments, results: &[Measured]) {
    let title = format!("{} releases of one chart", arguments.releases);
    let table = Table::new(&title, results, |m| m.name);
    let releases = arguments.releases.max(1) as f64;
    table.row("all installed and Ready", |m| seconds(m.all_ready));
    table.row("helm-controller, peak memory", |m| {
        mebibytes(m.helm.peak_resident_bytes)
    });
    table.row("helm-controller, CPU", |m| seconds(m.helm.cpu_time));
    table.row(
        "API requests of helm-controller for each, by its own count",
        |m| format!("{:.1}", m.own_requests as f64 / releases),
    );
    table.row("all upgraded and Ready", |m| seconds(m.upgraded));
    table.row("API requests of helm-controller for each upgrade", |m| {
        format!("{:.1}", m.upgrade_requests as f64 / releases)
    });
    at_rest::rows(&table, arguments.rest, |m| &m.rest);
    line("\nAPI requests until all were installed (from the API server's metrics, all clients):\n");
    requests(results, |m| m.name, 10, |m| &m.requests);
    line("\nThe same at rest:\n");
    requests(results, |m| m.name, 1, |m| &m.rest.requests);
}
