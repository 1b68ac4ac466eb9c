//! All controllers in one process.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use testkit::controller::ControllerOptions;
use testkit::git::Change;
use testkit::objects::{self, is_ready};
use testkit::{ControlPlane, Controller, GitServer, MessageSink, Options, install_crds, wait_for};

use crate::alerts::NOTIFICATION;
use crate::helm::HELM;
use crate::service::eventually;
use crate::world::PATIENCE;

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
const NAMESPACE: &str = "apps";

#[tokio::test]
async fn four_controllers_deliver_from_one_process() -> Result<()> {
    let control_plane = ControlPlane::start(Options::api_server_only()).await?;
    let client = control_plane.client();
    install_crds(&client).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    objects::apply(&client, &namespace).await?;
    let (git, sink) = (GitServer::start().await?, MessageSink::start().await?);
    let repository = git.create_repository("app")?;
    let map = |name: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\n")
    };
    let files = [
        Change::write("deploy/map.yaml", map("plain")),
        Change::write("web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        Change::write("web/templates/map.yaml", map("released")),
    ];
    repository.commit("main", "first", &files)?;

    let metadata = |name: &str| json!({"name": name, "namespace": NAMESPACE});
    let provider = json!({"apiVersion": NOTIFICATION, "kind": "Provider", "metadata": metadata("chat"),
        "spec": {"type": "generic", "address": sink.url("chat")}});
    let sources = ["Kustomization", "HelmRelease"].map(|kind| json!({"kind": kind, "name": "*"}));
    let alert = json!({"apiVersion": NOTIFICATION, "kind": "Alert", "metadata": metadata("chat"),
        "spec": {"providerRef": {"name": "chat"}, "eventSources": sources}});
    for object in [&provider, &alert] {
        objects::apply(&client, object).await?;
    }
    let mut all =
        Controller::start_all(control_plane.kubeconfig_path(), ControllerOptions::default()).await?;
    let release = json!({"apiVersion": HELM, "kind": "HelmRelease", "metadata": metadata("web"), "spec": {
        "interval": "1h", "chart": {"spec": {"chart": "web", "sourceRef": {"kind": "GitRepository", "name": "app"}}}}});
    let source = objects::git_repository(NAMESPACE, "app", repository.url(), "main");
    let kustomization = objects::kustomization(NAMESPACE, "app", ("GitRepository", "app"), "./deploy");
    for object in [&source, &kustomization, &release] {
        objects::apply(&client, object).await?;
    }
    let kustomizations = objects::api(&client, KUSTOMIZE, "Kustomization", NAMESPACE);
    let releases = objects::api(&client, HELM, "HelmRelease", NAMESPACE);
    wait_for(&kustomizations, "app", is_ready, PATIENCE).await?;
    wait_for(&releases, "web", is_ready, PATIENCE).await?;
    let maps = objects::api(&client, "v1", "ConfigMap", NAMESPACE);
    for name in ["plain", "released"] {
        wait_for(&maps, name, |_| true, PATIENCE).await?;
    }
    eventually(async || {
        let kinds: BTreeSet<String> = sink
            .said_to("chat")
            .iter()
            .map(|call| call.json["involvedObject"]["kind"].to_string())
            .collect();
        ensure!(kinds.len() == 2, "{kinds:?}");
        Ok(())
    })
    .await?;

    // One page of metrics, in which each name is described once.
    let text = all.metrics().await?;
    let described: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE ")).collect();
    let names: BTreeSet<&&str> = described.iter().collect();
    ensure!(
        names.len() == described.len() && text.matches("# EOF\n").count() == 1,
        "{text}"
    );
    for controller in ["gitrepository", "kustomization", "helmrelease", "receiver"] {
        let series = format!("controller_runtime_reconcile_total{{controller=\"{controller}\"");
        ensure!(text.contains(&series), "{series}\n{text}");
    }
    ensure!(
        text.matches("\nprocess_resident_memory_bytes ").count() == 1,
        "{text}"
    );

    // Killed, it goes on where it was; told to end, all of them do.
    all.kill();
    repository.commit(
        "main",
        "second",
        &[Change::write("deploy/more.yaml", map("more"))],
    )?;
    all.restart().await?;
    let asked = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    let sources = objects::api(&client, "source.toolkit.fluxcd.io/v1", "GitRepository", NAMESPACE);
    sources
        .patch("app", &Default::default(), &kube::api::Patch::Merge(&asked))
        .await?;
    wait_for(&maps, "more", |_| true, PATIENCE).await?;
    let status = all.terminate(Duration::from_secs(20))?;
    ensure!(status.success(), "{status}: {}", all.log_tail(20));
    Ok(())
}

#[tokio::test]
async fn if_one_of_them_cannot_start_none_of_them_runs() -> Result<()> {
    let control_plane = ControlPlane::start(Options::api_server_only()).await?;
    install_crds(&control_plane.client()).await?;
    // The port is taken.
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let flags = vec![format!("--health-addr={}", taken.local_addr()?)];
    let options = ControllerOptions {
        flags,
        ..ControllerOptions::default()
    };
    let error = Controller::start_all(control_plane.kubeconfig_path(), options)
        .await
        .unwrap_err();
    ensure!(format!("{error:#}").contains("failed to listen on"), "{error:#}");
    Ok(())
}
