//! What `windlass new repo` writes, on an API server that is bootstrapped from it with the values that its README names: all is delivered, and a
//! team cannot leave its namespace.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use testkit::controller::program;
use testkit::git::Change;
use testkit::objects::{self, condition, is_ready, text};
use testkit::wait_for;

use crate::bootstrap_git::Scene;
use crate::cluster::{NAMESPACE, PATIENCE};

const LOCKED: [&str; 2] = [
    "--default-service-account=deployer",
    "--no-cross-namespace-refs=true",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_monorepo_is_delivered_and_its_teams_stay_in_their_namespaces() {
    let scene = Scene::empty().await.unwrap();
    monorepo(&scene).await.unwrap();
}

/// The files below a folder, as changes of a repository.
fn files(folder: &Path) -> Result<Vec<Change>> {
    let (mut changes, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder)?.display().to_string();
            changes.push(Change::write(&name, fs::read(&path)?));
        }
    }
    Ok(changes)
}

/// What kube-controller-manager collects from other roles; none runs here.
fn admin() -> Value {
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "admin"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]})
}

async fn monorepo(scene: &Scene) -> Result<()> {
    objects::apply(&scene.client, &admin()).await?;
    let folder = tempfile::tempdir()?;
    let mut command = Command::new(program("windlass")?);
    command.args(["new", "repo", "--tenants=a,b"]).arg(folder.path());
    let output = command.output()?;
    ensure!(output.status.success(), "{output:?}");
    scene.repository.commit("main", "start", &files(folder.path())?)?;
    let words = [
        "--path=clusters/staging",
        "--set=tenancy.noCrossNamespaceRefs=true",
        "--set=tenancy.defaultServiceAccount=deployer",
    ];
    let (_, _controllers) = tokio::try_join!(scene.bootstrap(&words, 0), scene.controllers(&LOCKED))?;
    let own = scene.kustomizations().get(NAMESPACE).await?;
    ensure!(
        text(&own, "/spec/serviceAccountName") == "kustomize-controller",
        "{own:?}"
    );
    for name in ["infrastructure", "apps", "tenants", "tenant-a", "tenant-b"] {
        let ready = wait_for(&scene.kustomizations(), name, is_ready, PATIENCE).await;
        ready.with_context(|| name.to_owned())?;
    }
    let of_team = |team: &str| Api::<ConfigMap>::namespaced(scene.client.clone(), team);
    let about = of_team("a").get("about").await?;
    ensure!(about.data.unwrap_or_default()["team"] == "a");
    ensure!(of_team("b").get("about").await?.labels()["kustomize.toolkit.fluxcd.io/namespace"] == NAMESPACE);

    // What is the cluster's is not the team's.
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: of-team-a}\n\
                rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}]\n";
    let list = "resources: [about.yaml, role.yaml]\n";
    let attack = [
        Change::write("teams/a/base/role.yaml", role.as_bytes()),
        Change::write("teams/a/base/kustomization.yaml", list.as_bytes()),
    ];
    scene.repository.commit("main", "attack", &attack)?;
    objects::poke(&scene.sources(), NAMESPACE).await?;
    let is_denied = |object: &_| {
        condition(object, "Ready").is_some_and(|(status, _, message)| {
            status == "False"
                && message.contains("system:serviceaccount:flux-system:a")
                && message.contains("forbidden")
        })
    };
    wait_for(&scene.kustomizations(), "tenant-a", is_denied, PATIENCE).await?;

    // Nor is the platform's repository, for Kustomizations that a team makes itself, nor the account of the platform.
    let spec = json!({"prune": true, "serviceAccountName": "kustomize-controller",
        "sourceRef": {"kind": "GitRepository", "name": NAMESPACE, "namespace": NAMESPACE}});
    let source = ("GitRepository", NAMESPACE);
    let theirs = objects::with_spec(
        objects::kustomization("a", "theirs", source, "./teams/b/staging"),
        spec,
    );
    objects::apply(&scene.client, &theirs).await?;
    let of_a = objects::api(
        &scene.client,
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        "a",
    );
    let is_refused =
        |object: &_| condition(object, "Ready").is_some_and(|(_, reason, _)| reason == "AccessDenied");
    wait_for(&of_a, "theirs", is_refused, PATIENCE).await.map(drop)
}
