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

use super::arguments::Arguments;
use crate::bench::at_rest::{self, AtRest};
use crate::bench::contestant::Contestant;
use crate::bench::ready::all_ready;

pub const NAMESPACE: &str = "bench";
/// For one push.
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

/// Figures of one contestant.
pub struct Measured {
    /// Name of the contestant.
    pub name: &'static str,
    /// From the first creation until all are Ready.
    pub all_ready: Duration,
    /// Requests to the API server meanwhile, by all of its clients.
    pub requests: ApiMetrics,
    /// How many of them both controllers sent, by their own count.
    pub own_requests: u64,
    /// Peak of memory and processor time of source-controller until all were Ready.
    pub source: Usage,
    /// The same of what applies.
    pub apply: Usage,
    /// Cost at rest, after the run.
    pub rest: AtRest,
    /// From the poke of the source to Ready, for each push, sorted.
    pub pushes: Vec<Duration>,
}

/// Measures one contestant.
pub async fn run(place: &Place<'_>, contestant: &Contestant, arguments: &Arguments) -> Result<Measured> {
    let client = place.control_plane.client();
    prepare(place, arguments.pairs, arguments.replicas).await?;
    let pair = contestant.start_both(place.control_plane).await?;
    let before = place.control_plane.api_metrics().await?;
    let start = Instant::now();
    let sync = sync(place, &client, arguments.pairs);
    // Flux takes half a second for each.
    let patience = PATIENCE + Duration::from_secs(arguments.pairs as u64);
    if let Err(error) = tokio::time::timeout(patience, sync)
        .await
        .unwrap_or_else(|_| bail!("not ready in time"))
    {
        bail!("{error:#}\n{}", pair.log_tails());
    }
    let all_ready = start.elapsed();
    let requests = place.control_plane.api_metrics().await?.since(&before);
    let own_requests = pair.requests().await?.iter().sum();
    let [source, apply] = pair.usage()?[..] else {
        bail!("two controllers were started");
    };
    let rest = at_rest::look_on(place.control_plane, &pair, arguments.rest).await?;
    let pushes = pushes(place, &client, arguments.pushes)
        .await
        .with_context(|| pair.log_tails())?;
    Ok(Measured {
        name: contestant.name(),
        all_ready,
        requests,
        own_requests,
        source,
        apply,
        rest,
        pushes,
    })
}

/// Makes the namespace, and pushes the artifact of each pair.
pub async fn prepare(place: &Place<'_>, pairs: usize, replicas: u32) -> Result<()> {
    let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}}))?;
    Api::<Namespace>::all(place.control_plane.client())
        .create(&PostParams::default(), &namespace)
        .await?;
    let pushes = futures::stream::iter(0..pairs).map(|pair| async move {
        let name = format!("app-{pair}");
        let manifests = manifests(&name, replicas);
        let files: Vec<_> = manifests
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        place
            .registry
            .push_files(&name, &["latest"], "main@sha1:0", &files)
            .await
    });
    pushes
        .buffer_unordered(8)
        .try_for_each(|_| async { Ok(()) })
        .await
}

/// Creates all pairs and waits, with one watch, until every Kustomization is Ready.
pub async fn sync(place: &Place<'_>, client: &Client, pairs: usize) -> Result<()> {
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
