//! `windlass bootstrap`: an empty cluster and an empty Gitea, then a cluster that delivers itself; and the same cluster again after its
//! API server has lost everything. Containers truly run.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::DynamicObject;
use kube::{Api, ResourceExt as _};
use reqwest::Method;
use serde_json::Value;
use tempfile::NamedTempFile;
use testkit::controller::program;
use testkit::gitea::User;
use testkit::objects::{self, condition, is_ready, text};
use testkit::{Gitea, wait_for, wait_until_gone};

use crate::cluster::{NAMESPACE, PATIENCE};
use crate::containers::World;
use crate::images::TAG;
use crate::load;

const REPOSITORY: &str = "platform/fleet";
const PATH: &str = "clusters/production";

/// A Gitea, a person with a token there, and a cluster.
struct Scene {
    world: World,
    gitea: Arc<Gitea>,
    user: User,
    values: NamedTempFile,
}

impl Scene {
    async fn start(gitea: Arc<Gitea>, user: User, registry: Arc<testkit::Registry>) -> Result<Self> {
        let http = gitea.url().trim_start_matches("http://").parse()?;
        let ssh = gitea.ssh_address().context("no server of ssh")?.parse()?;
        let world = World::start_beside(registry, &[http, ssh]).await?;
        let values = tempfile::Builder::new().suffix(".yaml").tempfile()?;
        std::fs::write(values.path(), world.values().to_string())?;
        Ok(Self {
            world,
            gitea,
            user,
            values,
        })
    }

    /// Runs `windlass bootstrap gitea`; gives what it said on both of its streams before it ended with this exit code.
    async fn bootstrap(&self, words: &[&str], code: i32) -> Result<String> {
        let mut command = Command::new(program("windlass")?);
        command
            .args([
                "bootstrap",
                "gitea",
                "--personal",
                "--owner=platform",
                "--repository=fleet",
            ])
            .args(["--allow-insecure-http", "--timeout=10m", "--namespace", NAMESPACE])
            .arg(format!("--hostname={}", self.gitea.url()))
            .arg("--kubeconfig")
            .arg(self.world.cluster.control_plane.kubeconfig_path())
            .args(words)
            .env("GITEA_TOKEN", &self.user.token)
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        println!("$ windlass bootstrap gitea {}\n{said}", words.join(" "));
        ensure!(!said.contains(&self.user.token), "the token is in the output");
        ensure!(
            output.status.code() == Some(code),
            "{words:?} ended with {:?}:\n{said}",
            output.status
        );
        Ok(said)
    }

    async fn first(&self, path: &str) -> Result<String> {
        let values = self.values.path().display().to_string();
        self.bootstrap(&["--path", path, "--values", &values], 0).await
    }

    /// What nothing delivers, as `windlass orphans` lists it.
    async fn orphans(&self) -> Result<String> {
        let mut command = Command::new(program("windlass")?);
        command
            .args(["orphans", "-o", "name", "--kubeconfig"])
            .arg(self.world.cluster.control_plane.kubeconfig_path());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let problem = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "orphans ended with {}: {problem}",
            output.status
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.world.cluster.client.clone(), NAMESPACE)
    }

    fn maps(&self, namespace: &str) -> Api<ConfigMap> {
        Api::namespaced(self.world.cluster.client.clone(), namespace)
    }

    async fn key(&self) -> Result<String> {
        let secrets: Api<Secret> = Api::namespaced(self.world.cluster.client.clone(), NAMESPACE);
        let data = secrets.get(NAMESPACE).await?.data.unwrap_or_default();
        let key = data.get("identity.pub").context("no public key")?;
        Ok(String::from_utf8(key.0.clone())?.trim().to_owned())
    }

    /// The deploy keys, as the forge has them.
    async fn deploy_keys(&self) -> Result<Vec<Value>> {
        let keys = self
            .gitea
            .call(Method::GET, &format!("repos/{REPOSITORY}/keys"), None)
            .await?;
        Ok(keys.as_array().cloned().unwrap_or_default())
    }

    async fn commits(&self) -> Result<usize> {
        let commits = self
            .gitea
            .call(Method::GET, &format!("repos/{REPOSITORY}/commits"), None)
            .await?;
        Ok(commits.as_array().map_or(0, Vec::len))
    }

    /// The objects that the Kustomization lists, as they are, without what only the API server knows.
    async fn delivered(&self) -> Result<Vec<(String, Value)>> {
        let client = &self.world.cluster.client;
        let kustomizations = objects::api(
            client,
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            NAMESPACE,
        );
        let own = kustomizations.get(NAMESPACE).await?;
        let entries = objects::field(&own, "/status/inventory/entries").and_then(Value::as_array);
        let mut all = Vec::new();
        for entry in entries.context("no inventory")? {
            let (id, version) = (entry["id"].as_str().unwrap_or_default(), &entry["v"]);
            let parts: Vec<&str> = id.rsplitn(3, '_').collect();
            let [kind, group, place] = parts[..] else { continue };
            let (namespace, name) = place.split_once('_').unwrap_or(("", place));
            let version = version.as_str().unwrap_or_default();
            let api_version = match group {
                "" => version.to_owned(),
                group => format!("{group}/{version}"),
            };
            let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
            let object = serde_json::json!({"apiVersion": api_version, "kind": kind,
                "metadata": {"name": name.replace("__", ":"), "namespace": namespace}});
            let (api, name) = objects::api_of(client, &object)?;
            let found = api.get(&name).await.with_context(|| id.to_owned())?;
            all.push((id.to_owned(), declared(serde_json::to_value(found)?)));
        }
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(all)
    }
}

/// What someone has declared of an object.
fn declared(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| matches!(key.as_str(), "name" | "namespace" | "labels" | "annotations"));
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.retain(|key, _| {
                !key.starts_with("deployment.kubernetes.io/") && !key.starts_with("reconcile.")
            });
        }
    }
    if object["kind"] == "Service"
        && let Some(spec) = object["spec"].as_object_mut()
    {
        spec.retain(|key, _| !key.starts_with("clusterIP"));
    }
    object
}

const APP: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app\n  namespace: default\ndata:\n  version: '1'\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_cluster_delivers_itself_and_comes_back_when_everything_is_lost() {
    let (gitea, registry) = tokio::try_join!(Gitea::start_with_ssh(), World::images()).unwrap();
    let (gitea, registry) = (Arc::new(gitea), Arc::new(registry));
    let user = gitea.add_user("platform").await.unwrap();
    let scene = Scene::start(Arc::clone(&gitea), user.clone(), Arc::clone(&registry))
        .await
        .unwrap();
    if let Err(problem) = lives(&scene).await {
        panic!("{problem:#}\n{}", scene.world.logs().await);
    }
    let before = scene.delivered().await.unwrap();
    drop(scene);
    // Another API server with nothing in it, and the same repository.
    let scene = Scene::start(gitea, user, registry).await.unwrap();
    if let Err(problem) = comes_back(&scene, &before).await {
        panic!("{problem:#}\n{}", scene.world.logs().await);
    }
}

async fn lives(scene: &Scene) -> Result<()> {
    let dry = scene.values.path().display().to_string();
    let said = scene
        .bootstrap(&["--path", PATH, "--values", &dry, "--dry-run"], 0)
        .await?;
    for line in [
        "create repository ",
        "create file clusters/production/windlass-system/components.yaml\n",
        "create file clusters/production/windlass-system/sync.yaml\n",
        "Deployment/flux-system/source-controller\n",
    ] {
        ensure!(said.contains(line), "{line}: {said}");
    }
    let repository = format!("repos/{REPOSITORY}");
    ensure!(
        scene.gitea.call(Method::GET, &repository, None).await.is_err(),
        "a dry run has made it"
    );

    let start = Instant::now();
    let said = scene.first(&format!("./{PATH}/")).await?;
    println!(
        "from nothing to delivered: {:.1} s",
        start.elapsed().as_secs_f64()
    );
    ensure!(
        said.contains("The cluster delivers itself from ./clusters/production"),
        "{said}"
    );
    let keys = scene.deploy_keys().await?;
    ensure!(keys.len() == 1 && keys[0]["read_only"] == true, "{keys:?}");
    let found = scene.gitea.call(Method::GET, &repository, None).await?;
    ensure!(found["private"] == true, "{found}");

    let orphans = scene.orphans().await?;
    ensure!(orphans == "Secret/flux-system/flux-system\n", "{orphans}");

    // What people push is delivered.
    let file = format!("{PATH}/app.yaml");
    scene
        .gitea
        .commit(&scene.user, REPOSITORY, "main", &[(&file, APP)])
        .await?;
    let client = &scene.world.cluster.client;
    let sources = objects::api(client, "source.toolkit.fluxcd.io/v1", "GitRepository", NAMESPACE);
    objects::poke(&sources, NAMESPACE).await?;
    let is_one = |map: &ConfigMap| map.data.as_ref().is_some_and(|data| data["version"] == "1");
    wait_for(&scene.maps("default"), "app", is_one, PATIENCE).await?;

    // Again: nothing to do.
    let commits = scene.commits().await?;
    let said = scene.bootstrap(&["--path", PATH], 0).await?;
    ensure!(said.contains("which had all files already"), "{said}");
    ensure!(scene.commits().await? == commits, "a commit without a change");
    let said = scene.bootstrap(&["--path", PATH, "--dry-run"], 0).await?;
    ensure!(said.contains("no file changes\n"), "{said}");
    ensure!(!said.contains("change   ") && !said.contains("create "), "{said}");

    // Other values: the cluster upgrades itself by the commit, and all that comes meanwhile is delivered.
    let upgrade = scene.bootstrap(&["--path", PATH, "--log-level=debug"], 0);
    let (said, seen) = load::during(client, &scene.world.repository, upgrade).await?;
    println!("while the controllers were replaced: {}", seen.line());
    ensure!(seen.complaints.is_empty(), "{:#?}", seen.complaints);
    ensure!(said.contains("pushing commit "), "{said}");
    let is_debug = |found: &Deployment| {
        serde_json::to_string(&found.spec).is_ok_and(|spec| spec.contains("--log-level=debug"))
    };
    wait_for(&scene.deployments(), "source-controller", is_debug, PATIENCE).await?;
    let logs = scene.world.logs().await;
    ensure!(
        logs.contains("has all that the leader has"),
        "the new source-controller has copied nothing:\n{logs}"
    );

    returns_from_a_version_that_does_not_start(scene).await?;

    // A new key, and the old one is gone.
    let key = scene.key().await?;
    scene.bootstrap(&["--path", PATH, "--rotate-key"], 0).await?;
    let (new, keys) = (scene.key().await?, scene.deploy_keys().await?);
    ensure!(new != key, "the key is as it was");
    ensure!(
        keys.len() == 1 && keys[0]["key"].as_str().is_some_and(|key| key.starts_with(&new)),
        "{keys:?}"
    );

    // Another path: refused, since it would delete; then moved, and nothing is made anew.
    let said = scene.bootstrap(&["--path=clusters/prod"], 3).await?;
    ensure!(
        said.contains("the cluster is delivered from ./clusters/production"),
        "{said}"
    );
    let uid = scene.maps("default").get("app").await?.uid();
    scene.bootstrap(&["--path=clusters/prod", "--move"], 0).await?;
    ensure!(
        scene.maps("default").get("app").await?.uid() == uid,
        "the app was made anew"
    );
    let kustomizations = objects::api(
        client,
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        NAMESPACE,
    );
    let own = kustomizations.get(NAMESPACE).await?;
    ensure!(
        is_ready(&own) && text(&own, "/spec/path") == "./clusters/prod",
        "{own:?}"
    );
    ensure!(
        scene.gitea.file(REPOSITORY, "main", &file).await.is_err(),
        "the old file is there"
    );

    // A pull request instead of a push.
    let said = scene
        .bootstrap(&["--path=clusters/prod", "--log-level=info", "--pull-request"], 0)
        .await?;
    ensure!(said.contains("pull request 1: "), "{said}");
    let merge = serde_json::json!({"Do": "merge"});
    let pulls = format!("repos/{REPOSITORY}/pulls/1/merge");
    scene
        .gitea
        .call_as(&scene.user, Method::POST, &pulls, Some(merge))
        .await?;
    let said = scene.bootstrap(&["--path=clusters/prod"], 0).await?;
    ensure!(said.contains("which had all files already"), "{said}");
    let is_info = |found: &Deployment| !is_debug(found);
    wait_for(&scene.deployments(), "source-controller", is_info, PATIENCE).await?;

    // What leaves Git leaves the cluster.
    let gone = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: other\n  namespace: default\n";
    scene
        .gitea
        .commit(
            &scene.user,
            REPOSITORY,
            "main",
            &[("clusters/prod/app.yaml", &format!("{APP}---\n{gone}"))],
        )
        .await?;
    objects::poke(&sources, NAMESPACE).await?;
    wait_for(&scene.maps("default"), "other", |_: &ConfigMap| true, PATIENCE).await?;
    scene
        .gitea
        .commit(
            &scene.user,
            REPOSITORY,
            "main",
            &[("clusters/prod/app.yaml", APP)],
        )
        .await?;
    objects::poke(&sources, NAMESPACE).await?;
    wait_until_gone(&scene.maps("default"), "other", PATIENCE).await?;
    let is_forgotten = |own: &_| {
        let entries = objects::field(own, "/status/inventory/entries");
        is_ready(own) && entries.is_some_and(|entries| !entries.to_string().contains("default_other_"))
    };
    wait_for(&kustomizations, NAMESPACE, is_forgotten, PATIENCE)
        .await
        .map(drop)
}

/// The old controllers go on, and the cluster returns to the revision before; whatever else is pushed is delivered.
async fn returns_from_a_version_that_does_not_start(scene: &Scene) -> Result<()> {
    let client = &scene.world.cluster.client;
    scene.bootstrap(&["--path", PATH, "--rollback"], 0).await?;
    let [components, sync] = ["components", "sync"].map(|name| format!("{PATH}/windlass-system/{name}.yaml"));
    let written = scene.gitea.file(REPOSITORY, "main", &sync).await?;
    ensure!(
        written.contains("timeout: 5m0s") && written.contains("name: kustomize-controller"),
        "{written}"
    );
    let impatient = written.replace("timeout: 5m0s", "timeout: 20s");
    let good = scene.gitea.file(REPOSITORY, "main", &components).await?;
    let commit =
        async |files: &[(&str, &str)]| scene.gitea.commit(&scene.user, REPOSITORY, "main", files).await;
    let sources = objects::api(client, "source.toolkit.fluxcd.io/v1", "GitRepository", NAMESPACE);
    let kustomizations = objects::api(
        client,
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        NAMESPACE,
    );
    commit(&[(&sync, &impatient)]).await?;
    objects::poke(&sources, NAMESPACE).await?;
    let is_kept = |own: &_| is_ready(own) && text(own, "/spec/timeout") == "20s";
    wait_for(&kustomizations, NAMESPACE, is_kept, PATIENCE).await?;

    let bad = good.replace(&format!(":{TAG}"), ":missing");
    ensure!(bad != good, "no image has this tag");
    commit(&[(&components, &bad)]).await?;
    objects::poke(&sources, NAMESPACE).await?;
    let has_bad =
        |found: &Deployment| serde_json::to_string(&found.spec).is_ok_and(|spec| spec.contains(":missing"));
    for name in ["source-controller", "kustomize-controller"] {
        wait_for(&scene.deployments(), name, has_bad, PATIENCE).await?;
    }
    let seen = load::deliver_one(client, &scene.world.repository).await?;
    println!(
        "with a version that does not start: delivered in {:.1} s",
        seen.as_secs_f64()
    );
    let is_held = |own: &DynamicObject| {
        condition(own, "Held").is_some_and(|(status, reason, _)| (status, reason) == ("True", "RolledBack"))
    };
    let held = wait_for(&kustomizations, NAMESPACE, is_held, PATIENCE).await?;
    let message = condition(&held, "Held")
        .map(|(.., message)| message.to_owned())
        .unwrap_or_default();
    println!("{message}");
    ensure!(message.contains("Deployment/flux-system/"), "{message}");
    let is_well = |found: &Deployment| {
        let status = found.status.clone().unwrap_or_default();
        !has_bad(found)
            && status.updated_replicas == Some(1)
            && status.replicas == Some(1)
            && status.ready_replicas == Some(1)
    };
    for name in [
        "source-controller",
        "kustomize-controller",
        "helm-controller",
        "notification-controller",
    ] {
        wait_for(&scene.deployments(), name, is_well, PATIENCE).await?;
    }

    // The commit that takes it back ends the hold.
    commit(&[(&components, &good)]).await?;
    objects::poke(&sources, NAMESPACE).await?;
    let is_over = |own: &DynamicObject| is_ready(own) && condition(own, "Held").is_none();
    wait_for(&kustomizations, NAMESPACE, is_over, PATIENCE).await?;
    scene
        .bootstrap(&["--path", PATH, "--rollback=false"], 0)
        .await
        .map(drop)
}

async fn comes_back(scene: &Scene, before: &[(String, Value)]) -> Result<()> {
    let start = Instant::now();
    let said = scene.bootstrap(&["--path=clusters/prod"], 0).await?;
    println!(
        "from a lost cluster to delivered: {:.1} s",
        start.elapsed().as_secs_f64()
    );
    ensure!(said.contains("which had all files already"), "{said}");
    ensure!(
        said.contains("is of another cluster, or of one that is gone"),
        "{said}"
    );
    let after = scene.delivered().await?;
    let names = |all: &[(String, Value)]| all.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
    ensure!(
        names(before) == names(&after),
        "{:?}\n{:?}",
        names(before),
        names(&after)
    );
    for ((id, before), (_, after)) in before.iter().zip(&after) {
        ensure!(before == after, "{id}:\n{before}\n{after}");
    }
    ensure!(before.len() > 40, "{} objects", before.len());
    Ok(())
}
