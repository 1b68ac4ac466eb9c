//! The three measurements: N pairs to Ready, at rest, and push to Ready.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::json;
use testkit::control_plane::ApiMetrics;
use testkit::git::Change;
use testkit::objects::{self, text};
use testkit::process::Usage;
use testkit::{ControlPlane, GitServer, Registry, wait_for};

use super::Arguments;
use crate::bench::contestant::{Contestant, Running};
use crate::bench::ready::all_ready;

const NAMESPACE: &str = "bench";
const PATIENCE: Duration = Duration::from_secs(300);

/// Where it happens.
pub struct Place<'a> {
    /// A control plane with nothing in it.
    pub control_plane: &'a ControlPlane,
    /// A registry with nothing in it.
    pub registry: &'a Registry,
    /// A Git server with nothing in it.
    pub git: &'a GitServer,
}

/// What was measured of one contestant.
pub struct Measured {
    /// Whose.
    pub name: &'static str,
    /// From the first creation until all are Ready.
    pub all_ready: Duration,
    /// What the API server was asked meanwhile, by all of its clients.
    pub requests: ApiMetrics,
    /// Peak of memory and processor time of source-controller until all were Ready.
    pub source: Usage,
    /// The same of what applies.
    pub apply: Usage,
    /// What the API server was asked in the time at rest.
    pub requests_at_rest: ApiMetrics,
    /// Processor time of both controllers in the time at rest.
    pub cpu_at_rest: Duration,
    /// Resident memory of both controllers at the end of the time at rest.
    pub resident_at_rest: u64,
    /// From the poke of the source to Ready, for each push, sorted.
    pub pushes: Vec<Duration>,
}

/// Measures one contestant.
pub async fn run(place: &Place<'_>, contestant: &Contestant, arguments: &Arguments) -> Result<Measured> {
    let client = place.control_plane.client();
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    Api::<Namespace>::all(client.clone())
        .create(&PostParams::default(), &namespace)
        .await?;
    for pair in 0..arguments.pairs {
        let name = format!("app-{pair}");
        let manifests = manifests(&name, arguments.replicas);
        let files: Vec<_> = manifests
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        place
            .registry
            .push_files(&name, &["latest"], "main@sha1:0", &files)
            .await?;
    }
    let pair = contestant.start_both(place.control_plane).await?;
    let before = place.control_plane.api_metrics().await?;
    let start = Instant::now();
    let sync = sync(place, &client, arguments.pairs);
    if let Err(error) = tokio::time::timeout(PATIENCE, sync)
        .await
        .unwrap_or_else(|_| bail!("not ready in time"))
    {
        bail!("{error:#}\n{}", pair.log_tails());
    }
    let all_ready = start.elapsed();
    let requests = place.control_plane.api_metrics().await?.since(&before);
    let [source, apply] = pair.usage()?[..] else {
        bail!("two controllers were started");
    };
    let (requests_at_rest, cpu_at_rest, resident_at_rest) = rest(place, &pair, arguments.rest).await?;
    let pushes = pushes(place, &client, arguments.pushes)
        .await
        .with_context(|| pair.log_tails())?;
    Ok(Measured {
        name: contestant.name(),
        all_ready,
        requests,
        source,
        apply,
        requests_at_rest,
        cpu_at_rest,
        resident_at_rest,
        pushes,
    })
}

/// Creates all pairs and waits, with one watch, until every Kustomization is Ready.
async fn sync(place: &Place<'_>, client: &Client, pairs: usize) -> Result<()> {
    let kustomizations = objects::api(
        client,
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        NAMESPACE,
    );
    let create = futures::stream::iter(0..pairs).map(|pair| async move {
        let name = format!("app-{pair}");
        let source = objects::oci_repository(NAMESPACE, &name, &place.registry.url(&name), "latest");
        objects::apply(client, &source).await?;
        objects::apply(
            client,
            &objects::kustomization(NAMESPACE, &name, ("OCIRepository", &name), "./"),
        )
        .await
    });
    let create = create.buffer_unordered(8).try_for_each(|_| async { Ok(()) });
    let (created, ready) = tokio::join!(create, all_ready(kustomizations, pairs));
    created.and(ready)
}

/// Looks on while nothing happens. This is the one place where time is meant to pass.
async fn rest(place: &Place<'_>, pair: &Running, seconds: u64) -> Result<(ApiMetrics, Duration, u64)> {
    // What the sync left to do (events, the last watches) is not "at rest".
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (before, used) = (place.control_plane.api_metrics().await?, pair.cpu()?);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let requests = place.control_plane.api_metrics().await?.since(&before);
    Ok((requests, pair.cpu()?.saturating_sub(used), pair.resident()?))
}

/// Pushes commits to one Git repository and measures each from the poke of its source to Ready.
async fn pushes(place: &Place<'_>, client: &Client, count: usize) -> Result<Vec<Duration>> {
    let repository = place.git.create_repository("push")?;
    let commit = |number: usize| -> Result<String> {
        let mut changes = Vec::new();
        for (path, text) in manifests("push", 0) {
            changes.push(Change::write(&path, text.replace("VALUE", &number.to_string())));
        }
        Ok(format!(
            "main@sha1:{}",
            repository.commit("main", "change", &changes)?
        ))
    };
    let mut revision = commit(0)?;
    let sources = objects::api(client, "source.toolkit.fluxcd.io/v1", "GitRepository", NAMESPACE);
    let kustomizations = objects::api(
        client,
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        NAMESPACE,
    );
    objects::apply(
        client,
        &objects::git_repository(NAMESPACE, "push", repository.url(), "main"),
    )
    .await?;
    objects::apply(
        client,
        &objects::kustomization(NAMESPACE, "push", ("GitRepository", "push"), "./"),
    )
    .await?;
    let mut taken = Vec::new();
    for number in 0..=count {
        let start = Instant::now();
        let wanted = revision.clone();
        let applied =
            |o: &DynamicObject| objects::is_ready(o) && text(o, "/status/lastAppliedRevision") == wanted;
        if number > 0 {
            objects::poke(&sources, "push").await?;
        }
        wait_for(&kustomizations, "push", applied, PATIENCE).await?;
        if number > 0 {
            taken.push(start.elapsed());
        }
        revision = commit(number + 1)?;
    }
    taken.sort();
    Ok(taken)
}

/// Four small objects.
fn manifests(name: &str, replicas: u32) -> Vec<(String, String)> {
    let labels = json!({"app": name});
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels, "annotations": {"value": "VALUE"}},
            "spec": {"containers": [{"name": "app", "image": "example.com/app:1"}]},
        }},
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": labels, "ports": [{"port": 80}]},
    });
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}});
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE},
        "data": {"key": "VALUE"},
    });
    [
        ("deployment", deployment),
        ("service", service),
        ("account", account),
        ("map", map),
    ]
    .map(|(file, object)| (format!("{file}.yaml"), object.to_string()))
    .into()
}
