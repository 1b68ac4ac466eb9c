//! The processes that all stories share, and a namespace for each.

use std::sync::LazyLock;
use std::time::Duration;

use anyhow::Result;
use kube::api::{Api, DynamicObject};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, apply};
use testkit::{ControlPlane, Controller, install_all_crds, install_flux_operator_crds, wait_for};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

pub const PATIENCE: Duration = Duration::from_secs(240);
pub const GROUP: &str = "fluxcd.controlplane.io/v1";
/// Objects with this label belong to the controller that is locked down.
const LOCKED: &str = "resource-sets.example.com/locked";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime can be made"));

pub struct World {
    pub control_plane: &'static ControlPlane,
    open: Controller,
    locked: Controller,
}

impl World {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::shared().await?;
        install_all_crds(&control_plane.client()).await?;
        install_flux_operator_crds(&control_plane.client()).await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let options = |flags: &[String]| ControllerOptions {
            flags: flags.to_vec(),
            ..ControllerOptions::default()
        };
        let open = options(&[format!("--watch-label-selector=!{LOCKED}")]);
        let locked = options(&[
            format!("--watch-label-selector={LOCKED}"),
            "--default-service-account=deployer".to_owned(),
            "--no-cross-namespace-refs".to_owned(),
        ]);
        Ok(Self {
            control_plane,
            open: Controller::start_resource_sets(kubeconfig, open).await?,
            locked: Controller::start_resource_sets(kubeconfig, locked).await?,
        })
    }
}

/// One story's namespace.
pub struct Scene {
    pub world: &'static World,
    pub client: Client,
    pub namespace: String,
}

/// Plays a story; on failure the controllers' log about it is printed.
pub fn play<F>(name: &str, story: impl FnOnce(Scene) -> F)
where
    F: Future<Output = Result<()>>,
{
    static WORLD: OnceCell<World> = OnceCell::const_new();
    let outcome = RUNTIME.block_on(async {
        let world = WORLD.get_or_try_init(World::start).await?;
        let namespace = world.control_plane.namespace(name).await?;
        let scene = Scene {
            world,
            client: world.control_plane.client(),
            namespace: namespace.clone(),
        };
        let outcome = story(scene).await;
        if outcome.is_err() {
            let log = [world.open.log(), world.locked.log()].concat();
            let lines: Vec<_> = log.lines().filter(|line| line.contains(&namespace)).collect();
            eprintln!("{}", lines.join("\n"));
        }
        outcome
    });
    if let Err(error) = outcome {
        panic!("{error:#}");
    }
}

impl Scene {
    /// Writes a ResourceSet.
    pub async fn set(&self, name: &str, spec: Value) -> Result<DynamicObject> {
        self.make("ResourceSet", name, spec, json!({})).await
    }

    /// Writes a ResourceSetInputProvider.
    pub async fn provider(&self, name: &str, spec: Value) -> Result<DynamicObject> {
        self.make("ResourceSetInputProvider", name, spec, json!({})).await
    }

    /// Writes an object, with more metadata.
    pub async fn make(&self, kind: &str, name: &str, spec: Value, metadata: Value) -> Result<DynamicObject> {
        let mut object = json!({
            "apiVersion": GROUP, "kind": kind,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": spec,
        });
        if let (Some(own), Value::Object(more)) = (object["metadata"].as_object_mut(), metadata) {
            own.extend(more);
        }
        apply(&self.client, &object).await
    }

    /// Labels by which the locked controller serves an object.
    pub fn locked() -> Value {
        json!({"labels": {LOCKED: "yes"}})
    }

    pub fn sets(&self) -> Api<DynamicObject> {
        objects::api(&self.client, GROUP, "ResourceSet", &self.namespace)
    }

    pub fn providers(&self) -> Api<DynamicObject> {
        objects::api(&self.client, GROUP, "ResourceSetInputProvider", &self.namespace)
    }

    pub fn config_maps(&self) -> Api<DynamicObject> {
        objects::api(&self.client, "v1", "ConfigMap", &self.namespace)
    }

    /// Waits until a ResourceSet is as it is to be.
    pub async fn wait(&self, name: &str, is_right: impl Fn(&DynamicObject) -> bool) -> Result<DynamicObject> {
        wait_for(&self.sets(), name, is_right, PATIENCE).await
    }

    /// Waits until a ResourceSet has applied its newest spec.
    pub async fn applied(&self, name: &str) -> Result<DynamicObject> {
        self.wait(name, |object| {
            let generation = objects::field(object, "/status/observedGeneration").and_then(Value::as_i64);
            objects::is_ready(object) && generation == object.metadata.generation
        })
        .await
    }

    /// Names of the ConfigMaps that a ResourceSet has made in the namespace.
    pub async fn made_by(&self, set: &str) -> Result<Vec<String>> {
        let label = format!("resourceset.fluxcd.controlplane.io/name={set}");
        let found = self
            .config_maps()
            .list(&kube::api::ListParams::default().labels(&label))
            .await?;
        let mut names: Vec<_> = found.items.iter().map(ResourceExt::name_any).collect();
        names.sort();
        Ok(names)
    }
}

/// A ConfigMap as a template.
pub fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}
