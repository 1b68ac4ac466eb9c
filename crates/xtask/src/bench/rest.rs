//! `bench-rest`: what many Kustomizations cost that have nothing to do.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use serde_json::json;
use testkit::git::Change;
use testkit::{ControlPlane, GitServer, Options, install_crds, objects};

use super::at_rest::{self, AtRest};
use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, requests, seconds};
use super::ready::all_ready;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Kustomizations, each with a folder of its own in one Git repository.
    #[arg(long, default_value_t = 1000)]
    kustomizations: usize,
    /// Seconds to look on.
    #[arg(long, default_value_t = 300)]
    seconds: u64,
    /// The interval of source and Kustomizations. With a short one it is seen what a look costs that finds nothing new.
    #[arg(long, default_value = "1h")]
    interval: String,
    /// A folder with Flux's source-controller and kustomize-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    pub(super) peer: Option<PathBuf>,
}

/// Figures of one contestant.
struct Measured {
    pub(super) name: &'static str,
    all_ready: Duration,
    /// Peak of memory of both until then, in bytes.
    peak: u64,
    rest: AtRest,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        // Nothing but the API server: what is counted at rest is of the controllers, or of no one.
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        install_crds(&control_plane.client()).await?;
        let git = GitServer::start().await?;
        let running = contestant.start_both(&control_plane).await?;
        let measured = look_on(&control_plane, &git, &contestant, &running, arguments).await;
        results.push(measured.with_context(|| running.log_tails())?);
    }
    report(arguments, &results);
    Ok(())
}

async fn look_on(
    control_plane: &ControlPlane,
    git: &GitServer,
    contestant: &Contestant,
    running: &Running,
    arguments: &Arguments,
) -> Result<Measured> {
    let namespace = control_plane.namespace("rest").await?;
    let repository = git.create_repository("rest")?;
    let files = (0..arguments.kustomizations).map(|number| {
        let name = name(number);
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace},
            "data": {"key": "value"},
        });
        Change::write(&format!("{name}/map.yaml"), map.to_string())
    });
    repository.commit("main", "all", &files.collect::<Vec<_>>())?;
    let start = Instant::now();
    let created = create(control_plane, &namespace, repository.url(), arguments);
    let kustomizations = objects::api(
        &control_plane.client(),
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        &namespace,
    );
    let patience = Duration::from_secs(300 + arguments.kustomizations as u64);
    let ready = tokio::time::timeout(patience, all_ready(kustomizations, arguments.kustomizations));
    let (created, ready) = tokio::join!(created, ready);
    created?;
    ready.with_context(|| format!("not ready after {patience:?}"))??;
    let all_ready = start.elapsed();
    let peak = running
        .usage()?
        .iter()
        .map(|usage| usage.peak_resident_bytes)
        .sum();
    Ok(Measured {
        name: contestant.name(),
        all_ready,
        peak,
        rest: at_rest::look_on(control_plane, running, arguments.seconds).await?,
    })
}

async fn create(
    control_plane: &ControlPlane,
    namespace: &str,
    url: &str,
    arguments: &Arguments,
) -> Result<()> {
    let client = &control_plane.client();
    let interval = &json!({"interval": arguments.interval});
    let source = objects::git_repository(namespace, "rest", url, "main");
    objects::apply(client, &objects::with_spec(source, interval.clone())).await?;
    let creations = futures::stream::iter(0..arguments.kustomizations).map(|number| async move {
        let name = name(number);
        let object =
            objects::kustomization(namespace, &name, ("GitRepository", "rest"), &format!("./{name}"));
        objects::apply(client, &objects::with_spec(object, interval.clone())).await
    });
    creations
        .buffer_unordered(8)
        .try_for_each(|_| async { Ok(()) })
        .await
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

fn report(arguments: &Arguments, results: &[Measured]) {
    let title = format!(
        "{} Kustomizations, interval {}",
        arguments.kustomizations, arguments.interval
    );
    let table = Table::new(&title, results, |m| m.name);
    table.row("all Ready", |m| seconds(m.all_ready));
    table.row("peak memory of both until then", |m| mebibytes(m.peak));
    at_rest::rows(&table, arguments.seconds, |m| &m.rest);
    line("\nAPI requests at rest, all clients (a watch is counted when it ends):\n");
    requests(results, |m| m.name, 1, |m| &m.rest.requests);
    line("");
}
