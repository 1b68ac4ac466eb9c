//! Installed, used, upgraded, uninstalled: with containers that truly run.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::api::{DeleteParams, ListParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use testkit::git::Change;
use testkit::objects::{self, is_ready, text};
use testkit::{wait_for, wait_until_gone};

use crate::cluster::{NAMESPACE, PATIENCE};
use crate::containers::World;

/// Where things are delivered to.
const SHOP: &str = "shop";

#[tokio::test(flavor = "multi_thread")]
async fn the_containers_deliver_are_upgraded_and_go_with_nothing_left() {
    let world = World::start().await.unwrap();
    if let Err(problem) = scenario(&world).await {
        panic!("{problem:#}\n{}", world.logs().await);
    }
}

async fn scenario(world: &World) -> Result<()> {
    world.cluster.restricted_namespace().await;
    world.install(&[]).await?;
    let first = world.pods().await?;
    ensure!(first.len() == 5, "{} Pods", first.len());
    for pod in &first {
        as_it_should_run(world, pod)
            .await
            .with_context(|| pod.name_any())?;
    }

    let revision = world.commit(1).await?;
    world.declare().await?;
    let uids = world.delivered(&revision, 1).await?;

    world.install(&["--set", "logging.level=debug"]).await?;
    let revision = world.commit(2).await?;
    ensure!(
        world.delivered(&revision, 2).await? == uids,
        "something was made anew"
    );
    // The Alert has been there for long: notification-controller knew it before the commit.
    world
        .sink
        .until("/chat", |call| {
            String::from_utf8_lossy(&call.body).contains(&revision)
        })
        .await?;
    for pod in world.pods().await? {
        ensure!(
            first.iter().all(|earlier| earlier.uid() != pod.uid()),
            "{} was not replaced",
            pod.name_any()
        );
    }

    // All of them in one Pod, which goes on with what was delivered.
    world.install(&["--set", "singlePod.enabled=true"]).await?;
    let pods: Api<Pod> = Api::namespaced(world.cluster.client.clone(), NAMESPACE);
    for pod in world.pods().await? {
        if !pod.name_any().starts_with("windlass-controllers-") {
            wait_until_gone(&pods, &pod.name_any(), PATIENCE).await?;
        }
    }
    let together = world.pods().await?;
    ensure!(together.len() == 1, "{} Pods", together.len());
    let revision = world.commit(3).await?;
    ensure!(
        world.delivered(&revision, 3).await? == uids,
        "something was made anew"
    );
    for pod in &together {
        runs(world, pod).await.with_context(|| pod.name_any())?;
    }
    world
        .sink
        .until("/chat", |call| {
            String::from_utf8_lossy(&call.body).contains(&revision)
        })
        .await?;
    let said = world.cluster.windlass(&["check"], 0).await?;
    for component in ["source-controller", "image-reflector-controller"] {
        ensure!(said.contains(component), "{said}");
    }
    gone(world).await
}

/// As the user of the Pod, without a right to write to the image, ready from its own answer and never restarted.
async fn runs(world: &World, pod: &Pod) -> Result<()> {
    let status = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    let status = status
        .and_then(|statuses| statuses.first())
        .context("no status")?;
    ensure!(status.ready && status.restart_count == 0, "{status:?}");
    let metrics = world.node.get(pod, 8080, "/metrics").await?;
    ensure!(metrics.contains("windlass_build_info"), "{metrics}");
    Ok(())
}

/// As above, and without an error.
async fn as_it_should_run(world: &World, pod: &Pod) -> Result<()> {
    runs(world, pod).await?;
    let log = world.node.log(pod);
    for line in log.lines().filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).with_context(|| format!("it is no log line: {line}"))?;
        ensure!(line["level"] != "error", "{line}");
    }
    Ok(())
}

/// Removes what was delivered, then us; what is left is what the cluster makes for each namespace.
async fn gone(world: &World) -> Result<()> {
    let client = &world.cluster.client;
    for (api_version, kind, name) in [
        ("helm.toolkit.fluxcd.io/v2", "HelmRelease", "web"),
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "plain"),
        ("source.toolkit.fluxcd.io/v1", "GitRepository", "shop"),
    ] {
        let api = objects::api(client, api_version, kind, SHOP);
        api.delete(name, &DeleteParams::default()).await?;
        wait_until_gone(&api, name, PATIENCE).await?;
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), SHOP);
    wait_until_gone(&maps, "web", PATIENCE).await?;
    wait_until_gone(&maps, "plain", PATIENCE).await?;

    world
        .cluster
        .helm(&["uninstall", "windlass", "--wait", "--timeout", "2m"])
        .await?;
    let pods: Api<Pod> = Api::namespaced(client.clone(), NAMESPACE);
    for pod in world.pods().await? {
        wait_until_gone(&pods, &pod.name_any(), Duration::from_secs(90)).await?;
    }
    // What the controllers made for themselves, and is in no chart.
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let left: Vec<_> = secrets
        .list(&ListParams::default())
        .await?
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    ensure!(
        left == ["notification-controller-state", "windlass-artifact-ca"],
        "{left:?}"
    );
    let wide = world
        .cluster
        .control_plane_wide("app.kubernetes.io/name=windlass")
        .await;
    ensure!(wide.is_empty(), "{wide:?}");
    Ok(())
}

impl World {
    async fn commit(&self, replicas: u32) -> Result<String> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": SHOP},
            "data": {"replicas": replicas.to_string()},
        });
        let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {replicas: {{ .Values.replicas | quote }}}\n";
        let commit = self.repository.commit(
            "main",
            "a change",
            &[
                Change::write("deploy/map.yaml", map.to_string()),
                Change::write(
                    "chart/Chart.yaml",
                    format!("apiVersion: v2\nname: web\nversion: 1.0.{replicas}\n"),
                ),
                Change::write("chart/values.yaml", format!("replicas: {replicas}\n")),
                Change::write("chart/templates/map.yaml", template),
            ],
        )?;
        Ok(format!("main@sha1:{commit}"))
    }

    /// Everything that delivers, in the namespace of the shop.
    async fn declare(&self) -> Result<()> {
        let client = &self.cluster.client;
        objects::apply(
            client,
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SHOP}}),
        )
        .await?;
        let address = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "chat", "namespace": SHOP},
            "stringData": {"address": self.sink.url("/chat")}});
        for object in [
            address,
            json!({
                "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Provider",
                "metadata": {"name": "chat", "namespace": SHOP},
                "spec": {"type": "generic", "secretRef": {"name": "chat"}},
            }),
            json!({
                "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
                "metadata": {"name": "chat", "namespace": SHOP},
                "spec": {"providerRef": {"name": "chat"}, "eventSources": [{"kind": "Kustomization", "name": "*"}]},
            }),
            objects::git_repository(SHOP, "shop", self.repository.url(), "main"),
            objects::kustomization(SHOP, "plain", ("GitRepository", "shop"), "./deploy"),
            json!({
                "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
                "metadata": {"name": "web", "namespace": SHOP},
                "spec": {"interval": "1m", "chart": {"spec": {
                    "chart": "./chart", "reconcileStrategy": "Revision", "sourceRef": {"kind": "GitRepository", "name": "shop"},
                }}},
            }),
        ] {
            objects::apply(client, &object)
                .await
                .with_context(|| format!("failed to apply {object}"))?;
        }
        Ok(())
    }

    /// Waits until a commit is everywhere; gives the UID of the delivered objects.
    async fn delivered(&self, revision: &str, replicas: u32) -> Result<Vec<String>> {
        let client = &self.cluster.client;
        let sources = objects::api(client, "source.toolkit.fluxcd.io/v1", "GitRepository", SHOP);
        objects::poke(&sources, "shop").await?;
        let kustomizations = objects::api(client, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", SHOP);
        let releases = objects::api(client, "helm.toolkit.fluxcd.io/v2", "HelmRelease", SHOP);
        let applied =
            |object: &_| is_ready(object) && text(object, "/status/lastAppliedRevision") == revision;
        wait_for(&kustomizations, "plain", applied, PATIENCE).await?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), SHOP);
        let wanted = replicas.to_string();
        let mut uids = Vec::new();
        for name in ["plain", "web"] {
            let fits =
                |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("replicas")) == Some(&wanted);
            uids.push(
                wait_for(&maps, name, fits, PATIENCE)
                    .await?
                    .uid()
                    .context("no UID")?,
            );
        }
        wait_for(&releases, "web", is_ready, PATIENCE).await?;
        Ok(uids)
    }
}
