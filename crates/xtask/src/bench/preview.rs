//! `bench-previews`: pull requests of a repository with many applications: one that touches a single application, and one that
//! touches the base of all; at a real Gitea, from the request to look until the comment and the commit status are there.
//!
//! Only pipeline-controller runs: the Kustomizations are there, and what they would apply is not, so that all of it is compared.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::api::DynamicObject;
use reqwest::Method;
use serde_json::{Value, json};
use testkit::gitea::User;
use testkit::{ControlPlane, Gitea, Options, install_all_crds, objects, wait_for};

use super::at_rest::{self, AtRest};
use super::contestant::{Contestant, Running};
use super::figures::{Table, line, mebibytes, seconds};

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Applications: a Kustomization over a common base each.
    #[arg(long, default_value_t = 1000)]
    apps: usize,
    /// Pull requests that touch one application, one after the other.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
    /// Seconds to look on at rest.
    #[arg(long, default_value_t = 30)]
    rest: u64,
}

const DELIVERY: &str = "delivery.windlass.dev/v1alpha1";
const PATIENCE: Duration = Duration::from_secs(600);
/// Files in a commit that is made over Gitea's API.
const FILES: usize = 500;

/// What was measured.
struct Measured {
    /// Of pull requests that touch one application; sorted.
    one: Vec<Duration>,
    /// Of the one that touches the base of all.
    all: Duration,
    /// The peak before that one.
    peak_of_one: u64,
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
    let gitea = Gitea::start().await?;
    let user = gitea.add_user("team").await?;
    let fleet = Fleet {
        team: control_plane.namespace("team").await?,
        control_plane,
        gitea,
        user,
        arguments,
    };
    fleet.load().await?;
    let running = Contestant::start_pipelines(&fleet.control_plane).await?;
    let measured = fleet.follow(&running).await;
    report(arguments, &measured.with_context(|| running.log_tails())?);
    Ok(())
}

struct Fleet<'a> {
    control_plane: ControlPlane,
    gitea: Gitea,
    user: User,
    team: String,
    arguments: &'a Arguments,
}

fn map(value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app"}, "data": {"key": value}})
        .to_string()
}

impl Fleet<'_> {
    async fn load(&self) -> Result<()> {
        let client = self.control_plane.client();
        let mut files = vec![
            (
                "base/kustomization.yaml".to_owned(),
                "resources: [app.yaml]\n".to_owned(),
            ),
            ("base/app.yaml".to_owned(), map("1")),
        ];
        for app in 0..self.arguments.apps {
            let kustomization = format!("namePrefix: a{app}-\nresources: [../../base, own.yaml]\n");
            files.push((format!("apps/{app}/kustomization.yaml"), kustomization));
            files.push((format!("apps/{app}/own.yaml"), own("1")));
        }
        let files: Vec<_> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        self.gitea
            .add_repository(&self.user, "fleet", &files[..1])
            .await?;
        for some in files[1..].chunks(FILES) {
            self.gitea.commit(&self.user, "team/fleet", "main", some).await?;
        }
        let url = format!("{}.git", self.gitea.repository_url("team", "fleet"));
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "fleet", "namespace": self.team},
            "stringData": {"username": "team", "password": self.user.token}});
        let source = objects::git_repository(&self.team, "fleet", &url, "main");
        let source = objects::with_spec(source, json!({"secretRef": {"name": "fleet"}}));
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "previews"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": self.team}],
        });
        let preview = json!({
            "apiVersion": DELIVERY, "kind": "Preview", "metadata": {"name": "all", "namespace": self.team},
            "spec": {"interval": "1h", "serviceAccountName": "default", "timeout": "10m",
                "forge": {"provider": "gitea", "secretRef": {"name": "fleet"}}},
        });
        for object in [&secret, &source, &binding, &preview] {
            objects::apply(&client, object).await?;
        }
        for app in 0..self.arguments.apps {
            let name = format!("app-{app}");
            let object = objects::kustomization(
                &self.team,
                &name,
                ("GitRepository", "fleet"),
                &format!("./apps/{app}"),
            );
            let object = objects::with_spec(object, json!({"targetNamespace": self.team}));
            objects::apply(&client, &object).await?;
        }
        Ok(())
    }

    /// Opens a pull request, and has it compared.
    async fn compare(&self, branch: &str, file: (&str, &str)) -> Result<(Duration, String)> {
        let body = json!({"new_branch_name": branch, "old_branch_name": "main"});
        self.gitea
            .call_as(&self.user, Method::POST, "repos/team/fleet/branches", Some(body))
            .await?;
        let head = self
            .gitea
            .commit(&self.user, "team/fleet", branch, &[file])
            .await?;
        let body = json!({"head": branch, "base": "main", "title": branch});
        self.gitea
            .call_as(&self.user, Method::POST, "repos/team/fleet/pulls", Some(body))
            .await?;
        let api = objects::api(&self.control_plane.client(), DELIVERY, "Preview", &self.team);
        let find = |object: &DynamicObject| {
            let all = objects::field(object, "/status/pullRequests")
                .and_then(Value::as_array)
                .cloned();
            let mut all = all.unwrap_or_default().into_iter();
            all.find(|one| one["head"] == head && one["state"] != "Pending")
        };
        let start = Instant::now();
        objects::poke(&api, "all").await?;
        let object = wait_for(&api, "all", |object| find(object).is_some(), PATIENCE).await?;
        let took = start.elapsed();
        let found = find(&object).context("it is there")?;
        ensure!(found["state"] == "Succeeded", "{found}");
        // The next one is measured alone.
        let at = format!("repos/team/fleet/pulls/{}", found["number"]);
        self.gitea
            .call_as(&self.user, Method::PATCH, &at, Some(json!({"state": "closed"})))
            .await?;
        Ok((took, found["message"].as_str().unwrap_or_default().to_owned()))
    }

    async fn follow(&self, running: &Running) -> Result<Measured> {
        let api = objects::api(&self.control_plane.client(), DELIVERY, "Preview", &self.team);
        wait_for(&api, "all", objects::is_ready, PATIENCE).await?;
        let peak = || -> Result<u64> {
            Ok(running
                .usage()?
                .iter()
                .map(|usage| usage.peak_resident_bytes)
                .sum())
        };
        let mut one = Vec::new();
        for round in 0..self.arguments.rounds {
            let path = format!("apps/{round}/own.yaml");
            let (took, said) = self.compare(&format!("one-{round}"), (&path, &own("2"))).await?;
            ensure!(said == "2 created", "{said}");
            one.push(took);
        }
        one.sort_unstable();
        let peak_of_one = peak()?;
        let (all, said) = self.compare("all", ("base/app.yaml", &map("2"))).await?;
        ensure!(said == format!("{} created", 2 * self.arguments.apps), "{said}");
        let rest = at_rest::look_on(&self.control_plane, running, self.arguments.rest).await?;
        Ok(Measured {
            one,
            all,
            peak_of_one,
            peak: peak()?,
            rest,
        })
    }
}

fn own(value: &str) -> String {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own"}, "data": {"key": value}})
        .to_string()
}

fn report(arguments: &Arguments, measured: &Measured) {
    let title = format!("{} applications over a common base, at Gitea", arguments.apps);
    let results = std::slice::from_ref(measured);
    let table = Table::new(&title, results, |_| "Windlass");
    let at = |times: &[Duration], percent: usize| {
        let index = (times.len() * percent / 100).min(times.len().saturating_sub(1));
        seconds(times.get(index).copied().unwrap_or_default())
    };
    table.row("a pull request that touches one, median", |m| at(&m.one, 50));
    table.row("– the slowest", |m| at(&m.one, 100));
    table.row("one that touches the base of all", |m| seconds(m.all));
    table.row("peak memory, one", |m| mebibytes(m.peak_of_one));
    table.row("peak memory, all", |m| mebibytes(m.peak));
    at_rest::rows(&table, arguments.rest, |m| &m.rest);
    line("");
}
