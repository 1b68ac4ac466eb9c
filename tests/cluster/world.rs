//! Shared start of every test: the shared processes, a namespace, and helpers for the usual steps.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, DynamicObject};
use kube::{Api, Client};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::git::{Change, Repository};
use testkit::objects::{self, condition, text};
use testkit::{ControlPlane, Controller, GitServer, Registry, install_crds, wait_for, wait_until_gone};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// The label that keeps objects away from the shared controllers.
const SHARD: &str = "sharding.fluxcd.io/key";

/// Long enough for a loaded machine; nothing waits this long unless it is broken.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// All tests run on one runtime: the servers of the shared world live on it.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime can be made"));

/// The processes that all tests share.
pub struct World {
    pub control_plane: &'static ControlPlane,
    pub git: GitServer,
    pub registry: Registry,
    pub source: Controller,
    pub apply: Controller,
}

impl World {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::shared().await?;
        install_crds(&control_plane.client()).await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, shard(&format!("!{SHARD}"))).await?;
        let mut options = shard(&format!("!{SHARD}"));
        options
            .flags
            .push("--feature-gates=ExternalArtifact=true".to_owned());
        let apply = Controller::start_apply(kubeconfig, &source, options).await?;
        Ok(Self {
            control_plane,
            git: GitServer::start().await?,
            registry: Registry::start().await?,
            source,
            apply,
        })
    }
}

/// Options for controllers that look only at what the selector lets through.
fn shard(selector: &str) -> ControllerOptions {
    ControllerOptions {
        flags: vec![format!("--watch-label-selector={selector}")],
        ..ControllerOptions::default()
    }
}

/// Runs one test in a namespace of its own; on failure the controllers' logs about it are printed.
pub fn run<F>(name: &str, test: impl FnOnce(Test) -> F)
where
    F: Future<Output = Result<()>>,
{
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let outcome = RUNTIME.block_on(async {
        let world = WORLD.get_or_try_init(World::start).await?;
        let namespace = world.control_plane.namespace(name).await?;
        let test_case = Test {
            world,
            client: world.control_plane.client(),
            namespace: namespace.clone(),
        };
        let outcome = test(test_case).await;
        if outcome.is_err() {
            for controller in [&world.source, &world.apply] {
                let log = controller.log();
                let lines: Vec<_> = log.lines().filter(|line| line.contains(&namespace)).collect();
                eprintln!("{} on {namespace}:\n{}", controller.name(), lines.join("\n"));
            }
        }
        outcome
    });
    if let Err(error) = outcome {
        panic!("{error:#}");
    }
}

/// One test's place in the world.
pub struct Test {
    pub world: &'static World,
    pub client: Client,
    pub namespace: String,
}

/// Group, version and kind of what the tests apply most.
pub const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";
pub const SOURCE: &str = "source.toolkit.fluxcd.io/v1";

impl Test {
    /// Options for controllers that look at this test's objects only.
    pub fn own_shard(&self) -> ControllerOptions {
        shard(&format!("{SHARD}={}", self.namespace))
    }

    /// Hides an object from the shared controllers, and shows it to those of [`Test::own_shard`].
    pub fn in_own_shard(&self, mut object: Value) -> Value {
        object["metadata"]["labels"] = json!({SHARD: self.namespace});
        object
    }

    /// The Kustomizations of this test.
    pub fn kustomizations(&self) -> Api<DynamicObject> {
        objects::api(&self.client, KUSTOMIZE, "Kustomization", &self.namespace)
    }

    /// The GitRepositories of this test.
    pub fn git_repositories(&self) -> Api<DynamicObject> {
        objects::api(&self.client, SOURCE, "GitRepository", &self.namespace)
    }

    /// The OCIRepositories of this test.
    pub fn oci_repositories(&self) -> Api<DynamicObject> {
        objects::api(&self.client, SOURCE, "OCIRepository", &self.namespace)
    }

    /// The ConfigMaps of this test.
    pub fn config_maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of any kind in the namespace of this test.
    pub fn objects(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        objects::api(&self.client, api_version, kind, &self.namespace)
    }

    /// A Git repository with one commit on `main`.
    pub fn repository(&self, files: &[(impl AsRef<str>, String)]) -> Result<Repository> {
        let repository = self.world.git.create_repository(&self.namespace)?;
        commit(&repository, files)?;
        Ok(repository)
    }

    /// Applies a GitRepository `app` for the repository.
    pub async fn git_source(&self, repository: &Repository) -> Result<()> {
        self.apply(&objects::git_repository(
            &self.namespace,
            "app",
            repository.url(),
            "main",
        ))
        .await
    }

    /// A Kustomization of `./deploy` in the GitRepository `app`, with more of a spec.
    pub fn kustomization(&self, name: &str, spec: Value) -> Value {
        let object = objects::kustomization(&self.namespace, name, ("GitRepository", "app"), "./deploy");
        objects::with_spec(object, spec)
    }

    /// Applies an object.
    pub async fn apply(&self, object: &Value) -> Result<()> {
        objects::apply(&self.client, object).await.map(drop)
    }

    /// Applies Git source and Kustomization `app`, and waits until it is ready with the repository's newest commit.
    pub async fn deliver(&self, repository: &Repository, spec: Value) -> Result<DynamicObject> {
        self.git_source(repository).await?;
        self.apply(&self.kustomization("app", spec)).await?;
        self.ready("app", &format!("main@sha1:{}", repository.resolve("main")?))
            .await
    }

    /// Commits, pokes the source as `flux reconcile source git` does, and returns the revision.
    pub async fn push(&self, repository: &Repository, changes: &[Change]) -> Result<String> {
        let sha = repository.commit("main", "change", changes)?;
        objects::poke(&self.git_repositories(), "app").await?;
        Ok(format!("main@sha1:{sha}"))
    }

    /// Waits until the Kustomization has applied the revision and says so.
    pub async fn ready(&self, name: &str, revision: &str) -> Result<DynamicObject> {
        let ready = |object: &DynamicObject| {
            objects::is_ready(object) && text(object, "/status/lastAppliedRevision") == revision
        };
        wait_for(&self.kustomizations(), name, ready, PATIENCE).await
    }

    /// Waits until Ready is False for this reason; returns the message.
    pub async fn not_ready(&self, api: &Api<DynamicObject>, name: &str, reason: &str) -> Result<String> {
        let refused = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, given, _)| status == "False" && given == reason)
        };
        let object = wait_for(api, name, refused, PATIENCE).await?;
        Ok(condition(&object, "Ready")
            .map(|(_, _, message)| message.to_owned())
            .unwrap_or_default())
    }

    /// Waits until the newest attempt of a Kustomization was this revision, and failed; returns the message.
    pub async fn not_ready_at(&self, name: &str, revision: &str) -> Result<String> {
        let failed = |object: &DynamicObject| {
            text(object, "/status/lastAttemptedRevision") == revision
                && condition(object, "Ready").is_some_and(|(status, ..)| status == "False")
        };
        let object = wait_for(&self.kustomizations(), name, failed, PATIENCE).await?;
        Ok(condition(&object, "Ready")
            .map(|(_, _, message)| message.to_owned())
            .unwrap_or_default())
    }

    /// Waits until a ConfigMap's key has a value.
    pub async fn config_map_has(&self, name: &str, key: &str, value: &str) -> Result<ConfigMap> {
        let has = |map: &ConfigMap| {
            map.data
                .as_ref()
                .and_then(|d| d.get(key))
                .is_some_and(|v| v == value)
        };
        wait_for(&self.config_maps(), name, has, PATIENCE).await
    }

    /// Waits until a ConfigMap is gone.
    pub async fn config_map_gone(&self, name: &str) -> Result<()> {
        wait_until_gone(&self.config_maps(), name, PATIENCE).await
    }

    /// Deletes a Kustomization and waits until it is gone.
    pub async fn delete_kustomization(&self, name: &str) -> Result<()> {
        self.kustomizations()
            .delete(name, &DeleteParams::default())
            .await
            .context("failed to delete")?;
        wait_until_gone(&self.kustomizations(), name, PATIENCE).await
    }

    /// Fails unless the ConfigMap does not exist.
    pub async fn no_config_map(&self, name: &str) -> Result<()> {
        ensure!(
            self.config_maps().get_opt(name).await?.is_none(),
            "ConfigMap {name} should not exist"
        );
        Ok(())
    }
}

/// The ids in an inventory.
pub fn inventory_of(object: &DynamicObject) -> Vec<String> {
    let entries = object
        .data
        .pointer("/status/inventory/entries")
        .and_then(Value::as_array);
    entries
        .into_iter()
        .flatten()
        .filter_map(|e| e["id"].as_str())
        .map(ToOwned::to_owned)
        .collect()
}

/// Commits files on `main`.
pub fn commit(repository: &Repository, files: &[(impl AsRef<str>, String)]) -> Result<String> {
    let changes: Vec<_> = files
        .iter()
        .map(|(path, text)| Change::write(path.as_ref(), text.as_bytes()))
        .collect();
    repository.commit("main", "change", &changes)
}

/// A ConfigMap with one key, as YAML, for the namespace.
pub fn config_map(namespace: &str, name: &str, value: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: {namespace}\ndata:\n  key: \"{value}\"\n"
    )
}

/// A Deployment, as YAML (JSON is YAML), for the namespace.
pub fn deployment(namespace: &str, name: &str, image: &str, replicas: u32) -> String {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "app", "image": image}]},
            },
        },
    })
    .to_string()
}
