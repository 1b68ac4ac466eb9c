//! docs/getting-started.md.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::Api;
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, is_ready};
use testkit::tools::repository_root;
use testkit::{ControlPlane, Controller, GitServer, HelmRepository, Options, wait_for, wait_until_gone};

use crate::page::{Piece, Treatment, read};
use crate::shell::Shell;

const PATIENCE: Duration = Duration::from_secs(240);
const NAMESPACE: &str = "flux-system";

/// Treatment of commands that do not simply run to their end.
const TREATMENTS: &[(&str, Treatment)] = &[
    (
        "make images IMAGE_REPOSITORY=registry.example.com/windlass TAG=first",
        Treatment::Skipped("release builds; the tests of xtask make images of small programs and push them"),
    ),
    (
        "kind create cluster",
        Treatment::Skipped("the control plane is there; kind needs a container engine"),
    ),
    (
        "windlass check",
        Treatment::Ends(3, "has no Pod that is ready behind it"), // kwok's Pods have no addresses
    ),
    (
        "helm install windlass charts/windlass --namespace flux-system --create-namespace --wait \
         --set image.registry=registry.example.com --set image.repository=windlass --set image.tag=first",
        Treatment::Skipped("the other way to the same release, which is there; tests/chart installs by it"),
    ),
    (
        "windlass bootstrap",
        Treatment::Skipped("the other way to install; tests/chart/bootstrap.rs"),
    ),
    (
        "helm uninstall windlass --namespace flux-system",
        Treatment::Skipped("the other way; the release is gone by then, and tests/chart uninstalls by it"),
    ),
    (
        "kubectl --namespace flux-system get kustomizations --watch",
        Treatment::Prints("Applied revision: master@sha1:"),
    ),
];

/// podinfo, as far as the page is about it.
fn repository(git: &GitServer) -> Result<Repository> {
    let repository = git.create_repository("podinfo")?;
    let files = [
        (
            "kustomize/kustomization.yaml",
            "resources: [deployment.yaml, service.yaml]\n",
        ),
        ("kustomize/deployment.yaml", DEPLOYMENT),
        (
            "kustomize/service.yaml",
            "apiVersion: v1\nkind: Service\nmetadata: {name: podinfo}\n\
             spec: {selector: {app: podinfo}, ports: [{port: 9898}]}\n",
        ),
    ];
    let changes = files.map(|(path, text)| Change::write(path, text));
    repository.commit("master", "podinfo", &changes)?;
    Ok(repository)
}

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: podinfo}
spec:
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata: {labels: {app: podinfo}}
    spec: {containers: [{name: podinfo, image: example.com/podinfo}]}
";

/// A repository of Helm with a chart podinfo, made by the real helm.
async fn charts(shell: &Shell) -> Result<HelmRepository> {
    let folder = testkit::scratch::directory("podinfo")?;
    let chart = folder.path().join("podinfo");
    fs::create_dir_all(chart.join("templates"))?;
    fs::write(
        chart.join("Chart.yaml"),
        "apiVersion: v2\nname: podinfo\nversion: 6.7.0\n",
    )?;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n\
                    data: {replicas: \"{{ .Values.replicaCount }}\"}\n";
    fs::write(chart.join("templates/map.yaml"), template)?;
    let path = folder.path().display();
    shell
        .run(&format!(
            "helm package {path}/podinfo --destination {path} && helm repo index {path}"
        ))
        .await?;
    let repository = HelmRepository::start().await?;
    for file in ["index.yaml", "podinfo-6.7.0.tgz"] {
        repository.set_file(file, Some(fs::read(folder.path().join(file))?));
    }
    Ok(repository)
}

/// The controllers: kwok says that the Pods of the chart run, and runs nothing.
async fn start(control_plane: &ControlPlane) -> Result<[Controller; 4]> {
    let kubeconfig = control_plane.kubeconfig_path();
    let options = || ControllerOptions {
        namespace: NAMESPACE.to_owned(),
        ..ControllerOptions::default()
    };
    let source = Controller::start_source(kubeconfig, options()).await?;
    let apply = Controller::start_apply(kubeconfig, &source, options()).await?;
    let helm = Controller::start_helm(kubeconfig, &source, options()).await?;
    let notification = Controller::start_notification(kubeconfig, options()).await?;
    Ok([source, apply, helm, notification])
}

#[tokio::test]
async fn who_gets_started_by_the_page_gets_there() -> Result<()> {
    let control_plane = ControlPlane::start(Options::default()).await?;
    let client = control_plane.client();
    let git = GitServer::start().await?;
    let repository = repository(&git)?;
    let mut shell = Shell::new(control_plane.kubeconfig_path()).await?;
    let charts = charts(&shell).await?;
    symlink(repository_root().join("charts"), shell.folder.join("charts"))?;
    let placeholders = [
        ("https://github.com/stefanprodan/podinfo", repository.url()),
        ("https://stefanprodan.github.io/podinfo", charts.url()),
    ];
    let programs = ["kubectl", "helm", "flux", "windlass"];
    let steps = read("docs/getting-started.md", &programs, &placeholders, TREATMENTS)?;
    ensure!(steps.len() > 15, "only {} steps were found", steps.len());
    let mut controllers = None;
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    for step in &steps {
        match &step.piece {
            // It is told to be saved, and applied by a command.
            Piece::Manifests(text) if text.contains("kind: Kustomization") => {
                fs::write(shell.folder.join("podinfo.yaml"), text)?;
            }
            _ => shell.take(step).await?,
        }
        let Piece::Command(text) = &step.piece else {
            let releases = objects::api(&client, "helm.toolkit.fluxcd.io/v2", "HelmRelease", NAMESPACE);
            if matches!(&step.piece, Piece::Manifests(text) if text.contains("kind: HelmRelease")) {
                wait_for(&releases, "podinfo-chart", is_ready, PATIENCE).await?;
            }
            continue;
        };
        if text.starts_with("windlass install") {
            controllers = Some(start(&control_plane).await?);
        } else if text.contains("delete service podinfo") {
            let is_back = |_: &Service| true;
            wait_for(&services, "podinfo", is_back, PATIENCE)
                .await
                .context("it is not back")?;
        } else if text.starts_with("flux suspend") {
            // "For a while": what follows is about one that is not suspended.
            shell.run(&text.replacen("suspend", "resume", 1)).await?;
        } else if text.starts_with("flux tree") {
            let seen = shell.run(text).await?;
            ensure!(seen.contains("Deployment/default/podinfo"), "{seen}");
        }
    }
    let deployments: Api<Deployment> = Api::namespaced(client, "default");
    wait_until_gone(&deployments, "podinfo", PATIENCE).await?;
    drop(controllers);
    Ok(())
}
