//! `windlass bootstrap git` with our controllers as processes of their own: an empty API server that comes to deliver itself, and a repository of
//! `flux bootstrap` that is taken over in one commit and given back by its revert. Nothing runs what is in Deployments: the test says that they
//! are ready.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use testkit::controller::{ControllerOptions, program};
use testkit::git::{Change, Repository};
use testkit::objects::{self, is_ready, text};
use testkit::tools::{Package, repository_root};
use testkit::{ControlPlane, Controller, GitServer, Options, wait_for, wait_until_gone};
use tokio_util::task::AbortOnDropHandle;

use crate::cluster::{NAMESPACE, PATIENCE};
use crate::install::{CONTROLLERS, deployment_of_flux};

const COMPONENTS: &str = "clusters/a/flux-system/gotk-components.yaml";
const IMAGES: [&str; 2] = ["image-reflector-controller", "image-automation-controller"];
const PAUSE: Duration = Duration::from_millis(100);

pub struct Scene {
    control_plane: ControlPlane,
    pub client: Client,
    pub repository: Repository,
    _git: GitServer,
    _deployments: AbortOnDropHandle<()>,
}

/// Says of all Deployments that they are ready, as if something ran them.
async fn all_ready(client: Client) {
    loop {
        let all: Api<Deployment> = Api::all(client.clone());
        for found in all
            .list(&ListParams::default())
            .await
            .map(|list| list.items)
            .unwrap_or_default()
        {
            let (generation, status) = (
                found.metadata.generation,
                found.status.clone().unwrap_or_default(),
            );
            if status.observed_generation == generation {
                continue;
            }
            let count = found.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
            let status = json!({"status": {
                "observedGeneration": generation, "replicas": count, "updatedReplicas": count, "readyReplicas": count,
                "availableReplicas": count,
                "conditions": [
                    {"type": "Available", "status": "True", "reason": "Test", "message": ""},
                    {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": ""},
                ],
            }});
            let own: Api<Deployment> =
                Api::namespaced(client.clone(), &found.namespace().unwrap_or_default());
            own.patch_status(&found.name_any(), &PatchParams::default(), &Patch::Merge(status))
                .await
                .ok();
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// What delivers: a source-controller and a kustomize-controller, with more flags for the latter.
async fn controllers(control_plane: &ControlPlane, flags: &[&str]) -> Result<[Controller; 2]> {
    let kubeconfig = control_plane.kubeconfig_path();
    let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
    let options = ControllerOptions {
        flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        ..ControllerOptions::default()
    };
    let apply = Controller::start_apply(kubeconfig, &source, options).await?;
    Ok([source, apply])
}

impl Scene {
    /// An API server and a repository with nothing in them.
    pub async fn empty() -> Result<Self> {
        let control_plane = ControlPlane::start(Options::api_server_only()).await?;
        let client = control_plane.client();
        let git = GitServer::start().await?;
        Ok(Self {
            repository: git.create_repository("fleet")?,
            _git: git,
            _deployments: AbortOnDropHandle::new(tokio::spawn(all_ready(client.clone()))),
            client,
            control_plane,
        })
    }

    /// A cluster and a repository that the real `flux bootstrap` has made, where our controllers run in the place of Flux's.
    async fn of_flux() -> Result<(Self, [Controller; 2])> {
        let scene = Self::empty().await?;
        let (_, controllers) = tokio::try_join!(scene.flux_bootstrap(), scene.controllers(&[]))?;
        let text = documents(&[app()]);
        let change = Change::write("clusters/a/app.yaml", text.as_bytes());
        scene.repository.commit("main", "app", &[change])?;
        objects::poke(&scene.sources(), NAMESPACE).await?;
        wait_for(&scene.maps(), "app", |_: &ConfigMap| true, PATIENCE).await?;
        Ok((scene, controllers))
    }

    /// Runs `flux bootstrap git`. Its manifests have what ours need to know of Flux's: definitions, accounts, Deployments.
    async fn flux_bootstrap(&self) -> Result<String> {
        let folder = testkit::scratch::directory("flux-manifests")?;
        let mut components =
            vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})];
        components.extend(definitions_of_flux()?);
        for name in CONTROLLERS.into_iter().chain(IMAGES).chain(["source-watcher"]) {
            components.push(json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": name, "namespace": NAMESPACE}}));
            components.push(deployment_of_flux(name));
        }
        std::fs::write(folder.path().join("components.yaml"), documents(&components))?;
        std::fs::write(
            folder.path().join("kustomization.yaml"),
            "resources: [components.yaml]\n",
        )?;
        let ensure_flux = || Package::Flux.ensure(&mut |line| println!("{line}"));
        tokio::task::spawn_blocking(ensure_flux).await??;
        let mut command = Command::new(Package::Flux.path()?);
        command
            .args([
                "bootstrap",
                "git",
                "--allow-insecure-http",
                "--token-auth",
                "--password=any",
            ])
            .args(["--path=clusters/a", "--branch=main", "--timeout=10m"])
            .arg(format!(
                "--components-extra={},{},source-watcher",
                IMAGES[0], IMAGES[1]
            ))
            .arg(format!("--url={}", self.repository.url()))
            .arg(format!("--manifests={}", folder.path().display()))
            .arg("--kubeconfig")
            .arg(self.control_plane.kubeconfig_path())
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        println!("$ flux bootstrap git\n{said}");
        ensure!(
            output.status.success(),
            "flux bootstrap ended with {}:\n{said}",
            output.status
        );
        Ok(said)
    }

    /// Starts the controllers when their definitions and accounts are there, as they would in their Pods.
    pub async fn controllers(&self, flags: &[&str]) -> Result<[Controller; 2]> {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        for name in [
            "gitrepositories.source.toolkit.fluxcd.io",
            "kustomizations.kustomize.toolkit.fluxcd.io",
        ] {
            wait_for(&definitions, name, |_: &CustomResourceDefinition| true, PATIENCE).await?;
        }
        let is_there = |_: &Deployment| true;
        wait_for(&self.deployments(), "source-controller", is_there, PATIENCE).await?;
        controllers(&self.control_plane, flags).await
    }

    pub fn kustomizations(&self) -> Api<kube::api::DynamicObject> {
        objects::api(
            &self.client,
            "kustomize.toolkit.fluxcd.io/v1",
            "Kustomization",
            NAMESPACE,
        )
    }

    pub fn sources(&self) -> Api<kube::api::DynamicObject> {
        objects::api(
            &self.client,
            "source.toolkit.fluxcd.io/v1",
            "GitRepository",
            NAMESPACE,
        )
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    async fn definitions(&self) -> Result<usize> {
        let all: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        Ok(all.list(&ListParams::default()).await?.items.len())
    }

    /// Runs `windlass bootstrap git`; gives what it said on both of its streams before it ended with this exit code.
    pub async fn bootstrap(&self, words: &[&str], code: i32) -> Result<String> {
        let mut command = Command::new(program("windlass")?);
        command
            .args(["bootstrap", "git", "--allow-insecure-http", "--timeout=10m"])
            .arg(format!("--url={}", self.repository.url()))
            .arg("--kubeconfig")
            .arg(self.control_plane.kubeconfig_path())
            .args(words)
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        println!("$ windlass bootstrap git {}\n{said}", words.join(" "));
        ensure!(
            output.status.code() == Some(code),
            "{words:?} ended with {:?}:\n{said}",
            output.status
        );
        Ok(said)
    }

    fn deployments(&self) -> Api<Deployment> {
        Api::namespaced(self.client.clone(), NAMESPACE)
    }

    /// Waits until a controller has an image of this folder; returns its UID.
    async fn has_image(&self, name: &str, folder: &str) -> Result<Option<String>> {
        let is_of = |found: &Deployment| {
            let spec = serde_json::to_value(&found.spec).unwrap_or_default();
            let image = spec["template"]["spec"]["containers"][0]["image"]
                .as_str()
                .unwrap_or_default();
            image.starts_with(folder)
        };
        let found = wait_for(&self.deployments(), name, is_of, PATIENCE).await;
        Ok(found.with_context(|| name.to_owned())?.uid())
    }

    async fn app(&self) -> Result<Option<String>> {
        Ok(self.maps().get("app").await?.uid())
    }
}

/// The definitions that Flux's manifest has.
fn definitions_of_flux() -> Result<Vec<Value>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(repository_root().join("charts/windlass/files/crds"))? {
        let path = entry?.path();
        if path.to_string_lossy().contains("fluxcd.io_") {
            let text = std::fs::read_to_string(&path)?;
            let read = manifest::read_objects(&text, "crd").map_err(|error| anyhow::anyhow!("{error}"))?;
            all.extend(read.into_iter().map(manifest::Object::into_value));
        }
    }
    Ok(all)
}

fn documents(objects: &[Value]) -> String {
    let all: Vec<String> = objects.iter().map(Value::to_string).collect();
    all.join("\n---\n")
}

fn app() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": NAMESPACE}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_api_server_comes_to_deliver_itself_from_an_empty_repository() {
    let scene = Scene::empty().await.unwrap();
    from_nothing(&scene).await.unwrap();
}

async fn from_nothing(scene: &Scene) -> Result<()> {
    let said = scene.bootstrap(&["--path=clusters/a", "--dry-run"], 0).await?;
    for line in [
        "create file clusters/a/windlass-system/components.yaml\n",
        "create  Deployment/flux-system/source-controller\n",
        "create  Kustomization/flux-system/flux-system\n",
    ] {
        ensure!(said.contains(line), "{line}: {said}");
    }
    ensure!(scene.repository.resolve("main").is_err(), "a dry run has pushed");

    let first = ["--path=./clusters/a/", "--set=image.tag=first"];
    let (said, _controllers) = tokio::try_join!(scene.bootstrap(&first, 0), scene.controllers(&[]))?;
    ensure!(
        said.contains("The cluster delivers itself from ./clusters/a"),
        "{said}"
    );
    let files = scene.repository.git(&["ls-tree", "-r", "--name-only", "main"])?;
    let expected = [
        "components.yaml",
        "kustomization.yaml",
        "sync.yaml",
        "values.yaml",
    ];
    let expected: Vec<String> = expected
        .iter()
        .map(|name| format!("clusters/a/windlass-system/{name}"))
        .collect();
    ensure!(files.lines().collect::<Vec<_>>() == expected, "{files}");

    // What people push is delivered.
    let text_of_app = documents(&[app()]);
    scene.repository.commit(
        "main",
        "app",
        &[Change::write("clusters/a/app.yaml", text_of_app.as_bytes())],
    )?;
    objects::poke(&scene.sources(), NAMESPACE).await?;
    wait_for(&scene.maps(), "app", |_: &ConfigMap| true, PATIENCE).await?;
    let uid = scene.app().await?;

    let head = scene.repository.resolve("main")?;
    let said = scene.bootstrap(&["--path=clusters/a"], 0).await?;
    ensure!(said.contains("which had all files already"), "{said}");
    ensure!(
        scene.repository.resolve("main")? == head,
        "a commit without a change"
    );
    let said = scene.bootstrap(&["--path=clusters/a", "--dry-run"], 0).await?;
    ensure!(
        said.contains("no file changes\n") && !said.contains("change  "),
        "{said}"
    );

    let said = scene
        .bootstrap(&["--path=clusters/a", "--log-level=debug"], 0)
        .await?;
    ensure!(said.contains("pushing commit "), "{said}");
    let is_debug = |found: &Deployment| {
        serde_json::to_string(&found.spec).is_ok_and(|spec| spec.contains("--log-level=debug"))
    };
    wait_for(&scene.deployments(), "source-controller", is_debug, PATIENCE).await?;
    let values = scene
        .repository
        .git(&["show", "main:clusters/a/windlass-system/values.yaml"])?;
    ensure!(
        values.contains("tag: first") && values.contains("level: debug"),
        "{values}"
    );

    let said = scene.bootstrap(&["--path=clusters/b"], 3).await?;
    ensure!(
        said.contains("the cluster is delivered from ./clusters/a, not from ./clusters/b"),
        "{said}"
    );
    scene.bootstrap(&["--path=clusters/b", "--move"], 0).await?;
    let own = scene.kustomizations().get(NAMESPACE).await?;
    ensure!(
        is_ready(&own) && text(&own, "/spec/path") == "./clusters/b",
        "{own:?}"
    );
    ensure!(scene.app().await? == uid, "the app was made anew");
    let files = scene.repository.git(&["ls-tree", "-r", "--name-only", "main"])?;
    ensure!(
        files.lines().count() == 5 && files.lines().all(|file| file.starts_with("clusters/b/")),
        "{files}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_of_flux_is_taken_over_in_one_commit_and_given_back_by_its_revert() {
    let (scene, _controllers) = Scene::of_flux().await.unwrap();
    scenario(&scene).await.unwrap();
}

async fn scenario(scene: &Scene) -> Result<()> {
    let app = scene.app().await?;
    let before = scene.repository.resolve("main")?;
    let mut uids = Vec::new();
    for name in CONTROLLERS.into_iter().chain([IMAGES[0]]) {
        uids.push((name, scene.has_image(name, "fluxcd/").await?));
    }

    // Another folder would make the cluster delete everything.
    let said = scene.bootstrap(&["--path=clusters/b"], 3).await?;
    ensure!(
        said.contains("the cluster is delivered from ./clusters/a, not from ./clusters/b"),
        "{said}"
    );
    let said = scene.bootstrap(&["--path=clusters/a", "--dry-run"], 0).await?;
    ensure!(said.contains(&format!("change file {COMPONENTS}\n")), "{said}");
    ensure!(
        scene.repository.resolve("main")? == before,
        "a dry run has pushed"
    );
    // Without the controller of images, its definitions would go with all their objects.
    let said = scene
        .bootstrap(&["--path=clusters/a", "--set=images.enabled=false"], 3)
        .await?;
    ensure!(
        said.contains("these definitions would be deleted")
            && said.contains("imagepolicies.image.toolkit.fluxcd.io"),
        "{said}"
    );

    let said = scene.bootstrap(&["--path=./clusters/a"], 0).await?;
    ensure!(said.contains("Flux's controllers were replaced"), "{said}");
    for (name, uid) in &uids {
        ensure!(
            scene.has_image(name, "windlass/").await? == *uid,
            "{name} was made anew"
        );
    }
    for name in [IMAGES[1], "source-watcher"] {
        wait_until_gone(&scene.deployments(), name, PATIENCE).await?;
    }
    ensure!(scene.app().await? == app, "the app was made anew");
    let changed = scene.repository.git(&["diff", "--name-only", &before, "main"])?;
    ensure!(
        changed.lines().collect::<Vec<_>>() == [COMPONENTS, "clusters/a/flux-system/values.yaml"],
        "{changed}"
    );
    let said = scene.bootstrap(&["--path=clusters/a"], 0).await?;
    ensure!(said.contains("which had all files already"), "{said}");

    // Back, as `git revert` does it.
    let count = scene.definitions().await?;
    let tree = format!("{before}^{{tree}}");
    let revert = scene
        .repository
        .git(&["commit-tree", &tree, "-p", "main", "-m", "revert"])?;
    scene
        .repository
        .git(&["update-ref", "refs/heads/main", revert.trim()])?;
    objects::poke(&scene.sources(), NAMESPACE).await?;
    for (name, uid) in &uids {
        ensure!(
            scene.has_image(name, "fluxcd/").await? == *uid,
            "{name} was made anew"
        );
    }
    scene.has_image("source-watcher", "fluxcd/").await?;
    wait_for(&scene.kustomizations(), NAMESPACE, is_ready, PATIENCE).await?;
    ensure!(scene.definitions().await? == count, "definitions are gone");
    ensure!(scene.app().await? == app, "the app was made anew");

    // Flux's command finds what it would have written.
    let head = scene.repository.resolve("main")?;
    let said = scene.flux_bootstrap().await?;
    ensure!(said.contains("component manifests are up to date"), "{said}");
    ensure!(
        scene.repository.resolve("main")? == head,
        "flux has pushed: {said}"
    );
    Ok(())
}
