//! Chaos for releases: helm-controller is killed at random moments of installs, upgrades, rollbacks and uninstalls. Afterwards there
//! is one release, no revision of it is left under way, and the cluster is what its newest good values say.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, condition};
use testkit::registry::{Artifact, CHART_MEDIA_TYPE, tar_gz};
use testkit::{ControlPlane, Controller, Options, Registry, install_crds, wait_for, wait_until_gone};

use crate::random::Random;

const NAME: &str = "app";
/// A failed upgrade and its rollback, and what a kill adds to them.
const PATIENCE: Duration = Duration::from_secs(120);

const CHART: [(&str, &str); 5] = [
    ("app/Chart.yaml", "{apiVersion: v2, name: app, version: 1.0.0}"),
    ("app/values.yaml", "{message: none, outcome: done}"),
    (
        "app/templates/map.yaml",
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: app}, data: {message: {{ .Values.message | quote }}}}",
    ),
    (
        "app/templates/deployment.yaml",
        "apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 1
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}, annotations: {message: {{ .Values.message | quote }}}}
    spec: {containers: [{name: app, image: registry.example.com/app}]}
",
    ),
    (
        "app/templates/hook.yaml",
        "apiVersion: batch/v1
kind: Job
metadata:
  name: app-hook
  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {testkit.windlass.dev/outcome: {{ .Values.outcome }}}}
    spec: {restartPolicy: Never, containers: [{name: hook, image: registry.example.com/hook}]}
",
    ),
];

/// Change of a round.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// Values that can be released.
    Good,
    /// Values with which a hook fails, so that the release goes back.
    Broken,
    /// The HelmRelease is deleted, and re-created.
    Again,
}

/// Running processes, and the expected state of the cluster.
struct Scene {
    control_plane: ControlPlane,
    namespace: String,
    helm: Controller,
    message: String,
    _source: Controller,
    _registry: Registry,
}

/// Kills in each of so many rounds.
pub async fn chaos(seed: u64, rounds: u64) -> Result<()> {
    let mut random = Random::new(seed);
    let mut scene = Scene::start().await?;
    let outcome = go(&mut scene, &mut random, rounds).await;
    outcome.with_context(|| scene.helm.log_tail(80))
}

async fn go(scene: &mut Scene, random: &mut Random, rounds: u64) -> Result<()> {
    let began = Instant::now();
    for round in 1..=rounds {
        let change = match random.below(6) {
            0 => Change::Again,
            1 | 2 => Change::Broken,
            _ => Change::Good,
        };
        println!(
            "{:6.1} s, round {round}: {change:?}",
            began.elapsed().as_secs_f64()
        );
        let expected = scene.ask(change, round).await?;
        // Most installs and upgrades take less than a second; a rollback comes after that.
        for _ in 0..=random.below(3) {
            tokio::time::sleep(Duration::from_millis(random.below(1200))).await;
            scene.helm.kill();
            scene.helm.restart().await?;
        }
        scene
            .settles(expected)
            .await
            .with_context(|| format!("round {round}, {change:?}"))?;
    }
    scene.end().await
}

/// Expected result of a round.
enum Expected {
    Ready,
    RolledBack,
    MadeAgain(String),
}

impl Scene {
    async fn start() -> Result<Self> {
        let control_plane = ControlPlane::start(Options::default()).await?;
        let client = control_plane.client();
        install_crds(&client).await?;
        let namespace = control_plane.namespace("releases").await?;
        let registry = Registry::start().await?;
        let artifact = Artifact::from_chart(tar_gz(&CHART)?);
        registry.push(NAME, &["1.0.0"], &artifact).await?;
        let source = objects::oci_repository(&namespace, NAME, &registry.url(NAME), "1.0.0");
        let selector = json!({"layerSelector": {"mediaType": CHART_MEDIA_TYPE, "operation": "copy"}});
        objects::apply(&client, &objects::with_spec(source, selector)).await?;
        let kubeconfig = control_plane.kubeconfig_path();
        let source = Controller::start_source(kubeconfig, ControllerOptions::default()).await?;
        let helm = Controller::start_helm(kubeconfig, &source, ControllerOptions::default()).await?;
        let scene = Self {
            namespace,
            helm,
            message: "first".to_owned(),
            _source: source,
            _registry: registry,
            control_plane,
        };
        objects::apply(&client, &scene.release("first", "done")).await?;
        scene.settled(&scene.releases(), "True").await?;
        Ok(scene)
    }

    fn releases(&self) -> Api<DynamicObject> {
        objects::api(
            &self.control_plane.client(),
            "helm.toolkit.fluxcd.io/v2",
            "HelmRelease",
            &self.namespace,
        )
    }

    fn release(&self, message: &str, outcome: &str) -> Value {
        json!({
            "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
            "metadata": {"name": NAME, "namespace": self.namespace},
            "spec": {
                "interval": "1h", "timeout": "30s", "maxHistory": 3,
                "chartRef": {"kind": "OCIRepository", "name": NAME},
                "values": {"message": message, "outcome": outcome},
                "install": {"remediation": {"retries": -1}},
                "upgrade": {"remediation": {"retries": 1, "remediateLastFailure": true}},
            },
        })
    }

    /// Changes the HelmRelease; says what that has to end with.
    async fn ask(&mut self, change: Change, round: u64) -> Result<Expected> {
        let client = self.control_plane.client();
        let message = format!("round {round}");
        match change {
            Change::Good => {
                objects::apply(&client, &self.release(&message, "done")).await?;
                self.message = message;
                Ok(Expected::Ready)
            }
            Change::Broken => {
                objects::apply(&client, &self.release(&message, "job-failure")).await?;
                Ok(Expected::RolledBack)
            }
            Change::Again => {
                self.releases().delete(NAME, &DeleteParams::default()).await?;
                Ok(Expected::MadeAgain(message))
            }
        }
    }

    async fn settles(&mut self, expected: Expected) -> Result<()> {
        let releases = self.releases();
        match expected {
            Expected::Ready => self.settled(&releases, "True").await?,
            Expected::RolledBack => self.settled(&releases, "False").await?,
            Expected::MadeAgain(message) => {
                wait_until_gone(&releases, NAME, PATIENCE).await?;
                ensure!(
                    self.records().await?.is_empty(),
                    "records are left of a release that is gone"
                );
                let gone = self.maps().get_opt(NAME).await?.is_none();
                ensure!(gone, "objects are left of a release that is gone");
                let client = self.control_plane.client();
                objects::apply(&client, &self.release(&message, "done")).await?;
                self.message = message;
                self.settled(&releases, "True").await?;
            }
        }
        self.check().await
    }

    /// Waits until nothing more will happen: Ready, or out of retries.
    async fn settled(&self, releases: &Api<DynamicObject>, ready: &str) -> Result<()> {
        let settled = |object: &DynamicObject| {
            let seen = object.data.pointer("/status/observedGeneration")
                == object.metadata.generation.map(Value::from).as_ref();
            let is = |name: &str| condition(object, name).map(|(status, ..)| status);
            seen && is("Ready") == Some(ready) && (ready == "True" || is("Stalled") == Some("True"))
        };
        wait_for(releases, NAME, settled, PATIENCE).await.map(drop)
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.control_plane.client(), &self.namespace)
    }

    /// The revisions in storage with their states.
    async fn records(&self) -> Result<BTreeMap<u64, String>> {
        let secrets: Api<Secret> = Api::namespaced(self.control_plane.client(), &self.namespace);
        let list = secrets.list(&ListParams::default().labels("owner=helm")).await?;
        let mut records = BTreeMap::new();
        for secret in list.items {
            let labels = secret.metadata.labels.unwrap_or_default();
            let label = |name: &str| labels.get(name).cloned().unwrap_or_default();
            ensure!(label("name") == NAME, "a second release: {labels:?}");
            records.insert(label("version").parse()?, label("status"));
        }
        Ok(records)
    }

    async fn check(&self) -> Result<()> {
        let records = self.records().await?;
        let deployed: Vec<_> = records
            .iter()
            .filter(|(_, status)| *status == "deployed")
            .collect();
        ensure!(deployed.len() == 1, "{records:?}");
        ensure!(
            records.values().all(|status| !status.starts_with("pending")),
            "a revision is left under way: {records:?}"
        );
        ensure!(records.len() <= 3, "more records than maxHistory: {records:?}");
        let map = self.maps().get(NAME).await?;
        let message = map.data.unwrap_or_default().remove("message");
        ensure!(
            message.as_deref() == Some(&*self.message),
            "the cluster says {message:?}, and the newest good values {:?}",
            self.message
        );
        let newest = records.last_key_value().map(|(version, _)| *version);
        let object = self.releases().get(NAME).await?;
        let told = object
            .data
            .pointer("/status/history/0/version")
            .and_then(Value::as_u64);
        ensure!(
            newest == told,
            "storage has revision {newest:?}, the status says {told:?}"
        );
        Ok(())
    }

    async fn end(&self) -> Result<()> {
        let releases = self.releases();
        releases.delete(NAME, &DeleteParams::default()).await?;
        wait_until_gone(&releases, NAME, PATIENCE).await?;
        let records = self.records().await?;
        if !records.is_empty() {
            bail!("records are left at the end: {records:?}");
        }
        Ok(())
    }
}
