//! `bench-scale`: what a controller takes for each object that it watches, and for each change of one.
//!
//! The objects are suspended, so that what is measured is the watch, the cache and the queue, and not what an apply costs. They have
//! the status that a Kustomization with four objects has.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::process::Usage;
use testkit::{ControlPlane, Options, install_crds, objects};

use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, seconds};

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Kustomizations.
    #[arg(long, default_value_t = 50_000)]
    objects: usize,
    /// Changes of them, of each of two sorts: of a label, which means nothing, and of the request to reconcile.
    #[arg(long, default_value_t = 10_000)]
    changes: usize,
    /// A folder with Flux's source-controller and kustomize-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    pub(super) peer: Option<PathBuf>,
}

/// Requests at once.
const AT_ONCE: usize = 16;
/// Readiness does not wait for lists: a controller has done its work when it takes no processor time for so long.
const SETTLING: Duration = Duration::from_secs(5);
/// What a controller may take in that time that has nothing to do.
const IDLE: Duration = Duration::from_millis(50);
/// Which of the controllers watches Kustomizations.
const SECOND: usize = 1;

struct Measured {
    name: &'static str,
    /// Without any object.
    empty: Usage,
    /// From the start until all is listed.
    start: Duration,
    listed: Usage,
    /// Processor time for a change that means nothing.
    ignored: Duration,
    /// The same for one that has the object looked at.
    looked_at: Duration,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        install_crds(&control_plane.client()).await?;
        let running = contestant.start_both(&control_plane).await?;
        let empty = settled(&running).await?;
        drop(running);
        let namespace = control_plane.namespace("scale").await?;
        let api = objects::api(
            &control_plane.client(),
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            &namespace,
        );
        create(&api, arguments.objects).await?;
        let began = Instant::now();
        let running = contestant.start_both(&control_plane).await?;
        let start = began.elapsed();
        let listed = settled(&running).await?;
        let label = |number: usize| json!({"metadata": {"labels": {"bench": number.to_string()}}});
        let asked = |number: usize| json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": number.to_string()}}});
        results.push(Measured {
            name: contestant.name(),
            empty,
            start,
            listed,
            ignored: change(&api, arguments, &running, label).await?,
            looked_at: change(&api, arguments, &running, asked).await?,
        });
    }
    report(arguments, &results);
    Ok(())
}

fn second(running: &Running) -> Result<Usage> {
    let usage = running.usage()?;
    usage.get(SECOND).copied().context("only one controller runs")
}

/// Waits until nothing is done any more.
async fn settled(running: &Running) -> Result<Usage> {
    loop {
        let before = second(running)?.cpu_time;
        tokio::time::sleep(SETTLING).await;
        let now = second(running)?;
        if now.cpu_time.saturating_sub(before) < IDLE {
            return Ok(now);
        }
    }
}

async fn create(api: &Api<DynamicObject>, count: usize) -> Result<()> {
    let creations = futures::stream::iter(0..count).map(|number| async move {
        let name = name(number);
        let object: DynamicObject = serde_json::from_value(kustomization(&name))?;
        api.create(&PostParams::default(), &object).await?;
        let status = Patch::Merge(json!({"status": status(&name)}));
        api.patch_status(&name, &PatchParams::default(), &status).await?;
        anyhow::Ok(())
    });
    creations
        .buffer_unordered(AT_ONCE)
        .try_for_each(|()| async { Ok(()) })
        .await
}

/// Returns the processor time that a change of each of the objects takes.
async fn change(
    api: &Api<DynamicObject>,
    arguments: &Arguments,
    running: &Running,
    patch: impl Fn(usize) -> Value,
) -> Result<Duration> {
    let before = second(running)?.cpu_time;
    let patches = futures::stream::iter(0..arguments.changes).map(|number| {
        let (name, patch) = (name(number % arguments.objects), Patch::Merge(patch(number)));
        async move { api.patch(&name, &PatchParams::default(), &patch).await.map(drop) }
    });
    patches
        .buffer_unordered(AT_ONCE)
        .try_for_each(|()| async { Ok(()) })
        .await?;
    let used = settled(running).await?.cpu_time.saturating_sub(before);
    Ok(used / u32::try_from(arguments.changes.max(1))?)
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

fn kustomization(name: &str) -> Value {
    let object = objects::kustomization("", name, ("OCIRepository", name), "./deploy");
    let mut object = objects::with_spec(
        object,
        json!({"suspend": true, "targetNamespace": name, "timeout": "5m"}),
    );
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
        metadata.insert("finalizers".to_owned(), json!(["finalizers.fluxcd.io"]));
        metadata.insert("labels".to_owned(), json!({"team": "a", "tier": "web"}));
    }
    object
}

fn status(name: &str) -> Value {
    let revision = format!("latest@sha256:{:0>64}", name.len());
    let at = "2026-11-28T12:00:00Z";
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1,
        "message": format!("Applied revision: {revision}"), "lastTransitionTime": at,
    });
    let entries = [
        "v1_ConfigMap",
        "v1_Service",
        "v1_ServiceAccount",
        "apps_v1_Deployment",
    ];
    let entries = entries.map(|kind| json!({"id": format!("{name}_{name}__{kind}"), "v": "v1"}));
    let history = json!({
        "digest": format!("sha256:{:0>64}", name.len()), "firstReconciled": at, "lastReconciled": at,
        "lastReconciledDuration": "150ms", "lastReconciledStatus": "ReconciliationSucceeded", "totalReconciliations": 3,
        "metadata": {"revision": revision},
    });
    json!({
        "observedGeneration": 1, "conditions": [ready], "history": [history], "inventory": {"entries": entries},
        "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
    })
}

fn report(arguments: &Arguments, results: &[Measured]) {
    let title = format!("{} suspended Kustomizations", arguments.objects);
    let table = Table::new(&title, results, |m| m.name);
    table.row("memory without any", |m| mebibytes(m.empty.resident_bytes));
    table.row("both controllers are ready after", |m| seconds(m.start));
    table.row("memory at rest", |m| mebibytes(m.listed.resident_bytes));
    table.row("– of it for each", |m| {
        let all = m.listed.anonymous_bytes.saturating_sub(m.empty.anonymous_bytes);
        format!("{:.2} KiB", all as f64 / 1024.0 / arguments.objects.max(1) as f64)
    });
    table.row("peak memory", |m| mebibytes(m.listed.peak_resident_bytes));
    table.row("CPU until all are listed", |m| seconds(m.listed.cpu_time));
    table.row("CPU for each change of a label", |m| {
        format!("{} µs", m.ignored.as_micros())
    });
    table.row("CPU for each request to reconcile", |m| {
        format!("{} µs", m.looked_at.as_micros())
    });
    line("");
}
