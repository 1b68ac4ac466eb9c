//! `bench-pipelines`: many pipelines of several environments and targets; the way from a release that is healthy in the first
//! environment to its commits for the next one, of one pipeline at a time and of all at once.
//!
//! No controller of Flux runs: the statuses of applications are written by the benchmark, so that only promotion is measured.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::git::{Change, Repository};
use testkit::{ControlPlane, GitServer, Options, install_all_crds, objects, wait_for};

use super::at_rest::{self, AtRest};
use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, seconds};

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Pipelines, each with one HelmRelease in every target.
    #[arg(long, default_value_t = 100)]
    pipelines: usize,
    /// Environments of each.
    #[arg(long, default_value_t = 4)]
    environments: usize,
    /// Targets of each environment.
    #[arg(long, default_value_t = 5)]
    targets: usize,
    /// Pipelines whose releases are followed one after the other; those of the others come at once.
    #[arg(long, default_value_t = 50)]
    rounds: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 30)]
    rest: u64,
}

const HELM: &str = "helm.toolkit.fluxcd.io/v2";
const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";
const PATIENCE: Duration = Duration::from_secs(600);
/// Requests at the same time while the load is made.
const AT_ONCE: usize = 8;

/// What was measured.
struct Measured {
    /// From the first look until all pipelines know where their releases are.
    known: Duration,
    /// From the last status of the first environment until the commit for the next; sorted.
    ways: Vec<Duration>,
    /// The same of all others at once, until the last commit of all.
    all: Duration,
    peak: u64,
    rest: AtRest,
}

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let control_plane = ControlPlane::start(Options::api_server_only()).await?;
    install_all_crds(&control_plane.client()).await?;
    let git = GitServer::start().await?;
    let team = control_plane.namespace("team").await?;
    let mut targets = Vec::new();
    for environment in 0..arguments.environments {
        for target in 0..arguments.targets {
            targets.push(
                control_plane
                    .namespace(&format!("e{environment}-{target}"))
                    .await?,
            );
        }
    }
    let fleet = Fleet {
        repository: git.create_repository("fleet")?,
        team,
        targets,
        control_plane,
        arguments,
    };
    fleet.load().await?;
    let start = Instant::now();
    let running = Contestant::start_pipelines(&fleet.control_plane).await?;
    let measured = fleet.follow(&running, start).await;
    report(arguments, &measured.with_context(|| running.log_tails())?);
    Ok(())
}

struct Fleet<'a> {
    control_plane: ControlPlane,
    repository: Repository,
    team: String,
    /// Namespaces, by environment and target.
    targets: Vec<String>,
    arguments: &'a Arguments,
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

impl Fleet<'_> {
    fn release(&self, target: usize, number: usize, version: &str) -> Value {
        json!({
            "apiVersion": HELM, "kind": "HelmRelease",
            "metadata": {"name": name(number), "namespace": self.targets[target]},
            "spec": {"interval": "1h", "chart": {"spec": {"chart": "app", "version": version,
                "sourceRef": {"kind": "HelmRepository", "name": "charts"}}}},
        })
    }

    /// The namespace's Kustomization, and what it says to have applied.
    fn owner(&self, target: usize) -> (Value, Value) {
        let path = format!("./{}", self.targets[target]);
        let owner = objects::kustomization(
            &self.team,
            &self.targets[target],
            ("GitRepository", "fleet"),
            &path,
        );
        let entries = (0..self.arguments.pipelines).map(|number| {
            let id = format!(
                "{}_{}_helm.toolkit.fluxcd.io_HelmRelease",
                self.targets[target],
                name(number)
            );
            json!({"id": id, "v": "v2"})
        });
        let entries: Vec<_> = entries.collect();
        (owner, json!({"inventory": {"entries": entries}}))
    }

    fn pipeline(&self, number: usize) -> Value {
        let environments = self.targets.chunks(self.arguments.targets).enumerate();
        let environments = environments.map(|(environment, targets)| {
            let targets: Vec<_> = targets
                .iter()
                .map(|target| json!({"namespace": target}))
                .collect();
            json!({"name": format!("e{environment}"), "targets": targets})
        });
        json!({
            "apiVersion": DELIVERY, "kind": "Pipeline", "metadata": {"name": name(number), "namespace": self.team},
            "spec": {"apps": [{"kind": "HelmRelease", "name": name(number)}],
                "environments": environments.collect::<Vec<_>>()},
        })
    }

    /// Applies an application with its status, as Flux would leave it.
    async fn deliver(&self, target: usize, number: usize, version: &str) -> Result<()> {
        let client = self.control_plane.client();
        let mut object = self.release(target, number, version);
        object["metadata"]["labels"] = json!({
            "kustomize.toolkit.fluxcd.io/name": self.targets[target],
            "kustomize.toolkit.fluxcd.io/namespace": self.team,
        });
        self.say(
            &objects::apply(&client, &object).await.map(|_| object)?,
            json!({}),
        )
        .await
    }

    /// Writes a status: the object is ready.
    async fn say(&self, object: &Value, mut status: Value) -> Result<()> {
        let (api, name) = objects::api_of(&self.control_plane.client(), object)?;
        status["observedGeneration"] = json!(api.get(&name).await?.metadata.generation);
        status["conditions"] = json!([{"type": "Ready", "status": "True", "reason": "Succeeded", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let patch = Patch::Merge(json!({"status": status}));
        api.patch_status(&name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    async fn load(&self) -> Result<()> {
        let client = self.control_plane.client();
        let pipelines = self.arguments.pipelines;
        let mut files = Vec::new();
        for (target, namespace) in self.targets.iter().enumerate() {
            for number in 0..pipelines {
                let text = serde_json::to_string_pretty(&self.release(target, number, "1.0.0"))?;
                files.push(Change::write(&format!("{namespace}/{}.yaml", name(number)), text));
            }
            let (owner, status) = self.owner(target);
            objects::apply(&client, &owner).await?;
            self.say(&owner, status).await?;
        }
        self.repository.commit("main", "all", &files)?;
        let source = objects::git_repository(&self.team, "fleet", self.repository.url(), "main");
        objects::apply(&client, &source).await?;
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "promoter"},
            "rules": [{"apiGroups": ["helm.toolkit.fluxcd.io"], "resources": ["helmreleases"], "verbs": ["get"]}],
        });
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "promoter"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "promoter"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": self.team}],
        });
        objects::apply(&client, &role).await?;
        objects::apply(&client, &binding).await?;
        let all =
            (0..self.targets.len()).flat_map(|target| (0..pipelines).map(move |number| (target, number)));
        stream::iter(all.map(|(target, number)| self.deliver(target, number, "1.0.0")))
            .buffer_unordered(AT_ONCE)
            .try_for_each(|()| async { Ok(()) })
            .await?;
        for number in 0..pipelines {
            objects::apply(&client, &self.pipeline(number)).await?;
        }
        Ok(())
    }

    /// Has the first environment of a pipeline run a version. Returns when the last status was written.
    async fn deploy(&self, number: usize, version: &str) -> Result<Instant> {
        for target in 0..self.arguments.targets {
            self.deliver(target, number, version).await?;
        }
        Ok(Instant::now())
    }

    fn commits(&self) -> Result<usize> {
        Ok(self
            .repository
            .git(&["rev-list", "--count", "main"])?
            .trim()
            .parse()?)
    }

    /// Waits until the branch has so many commits.
    async fn has(&self, commits: usize) -> Result<Instant> {
        let waiting = async {
            while self.commits()? < commits {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Ok::<_, anyhow::Error>(Instant::now())
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .context("commits are missing")?
    }

    async fn follow(&self, running: &Running, start: Instant) -> Result<Measured> {
        let Arguments {
            pipelines,
            environments,
            rounds,
            rest,
            ..
        } = *self.arguments;
        let api = objects::api(&self.control_plane.client(), DELIVERY, "Pipeline", &self.team);
        for number in 0..pipelines {
            let last = format!("/status/environments/{}/release", environments - 1);
            let is_known = |pipeline: &_| objects::field(pipeline, &last) == Some(&json!(1));
            wait_for(&api, &name(number), is_known, PATIENCE).await?;
        }
        let known = start.elapsed();
        let rest = at_rest::look_on(&self.control_plane, running, rest).await?;
        ensure!(self.commits()? == 1, "something was promoted");
        ensure!(rounds < pipelines, "there are more rounds than pipelines");
        let mut ways = Vec::new();
        for round in 0..rounds {
            let commits = self.commits()?;
            let ready = self.deploy(round, "1.1.0").await?;
            ways.push(self.has(commits + 1).await?.saturating_duration_since(ready));
        }
        ways.sort_unstable();
        let commits = self.commits()?;
        stream::iter((rounds..pipelines).map(|number| self.deploy(number, "1.1.0")))
            .buffer_unordered(AT_ONCE)
            .try_for_each(|_| async { Ok(()) })
            .await?;
        let ready = Instant::now();
        let all = self.has(commits + pipelines - rounds).await?;
        Ok(Measured {
            known,
            ways,
            all: all.saturating_duration_since(ready),
            peak: running
                .usage()?
                .iter()
                .map(|usage| usage.peak_resident_bytes)
                .sum(),
            rest,
        })
    }
}

fn report(arguments: &Arguments, measured: &Measured) {
    let title = format!(
        "{} pipelines of {} environments and {} targets each",
        arguments.pipelines, arguments.environments, arguments.targets
    );
    let results = std::slice::from_ref(measured);
    let table = Table::new(&title, results, |_| "Windlass");
    let at = |times: &[Duration], percent: usize| {
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        seconds(times.get(index).copied().unwrap_or_default())
    };
    table.row("from the start until all releases are known", |m| {
        seconds(m.known)
    });
    table.row(
        "from healthy in the first environment to the commit for the next, median",
        |m| at(&m.ways, 50),
    );
    table.row("– 99 of 100", |m| at(&m.ways, 99));
    let others = arguments.pipelines - arguments.rounds;
    table.row(
        &format!("{others} pipelines at once, from the last status to the last commit"),
        |m| seconds(m.all),
    );
    table.row("peak memory", |m| mebibytes(m.peak));
    at_rest::rows(&table, arguments.rest, |m| &m.rest);
    line("");
}
