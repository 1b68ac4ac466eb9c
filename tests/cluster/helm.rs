//! Shared start of HelmRelease tests: helm-controller beside the shared controllers, charts made of a few
//! files, and helpers for the usual steps.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, condition, text};
use testkit::registry::{Artifact, CHART_MEDIA_TYPE, tar_gz};
use testkit::{Controller, wait_for, wait_until_gone};
use tokio::sync::OnceCell;

use crate::world::{self, PATIENCE, Test};

/// API version of HelmReleases.
pub const HELM: &str = "helm.toolkit.fluxcd.io/v2";
const SHARD: &str = "sharding.fluxcd.io/key";

/// One test's place in the world, with helm-controller in it.
pub struct HelmTest {
    pub test: Test,
}

impl std::ops::Deref for HelmTest {
    type Target = Test;

    fn deref(&self) -> &Test {
        &self.test
    }
}

/// Runs one test in a namespace of its own; on failure helm-controller's log about it is printed.
pub fn run<F>(name: &str, test: impl FnOnce(HelmTest) -> F)
where
    F: Future<Output = Result<()>>,
{
    static CONTROLLER: OnceCell<Controller> = OnceCell::const_new();
    world::run(name, |world| async move {
        let controller = CONTROLLER.get_or_try_init(|| start(&world)).await?;
        let namespace = world.namespace.clone();
        let outcome = test(HelmTest { test: world }).await;
        if outcome.is_err() {
            let log = controller.log();
            let lines: Vec<_> = log.lines().filter(|line| line.contains(&namespace)).collect();
            eprintln!("helm-controller on {namespace}:\n{}", lines.join("\n"));
            controller.check_running()?;
        }
        outcome
    });
}

async fn start(test: &Test) -> Result<Controller> {
    let options = ControllerOptions {
        flags: vec![
            format!("--watch-label-selector=!{SHARD}"),
            "--feature-gates=ExternalArtifact=true".to_owned(),
            "--log-level=debug".to_owned(),
        ],
        ..ControllerOptions::default()
    };
    let kubeconfig = test.world.control_plane.kubeconfig_path();
    Controller::start_helm(kubeconfig, &test.world.source, options).await
}

/// A chart `web` of a version: a ConfigMap with what `value` is, and more templates (name below templates/, text).
pub fn chart(version: &str, templates: &[(&str, &str)]) -> Result<Vec<u8>> {
    let metadata = format!("apiVersion: v2\nname: web\nversion: {version}\nappVersion: \"{version}-app\"\n");
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-map\ndata:\n  \
               value: {{ .Values.value | quote }}\n  chart: {{ .Chart.Version | quote }}\n";
    let named: Vec<_> = templates
        .iter()
        .map(|(name, text)| (format!("web/templates/{name}"), *text))
        .collect();
    let mut files = vec![
        ("web/Chart.yaml", metadata.as_str()),
        ("web/values.yaml", "value: default\n"),
        ("web/templates/map.yaml", map),
    ];
    files.extend(named.iter().map(|(name, text)| (name.as_str(), *text)));
    tar_gz(&files)
}

/// A Deployment `{{ .Release.Name }}` as a template, which is available once kwok has run its Pods.
pub const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas | default 1 }}
  selector:
    matchLabels: {app: {{ .Release.Name }}}
  template:
    metadata:
      labels: {app: {{ .Release.Name }}}
    spec:
      containers:
      - name: web
        image: {{ .Values.image | default \"example.com/web:1\" }}
";

impl HelmTest {
    /// The HelmReleases of this test.
    pub fn releases(&self) -> Api<DynamicObject> {
        self.objects(HELM, "HelmRelease")
    }

    /// Pushes a chart into the registry under `tag`, and returns the digest of its manifest.
    pub async fn push_chart(&self, tag: &str, chart: Vec<u8>) -> Result<String> {
        let artifact = Artifact::from_chart(chart);
        self.world.registry.push(&self.namespace, &[tag], &artifact).await
    }

    /// Pushes a chart and applies an OCIRepository `web` of its tag.
    pub async fn oci_chart(&self, tag: &str, chart: Vec<u8>) -> Result<String> {
        let digest = self.push_chart(tag, chart).await?;
        self.choose_tag(tag).await?;
        Ok(digest)
    }

    /// Has the OCIRepository `web` look at a tag.
    pub async fn choose_tag(&self, tag: &str) -> Result<()> {
        let url = self.world.registry.url(&self.namespace);
        let repository = objects::oci_repository(&self.namespace, "web", &url, tag);
        let layer = json!({"layerSelector": {
            "mediaType": CHART_MEDIA_TYPE, "operation": "copy",
        }});
        self.apply(&objects::with_spec(repository, layer)).await
    }

    /// A HelmRelease `web` of the OCIRepository `web`, with more of a spec.
    pub fn release(&self, spec: Value) -> Value {
        let object = json!({
            "apiVersion": HELM, "kind": "HelmRelease",
            "metadata": {"name": "web", "namespace": self.namespace},
            "spec": {
                "interval": "1h", "timeout": "1m", "chartRef": {"kind": "OCIRepository", "name": "web"},
            },
        });
        objects::with_spec(object, spec)
    }

    /// Waits until the HelmRelease `web` is ready for its newest spec.
    pub async fn ready(&self) -> Result<DynamicObject> {
        self.when(objects::is_ready).await
    }

    /// Waits until the HelmRelease `web` is ready at a revision of its release.
    pub async fn ready_at(&self, version: i64) -> Result<DynamicObject> {
        self.when(move |object| {
            objects::is_ready(object) && newest(object)["version"].as_i64() == Some(version)
        })
        .await
    }

    /// Waits until the HelmRelease `web` is so.
    pub async fn when(&self, is_so: impl Fn(&DynamicObject) -> bool) -> Result<DynamicObject> {
        match wait_for(&self.releases(), "web", is_so, PATIENCE).await {
            Ok(object) => Ok(object),
            Err(error) => {
                let now = self.releases().get_opt("web").await?;
                let status = now.map(|object| object.data["status"].clone());
                Err(error).with_context(|| format!("the status is {}", status.unwrap_or_default()))
            }
        }
    }

    /// Waits until Ready of the HelmRelease `web` is False for this reason; returns the message.
    pub async fn refused(&self, reason: &str) -> Result<String> {
        let refused = |object: &DynamicObject| {
            condition(object, "Ready").is_some_and(|(status, given, _)| status == "False" && given == reason)
        };
        let object = self.when(refused).await?;
        let ready = condition(&object, "Ready");
        Ok(ready
            .map(|(_, _, message)| message.to_owned())
            .unwrap_or_default())
    }

    /// Helm's records of a release: version and status, the oldest first.
    pub async fn records(&self, release: &str) -> Result<Vec<(i64, String)>> {
        let secrets: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        let selector = format!("owner=helm,name={release}");
        let found = secrets
            .list_metadata(&ListParams::default().labels(&selector))
            .await?;
        let mut records = Vec::new();
        for record in found {
            let labels = record.metadata.labels.unwrap_or_default();
            let version = labels
                .get("version")
                .context("a record has no version")?
                .parse()?;
            records.push((version, labels.get("status").cloned().unwrap_or_default()));
        }
        records.sort();
        Ok(records)
    }

    /// Waits until the ConfigMap of the chart `web` has a value.
    pub async fn map_has(&self, key: &str, value: &str) -> Result<()> {
        self.config_map_has("web-map", key, value).await.map(drop)
    }

    /// Deletes the HelmRelease `web` and waits until it is gone.
    pub async fn delete(&self) -> Result<()> {
        self.releases().delete("web", &DeleteParams::default()).await?;
        wait_until_gone(&self.releases(), "web", PATIENCE).await
    }

    /// Waits for so long that whatever is going to happen has happened: a witness release is made meanwhile.
    pub async fn settle(&self) -> Result<()> {
        let mut witness = self.release(json!({"releaseName": "witness"}));
        witness["metadata"]["name"] = json!("witness");
        self.apply(&witness).await?;
        wait_for(&self.releases(), "witness", objects::is_ready, PATIENCE).await?;
        tokio::time::sleep(Duration::from_millis(700)).await;
        Ok(())
    }
}

/// The newest entry of `status.history`.
pub fn newest(object: &DynamicObject) -> &Value {
    objects::field(object, "/status/history/0").unwrap_or(&Value::Null)
}

/// Fails unless a condition is so.
pub fn ensure_condition(object: &DynamicObject, type_: &str, status: &str, reason: &str) -> Result<()> {
    let found = condition(object, type_).with_context(|| format!("there is no condition {type_}"))?;
    ensure!((found.0, found.1) == (status, reason), "{type_}: {found:?}");
    Ok(())
}

/// A text of the status.
pub fn said<'a>(object: &'a DynamicObject, field: &str) -> &'a str {
    text(object, &format!("/status/{field}"))
}
