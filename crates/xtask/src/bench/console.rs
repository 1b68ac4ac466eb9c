//! `bench-console`: the picture of N apps, queries at a rate, and how long after the API server's answer a change is seen by
//! subscribers.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use futures::{StreamExt as _, TryStreamExt as _};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::{ControlPlane, Controller, Options, artifact_access, install_all_crds, objects};
use tokio::sync::mpsc;

use super::figures::{line, mebibytes, percentile, seconds};
use super::pages;

/// Arguments of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Kustomizations, with a GitRepository for each ten, in twenty namespaces.
    #[arg(long, default_value_t = 1000)]
    apps: usize,
    /// Objects in the inventory of each.
    #[arg(long, default_value_t = 10)]
    objects: usize,
    /// Control planes with all of that in each.
    #[arg(long, default_value_t = 2)]
    clusters: usize,
    /// Queries a second.
    #[arg(long, default_value_t = 200)]
    rate: usize,
    /// Open streams, of twenty callers.
    #[arg(long, default_value_t = 200)]
    streams: usize,
    /// Open tabs of the same callers.
    #[arg(long, default_value_t = 500)]
    tabs: usize,
}

const NAMESPACES: usize = 20;
pub(super) const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const SOURCE: &str = "source.toolkit.fluxcd.io/v1";
/// Objects are made so many at a time.
const AT_ONCE: usize = 32;
/// Queries are asked for so long.
const ASKING: Duration = Duration::from_secs(10);
const CHANGES: usize = 50;
const REST: Duration = Duration::from_secs(30);
const CALLERS: usize = 20;
/// The namespace that names further clusters.
const CLUSTERS: &str = "clusters";

/// Measures and prints.
pub fn run(arguments: &Arguments) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(arguments))
}

async fn measure(arguments: &Arguments) -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let client = control_plane.client();
    let mut others = Vec::new();
    for _ in 1..arguments.clusters {
        others.push(ControlPlane::start(Options::api_server_only()).await?);
    }
    let clients: Vec<Client> = [client.clone()]
        .into_iter()
        .chain(others.iter().map(ControlPlane::client))
        .collect();
    let began = Instant::now();
    for client in &clients {
        install_all_crds(client).await?;
        declare(client, arguments).await?;
    }
    line(&format!(
        "{} apps of {} objects were made in each of {} clusters in {}",
        arguments.apps,
        arguments.objects,
        clients.len(),
        seconds(began.elapsed())
    ));
    let mut tokens = Vec::new();
    for number in 0..CALLERS {
        let name = format!("caller-{number}");
        for client in &clients {
            caller(client, &name).await?;
        }
        tokens.push(artifact_access::token(&client, "default", &name, None).await?);
    }
    name_clusters(&client, &others).await?;
    let ledger = testkit::scratch::directory("ledger")?;
    let options = ControllerOptions {
        flags: vec![
            format!("--clusters-namespace={CLUSTERS}"),
            format!(
                "--ledger-url=sqlite:{}",
                ledger.path().join("ledger.db").display()
            ),
        ],
        ..ControllerOptions::default()
    };
    let began = Instant::now();
    let console = Controller::start_console(control_plane.kubeconfig_path(), options).await?;
    let http = reqwest::Client::builder().no_proxy().build()?;
    let of_first = console.start_time();
    until_complete(&console, &http, &tokens[0], clients.len()).await?;
    line("\n| console | |\n|---|---|");
    line(&format!(
        "| from the start of the process to a complete picture: of this cluster, of all | {}, {} |",
        seconds(of_first),
        seconds(began.elapsed())
    ));
    let row = |what: &str, bytes: u64| line(&format!("| {what} | {} |", mebibytes(bytes)));
    row("memory then", console.usage()?.resident_bytes);
    queries(&console, &http, &tokens, arguments.rate).await?;
    row("memory after the queries", console.usage()?.resident_bytes);
    changes(&client, &console, &http, &tokens, arguments.streams).await?;
    row("memory with the streams", console.usage()?.resident_bytes);
    let (before, cpu) = (requests(&console).await?, console.usage()?.cpu_time);
    // This is what is measured: that time passes and nothing happens.
    tokio::time::sleep(REST).await;
    let (after, now) = (requests(&console).await?, console.usage()?.cpu_time);
    line(&format!(
        "| requests to the API server in {REST:?} at rest | {} |",
        after - before
    ));
    line(&format!(
        "| CPU in {REST:?} at rest | {} ms |",
        now.saturating_sub(cpu).as_millis()
    ));
    pages::pages(&console, &http, &tokens[0]).await?;
    pages::tabs(&client, &console, &http, &tokens, arguments.tabs).await?;
    line("\n| console | |\n|---|---|");
    row("memory with the tabs", console.usage()?.resident_bytes);
    row("highest memory", console.usage()?.peak_resident_bytes);
    Ok(())
}

/// Has the console watch these, too; accounts are the same there.
async fn name_clusters(client: &Client, others: &[ControlPlane]) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CLUSTERS}});
    objects::apply(client, &namespace).await?;
    for (number, cluster) in others.iter().enumerate() {
        let name = format!("cluster-{number}");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {
                "name": name, "namespace": CLUSTERS, "labels": {"windlass.dev/cluster": name},
                "annotations": {"windlass.dev/shared-service-accounts": "true"},
            },
            "stringData": {"value": std::fs::read_to_string(cluster.kubeconfig_path())?},
        });
        objects::apply(client, &secret).await?;
    }
    Ok(())
}

async fn until_complete(
    console: &Controller,
    http: &reqwest::Client,
    token: &str,
    count: usize,
) -> Result<()> {
    let waiting = async {
        loop {
            let url = format!("{}/clusters", console.api_url());
            let all: Value = http.get(url).bearer_auth(token).send().await?.json().await?;
            let all = all.as_array().into_iter().flatten();
            if all.filter(|cluster| cluster["complete"] == true).count() == count {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await; // a list tells nobody of changes
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waiting).await?
}

fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

/// Makes sources and apps, as controllers leave them.
async fn declare(client: &Client, arguments: &Arguments) -> Result<()> {
    for number in 0..NAMESPACES {
        let object =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(number)}});
        objects::apply(client, &object).await?;
    }
    let sources = futures::stream::iter(0..arguments.apps.div_ceil(10)).map(|number| async move {
        let namespace = namespace(number);
        let url = format!("https://git.example.com/{number}.git");
        let name = format!("repo-{number}");
        objects::apply(client, &objects::git_repository(&namespace, &name, &url, "main")).await?;
        let status = json!({"observedGeneration": 1, "conditions": [ready()]});
        patch_status(client, (SOURCE, "GitRepository"), (&namespace, &name), status).await
    });
    sources.buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    let apps = futures::stream::iter(0..arguments.apps).map(|number| async move {
        let (namespace, name) = (namespace(number), format!("app-{number}"));
        let source = format!("repo-{}", number / 10);
        let mut object = objects::kustomization(&namespace, &name, ("GitRepository", &source), "./deploy");
        object["metadata"]["labels"] = json!({"team": namespace});
        objects::apply(client, &object).await?;
        let entries: Vec<Value> = (0..arguments.objects)
            .map(|object| json!({"id": format!("{namespace}_{name}-{object}_apps_Deployment"), "v": "v1"}))
            .collect();
        let status = json!({
            "observedGeneration": 1, "conditions": [ready()], "inventory": {"entries": entries},
            "lastAppliedRevision": format!("main@sha1:{:040x}", number / 10),
        });
        patch_status(client, (KUSTOMIZE, "Kustomization"), (&namespace, &name), status).await
    });
    apps.buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    Ok(())
}

pub(super) fn ready() -> Value {
    json!({
        "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1,
        "message": "Applied revision: main@sha1:0123456789012345678901234567890123456789",
        "lastTransitionTime": "2026-11-25T10:00:00Z",
    })
}

pub(super) async fn patch_status(
    client: &Client,
    (version, kind): (&str, &str),
    (namespace, name): (&str, &str),
    status: Value,
) -> Result<()> {
    let api = objects::api(client, version, kind, namespace);
    let patch = Patch::Merge(json!({"status": status}));
    api.patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Someone who may get the kinds of Flux in all namespaces but one, so that each namespace is asked about.
async fn caller(client: &Client, name: &str) -> Result<()> {
    let group = "rbac.authorization.k8s.io";
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": "reader"},
        "rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]}],
    });
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}});
    for object in [role, account] {
        objects::apply(client, &object).await?;
    }
    for number in 1..NAMESPACES {
        let binding = json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
            "metadata": {"name": name, "namespace": namespace(number)},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        });
        objects::apply(client, &binding).await?;
    }
    Ok(())
}

/// Asks at a rate, whatever the answers take.
async fn queries(console: &Controller, http: &reqwest::Client, tokens: &[String], rate: usize) -> Result<()> {
    let paths = [
        "objects".to_owned(),
        format!("objects?namespace={}", namespace(3)),
        "objects?status=Failed".to_owned(),
        "objects?text=app-77".to_owned(),
        "objects?kind=ks&label=team=team-4&limit=100".to_owned(),
        "objects?filter=row.kind == 'Kustomization' %26%26 row.name.endsWith('7')".to_owned(),
        format!("objects/local/ks/{}/app-42/tree", namespace(42)),
        format!("objects/local/ks/{}/app-42/why", namespace(42)),
    ];
    let ask = async |number: usize| {
        let url = format!("{}/{}", console.api_url(), paths[number % paths.len()]);
        let began = Instant::now();
        let answer = http
            .get(url)
            .bearer_auth(&tokens[number % tokens.len()])
            .send()
            .await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        let bytes = answer.bytes().await?.len();
        Ok::<_, anyhow::Error>((began.elapsed(), bytes))
    };
    // Rights are asked for once a minute for each caller.
    let mut first = Vec::new();
    for number in 0..tokens.len() {
        first.push(ask(number * (paths.len() + 1)).await?.0);
    }
    first.sort();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(rate)?);
    let count = usize::try_from(ASKING.as_secs())? * rate;
    let mut asked = futures::stream::FuturesUnordered::new();
    let (mut took, mut number) = (Vec::new(), 0);
    while took.len() < count {
        tokio::select! {
            _ = ticks.tick(), if number < count => {
                asked.push(ask(number));
                number += 1;
            }
            Some(answer) = asked.next() => took.push(answer?.0),
        }
    }
    took.sort();
    line(&format!(
        "| first query of a caller, median | {} |",
        percentile(&first, 50)
    ));
    line(&format!(
        "| {rate} queries a second: median, 95 of 100, 99 of 100 | {}, {}, {} |",
        percentile(&took, 50),
        percentile(&took, 95),
        percentile(&took, 99)
    ));
    Ok(())
}

/// Changes objects, and measures from the API server's answer until each stream has the change.
async fn changes(
    client: &Client,
    console: &Controller,
    http: &reqwest::Client,
    tokens: &[String],
    streams: usize,
) -> Result<()> {
    let (told, mut seen) = mpsc::unbounded_channel();
    let mut readers = tokio::task::JoinSet::new();
    for number in 0..streams {
        let url = format!("{}/watch?kind=ks", console.api_url());
        let answer = http
            .get(url)
            .bearer_auth(&tokens[number % tokens.len()])
            .send()
            .await?;
        ensure!(answer.status().is_success(), "{}", answer.status());
        let told = told.clone();
        readers.spawn(async move {
            let mut bytes = answer.bytes_stream();
            let mut text = String::new();
            while let Some(Ok(part)) = bytes.next().await {
                text.push_str(&String::from_utf8_lossy(&part));
                while let Some((event, rest)) = text.split_once("\n\n") {
                    if let Some(at) = event.find("change-") {
                        let digits = event[at + 7..].chars().take_while(char::is_ascii_digit);
                        let change: usize = digits.collect::<String>().parse().unwrap_or_default();
                        _ = told.send((change, Instant::now()));
                    }
                    text = rest.to_owned();
                }
            }
        });
    }
    let mut took = Vec::new();
    for change in 0..CHANGES {
        let number = change + 1; // in namespaces that the callers see
        let mut condition = ready();
        condition["message"] = json!(format!("change-{change}"));
        let status = json!({"conditions": [condition]});
        let (namespace, name) = (namespace(number % 19 + 1), format!("app-{}", number % 19 + 1));
        patch_status(client, (KUSTOMIZE, "Kustomization"), (&namespace, &name), status).await?;
        let answered = Instant::now();
        let mut missing = streams;
        while missing > 0 {
            let next = tokio::time::timeout(Duration::from_secs(10), seen.recv()).await;
            let (which, at) = next
                .context("a change is not seen")?
                .context("the streams ended")?;
            if which == change {
                took.push(at.saturating_duration_since(answered));
                missing -= 1;
            }
        }
    }
    took.sort();
    line(&format!(
        "| a change at each of {streams} streams, from the API server's answer: median, 99 of 100, longest | {}, {}, {} |",
        percentile(&took, 50),
        percentile(&took, 99),
        percentile(&took, 100)
    ));
    // They stay open for what is measured at rest.
    readers.detach_all();
    Ok(())
}

async fn requests(console: &Controller) -> Result<u64> {
    let metrics = console.metrics().await?;
    let counts = metrics
        .lines()
        .filter(|line| line.starts_with("rest_client_requests_total"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok());
    Ok(counts.sum())
}
