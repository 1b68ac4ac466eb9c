//! `bench-chain`: how long a chain of Kustomizations takes in which each waits for the one before.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::objects::{self, text};
use testkit::process::Usage;
use testkit::{ControlPlane, GitServer, Options, install_crds, wait_for};

use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, seconds};

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Kustomizations in the chain.
    #[arg(long, default_value_t = 10)]
    length: usize,
    /// Revisions that are pushed, one after the other, once the chain is Ready.
    #[arg(long, default_value_t = 1)]
    revisions: usize,
    /// A folder with Flux's source-controller and kustomize-controller, to be measured first.
    #[arg(long, value_name = "FOLDER")]
    pub(super) peer: Option<PathBuf>,
}

/// Figures of one contestant.
struct Measured {
    pub(super) name: &'static str,
    /// From the first creation until the last of the chain is Ready.
    created: Duration,
    /// From the poke of the source with a new revision until the last is Ready with it, for each.
    revisions: Vec<Duration>,
    /// How many requests both controllers sent for all this, by their own count.
    requests: u64,
    /// Of what applies.
    pub(super) usage: Usage,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let mut results = Vec::new();
    for contestant in Contestant::all(arguments.peer.as_deref()) {
        let control_plane = ControlPlane::start(Options::default()).await?;
        install_crds(&control_plane.client()).await?;
        let git = GitServer::start().await?;
        let running = contestant.start_both(&control_plane).await?;
        let chain = Chain {
            client: control_plane.client(),
            namespace: control_plane.namespace("chain").await?,
            repository: git.create_repository("chain")?,
            length: arguments.length,
        };
        let measured = chain.measure(&contestant, &running, arguments.revisions).await;
        results.push(measured.with_context(|| running.log_tails())?);
    }
    report(arguments, &results);
    Ok(())
}

struct Chain {
    client: Client,
    namespace: String,
    repository: Repository,
    length: usize,
}

impl Chain {
    async fn measure(
        &self,
        contestant: &Contestant,
        running: &Running,
        revisions: usize,
    ) -> Result<Measured> {
        let revision = self.commit(0)?;
        let start = Instant::now();
        self.create().await?;
        self.last_ready(&revision).await?;
        let created = start.elapsed();
        let sources = objects::api(&self.client, SOURCE, "GitRepository", &self.namespace);
        let mut taken = Vec::new();
        for number in 1..=revisions {
            let revision = self.commit(number)?;
            let start = Instant::now();
            objects::poke(&sources, "chain").await?;
            self.last_ready(&revision).await?;
            taken.push(start.elapsed());
        }
        let usage = running.usage()?;
        Ok(Measured {
            name: contestant.name(),
            created,
            revisions: taken,
            requests: running.requests().await?.iter().sum(),
            usage: *usage.last().context("nothing was started")?,
        })
    }

    /// Creates the source and the whole chain, the last of it first: no one is ready when it is created.
    async fn create(&self) -> Result<()> {
        let source = objects::git_repository(&self.namespace, "chain", self.repository.url(), "main");
        objects::apply(&self.client, &source).await?;
        let creations = futures::stream::iter((0..self.length).rev())
            .map(|number| async move { objects::apply(&self.client, &self.link(number)).await });
        creations.buffered(8).try_for_each(|_| async { Ok(()) }).await
    }

    /// One Kustomization, which waits for its objects and for the one before.
    fn link(&self, number: usize) -> Value {
        let path = format!("./{}", name(number));
        let source = ("GitRepository", "chain");
        let link = objects::kustomization(&self.namespace, &name(number), source, &path);
        match number.checked_sub(1) {
            Some(before) => objects::with_spec(link, json!({"dependsOn": [{"name": name(before)}]})),
            None => link,
        }
    }

    async fn last_ready(&self, revision: &str) -> Result<()> {
        let last = name(self.length.saturating_sub(1));
        let api = objects::api(&self.client, KUSTOMIZE, "Kustomization", &self.namespace);
        let applied = |object: &DynamicObject| {
            objects::is_ready(object) && text(object, "/status/lastAppliedRevision") == revision
        };
        // Flux looks every thirty seconds whether a dependency is ready.
        let patience = Duration::from_secs(120 + 40 * self.length as u64);
        wait_for(&api, &last, applied, patience).await.map(drop)
    }

    /// Commits other contents for every Kustomization, and returns the revision.
    fn commit(&self, number: usize) -> Result<String> {
        let files = (0..self.length).flat_map(|link| {
            let name = name(link);
            manifests(&self.namespace, &name, number)
                .map(|(file, object)| Change::write(&format!("{name}/{file}.yaml"), object.to_string()))
        });
        let commit = self
            .repository
            .commit("main", "change", &files.collect::<Vec<_>>())?;
        Ok(format!("main@sha1:{commit}"))
    }
}

fn name(number: usize) -> String {
    format!("link-{number}")
}

/// A ConfigMap, and a Deployment whose one Pod is rolled out anew with every number.
fn manifests(namespace: &str, name: &str, number: usize) -> [(&'static str, Value); 2] {
    let metadata = json!({"name": name, "namespace": namespace});
    let labels = json!({"app": name});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": number.to_string()},
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels, "annotations": {"number": number.to_string()}},
            "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "app", "image": "example.com/app:1"}],
            },
        }},
    });
    [("map", map), ("deployment", deployment)]
}

fn report(arguments: &Arguments, results: &[Measured]) {
    let title = format!("a chain of {}, each with wait: true", arguments.length);
    let table = Table::new(&title, results, |m| m.name);
    table.row("from creation to the last Ready", |m| seconds(m.created));
    for number in 0..arguments.revisions {
        table.row("from a new revision to the last Ready", |m| {
            m.revisions.get(number).copied().map(seconds).unwrap_or_default()
        });
    }
    table.row("API requests of both controllers, by their own count", |m| {
        m.requests.to_string()
    });
    table.row("apply- or kustomize-controller, peak memory", |m| {
        mebibytes(m.usage.peak_resident_bytes)
    });
    table.row("apply- or kustomize-controller, CPU", |m| {
        seconds(m.usage.cpu_time)
    });
    line("");
}
