//! `bench-idle`: what all four controllers hold when there is nothing to do, and how fast each is ready.

mod cgroup;
mod measured;
mod running;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use testkit::{ControlPlane, GitServer, Options, Registry, install_crds, objects};

use self::running::Running;
use super::contestant::Contestant;
use super::figures::{line, mebibytes};
use super::ready::all_ready;
use super::releases;
use super::sync::scenario::{self, NAMESPACE, Place};
use measured::Measured;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Apps: of ten, nine are a Kustomization with an OCIRepository of its own, and one is a HelmRelease.
    #[arg(long, default_value_t = 100)]
    apps: usize,
    /// Seconds to look on at rest before memory is read.
    #[arg(long, default_value_t = 60)]
    pub(super) rest: u64,
    /// Run all of ours in one process.
    #[arg(long)]
    all: bool,
    /// A folder with Flux's controllers, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    pub(super) peer: Option<PathBuf>,
}

const PATIENCE: Duration = Duration::from_secs(600);

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        let measured = look_on(&contestant, arguments).await?;
        report(&contestant, arguments, &measured);
    }
    Ok(())
}

async fn look_on(contestant: &Contestant, arguments: &Arguments) -> Result<Vec<Measured>> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let client = control_plane.client();
    install_crds(&client).await?;
    let (registry, git) = (Registry::start().await?, GitServer::start().await?);
    let releases = arguments.apps / 10;
    let pairs = arguments.apps - releases;
    let place = Place {
        control_plane: &control_plane,
        registry: &registry,
        git: &git,
    };
    scenario::prepare(&place, pairs, 0).await?;
    registry
        .push(releases::CHART, &["1.0.0"], &releases::chart()?)
        .await?;

    let running = Running::start(contestant, &control_plane, arguments.all).await?;
    let declared = async {
        declare_alert(&client).await?;
        tokio::try_join!(scenario::sync(&place, &client, pairs), release(&place, releases))?;
        anyhow::Ok(())
    };
    let declared = tokio::time::timeout(PATIENCE, declared)
        .await
        .context("not ready in time");
    declared
        .and_then(|result| result)
        .with_context(|| running.log_tails())?;

    let before = running.usages()?;
    // This is what is measured: that time passes and nothing happens.
    tokio::time::sleep(Duration::from_secs(arguments.rest)).await;
    running.measure(&before)
}

/// One Alert about everything, to an address where no one listens: at rest nothing is sent.
async fn declare_alert(client: &kube::Client) -> Result<()> {
    let provider = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
        "metadata": {"name": "chat", "namespace": NAMESPACE},
        "spec": {"type": "generic", "address": "http://127.0.0.1:9/"},
    });
    let kinds =
        ["Kustomization", "HelmRelease", "OCIRepository"].map(|kind| json!({"kind": kind, "name": "*"}));
    let alert = json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "chat", "namespace": NAMESPACE},
        "spec": {"providerRef": {"name": "chat"}, "eventSeverity": "error", "eventSources": kinds},
    });
    objects::apply(client, &provider).await?;
    objects::apply(client, &alert).await.map(drop)
}

async fn release(place: &Place<'_>, count: usize) -> Result<()> {
    let client = &place.control_plane.client();
    objects::apply(client, &releases::chart_source(NAMESPACE, place.registry)).await?;
    let create = futures::stream::iter(0..count).map(|number| async move {
        objects::apply(client, &releases::helm_release(NAMESPACE, number, "hello")).await
    });
    create
        .buffer_unordered(8)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    let all = objects::api(client, "helm.toolkit.fluxcd.io/v2", "HelmRelease", NAMESPACE);
    all_ready(all, count).await
}

fn report(contestant: &Contestant, arguments: &Arguments, measured: &[Measured]) {
    let (name, apps, rest) = (contestant.name(), arguments.apps, arguments.rest);
    line(&format!(
        "| {name}, {apps} apps at rest | start to ready | working set | resident | of it data | of it pages of the program | its share of both | CPU in {rest} s |"
    ));
    line("|---|---|---|---|---|---|---|---|");
    for one in measured {
        let start = format!("{} ms", one.start.as_millis());
        row(one.name, &start, std::slice::from_ref(one));
    }
    if measured.len() > 1 {
        row("all four", "", measured);
    }
    line("");
}

fn row(name: &str, start: &str, of: &[Measured]) {
    let working_set: Option<u64> = of.iter().map(|one| one.working_set).sum();
    let resident: u64 = of.iter().map(|one| one.usage.resident_bytes).sum();
    let share: u64 = of.iter().map(|one| one.share).sum();
    let data: u64 = of.iter().map(|one| one.usage.anonymous_bytes).sum();
    let cpu: Duration = of.iter().map(|one| one.cpu).sum();
    line(&format!(
        "| {name} | {start} | {} | {} | {} | {} | {} | {} ms |",
        working_set.map_or_else(|| "not counted here".to_owned(), mebibytes),
        mebibytes(resident),
        mebibytes(data),
        mebibytes(resident.saturating_sub(data)),
        mebibytes(share),
        cpu.as_millis(),
    ));
}
