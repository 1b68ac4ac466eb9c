//! A namespace with releases in every state that lasts: as it should be after an upgrade, of a chart that was made for it,
//! elsewhere, rolled back, failed for good, suspended.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::controller::ControllerOptions;
use testkit::objects::{self, condition, is_ready, text};
use testkit::registry::{Artifact, CHART_MEDIA_TYPE};
use testkit::{HelmRepository, wait_for, wait_until_gone};
use tokio::sync::OnceCell;

use super::recording::CHART;
use crate::helm::{HELM, HelmTest, newest};
use crate::world::{PATIENCE, SOURCE};

/// The HelmReleases.
pub const RELEASES: [&str; 6] = ["full", "made", "placed", "failed", "broken", "suspended"];
/// Those that no one looks at.
const UNTOUCHED: [&str; 1] = ["suspended"];
const SHARD: &str = "sharding.fluxcd.io/key";

/// The namespace, and what its releases refer to.
pub struct Scene<'a> {
    pub test: &'a HelmTest,
    pub namespace: String,
    charts: OnceCell<HelmRepository>,
}

/// All that a controller may touch.
#[derive(Debug, Default)]
pub struct Seen {
    /// HelmReleases, whole.
    pub releases: BTreeMap<String, Value>,
    /// Objects that they made, records included, whole.
    pub objects: BTreeMap<String, Value>,
}

impl<'a> Scene<'a> {
    /// Makes the namespace.
    pub async fn new(test: &'a HelmTest, namespace: &str) -> Result<Self> {
        let scene = Self {
            test,
            namespace: namespace.to_owned(),
            charts: OnceCell::new(),
        };
        let namespaces: Api<Namespace> = Api::all(test.client.clone());
        for name in [namespace.to_owned(), scene.elsewhere()] {
            if namespaces.get_opt(&name).await?.is_none() {
                let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
                namespaces.create(&PostParams::default(), &namespace).await?;
            }
        }
        Ok(scene)
    }

    /// Where the release `placed` is.
    pub fn elsewhere(&self) -> String {
        format!("{}-there", self.namespace)
    }

    /// A controller that looks at nothing else.
    pub fn own_controller(&self) -> ControllerOptions {
        ControllerOptions {
            flags: vec![
                format!("--watch-label-selector={SHARD}={}", self.namespace),
                "--log-level=debug".to_owned(),
            ],
            ..ControllerOptions::default()
        }
    }

    /// Objects of the namespace.
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        let version = match kind {
            "HelmRelease" => HELM,
            "HelmChart" => SOURCE,
            "Deployment" => "apps/v1",
            _ => "v1",
        };
        objects::api(&self.test.client, version, kind, &self.namespace)
    }

    /// Pushes the chart, serves the others, and says where they are.
    pub async fn sources(&self) -> Result<()> {
        let ns = &self.namespace;
        let artifact = Artifact::from_chart(CHART.to_vec());
        let registry = &self.test.world.registry;
        registry.push(ns, &["1.0.0"], &artifact).await?;
        let repository = objects::oci_repository(ns, "web", &registry.url(ns), "1.0.0");
        let layer = json!({"layerSelector": {
            "mediaType": CHART_MEDIA_TYPE, "operation": "copy",
        }});
        self.test.apply(&objects::with_spec(repository, layer)).await?;
        let charts = self.charts.get_or_try_init(HelmRepository::start).await?;
        self.test
            .apply(&json!({
                "apiVersion": SOURCE, "kind": "HelmRepository", "metadata": {"name": "charts", "namespace": ns},
                "spec": {"url": charts.url(), "interval": "1h"},
            }))
            .await?;
        self.test
            .apply(&json!({
                "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", "namespace": ns},
                "data": {"values.yaml": "replicas: 2\n"},
            }))
            .await
    }

    /// A HelmRelease of the scene.
    fn release(&self, name: &str, spec: Value) -> Value {
        let object = json!({
            "apiVersion": HELM, "kind": "HelmRelease",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {SHARD: self.namespace}},
            "spec": {"interval": "1h", "timeout": "1m"},
        });
        let mut spec = spec;
        if spec.get("chart").is_none() {
            spec["chartRef"] = json!({"kind": "OCIRepository", "name": "web"});
        }
        objects::with_spec(object, spec)
    }

    /// Makes the HelmReleases, and has each brought into its state by whoever looks at them.
    pub async fn releases(&self) -> Result<()> {
        let patch = json!([{"op": "replace", "path": "/data/value", "value": "patched"}]).to_string();
        let full = json!({
            "values": {"value": "flux", "hooks": true}, "valuesFrom": [{"kind": "ConfigMap", "name": "values"}],
            "test": {"enable": true}, "driftDetection": {"mode": "enabled"},
            "commonMetadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "postRenderers": [{"kustomize": {"patches": [{"patch": patch, "target": {"kind": "ConfigMap"}}]}}],
        });
        let source = json!({"kind": "HelmRepository", "name": "charts"});
        let remediation = json!({"remediation": {"retries": 0, "remediateLastFailure": true}});
        let all = [
            ("full", full),
            (
                "made",
                json!({"chart": {"spec": {"chart": "app", "version": "1.0.0", "sourceRef": source}}}),
            ),
            (
                "placed",
                json!({
                    "releaseName": "shop", "targetNamespace": self.elsewhere(), "storageNamespace": self.namespace,
                }),
            ),
            (
                "failed",
                json!({"values": {"value": "good"}, "upgrade": remediation}),
            ),
            ("broken", json!({"values": {"broken": true}})),
            ("suspended", json!({})),
        ];
        for (name, spec) in all {
            self.test.apply(&self.release(name, spec)).await?;
        }
        for name in RELEASES {
            self.settled(name).await?;
        }
        self.change("full", json!({"values": {"value": "second"}}))
            .await?;
        self.change("failed", json!({"values": {"value": "bad", "broken": true}}))
            .await?;
        self.change("suspended", json!({"suspend": true})).await?;
        self.ready_at("full", 2).await?;
        self.settled("failed").await.map(drop)
    }

    /// Changes the spec of a HelmRelease.
    pub async fn change(&self, name: &str, spec: Value) -> Result<()> {
        let patch = Patch::Merge(json!({"spec": spec}));
        let releases = self.api("HelmRelease");
        releases.patch(name, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Waits until a HelmRelease is ready.
    pub async fn ready(&self, name: &str) -> Result<DynamicObject> {
        wait_for(&self.api("HelmRelease"), name, is_ready, PATIENCE).await
    }

    /// Waits until a HelmRelease is ready at a revision.
    pub async fn ready_at(&self, name: &str, version: i64) -> Result<DynamicObject> {
        let there = move |object: &DynamicObject| {
            is_ready(object) && newest(object)["version"].as_i64() == Some(version)
        };
        wait_for(&self.api("HelmRelease"), name, there, PATIENCE).await
    }

    /// Waits until nothing more is done for a HelmRelease.
    async fn settled(&self, name: &str) -> Result<DynamicObject> {
        let settled = |object: &DynamicObject| {
            let is_stalled = condition(object, "Stalled").is_some_and(|(status, ..)| status == "True");
            let is_observed = object.data.pointer("/status/observedGeneration")
                == object.metadata.generation.map(Value::from).as_ref();
            is_ready(object) || (is_stalled && is_observed)
        };
        wait_for(&self.api("HelmRelease"), name, settled, PATIENCE).await
    }

    /// Asks for a reconcile of all, and waits until it was done.
    pub async fn poke_all(&self, names: &[&str]) -> Result<()> {
        let releases = self.api("HelmRelease");
        for name in names.iter().filter(|name| !UNTOUCHED.contains(name)) {
            let token = objects::poke(&releases, name).await?;
            let handled = |object: &DynamicObject| {
                text(object, "/status/lastHandledReconcileAt") == token
                    && condition(object, "Reconciling").is_none()
            };
            wait_for(&releases, name, handled, PATIENCE).await?;
        }
        Ok(())
    }

    /// Deletes HelmReleases, and fails if something of a release stays but of those that are suspended.
    pub async fn delete(&self, names: &[&str]) -> Result<()> {
        let releases = self.api("HelmRelease");
        for name in names {
            releases.delete(name, &DeleteParams::default()).await?;
            wait_until_gone(&releases, name, PATIENCE).await?;
        }
        let records = self.secrets().await?;
        ensure!(records == ["sh.helm.release.v1.suspended.v1"], "{records:?}");
        let maps = self.api("ConfigMap").list(&ListParams::default()).await?;
        let maps: Vec<_> = maps
            .iter()
            .filter_map(|map| map.metadata.name.as_deref())
            .collect();
        ensure!(
            maps == ["kube-root-ca.crt", "suspended-map", "values"],
            "{maps:?}"
        );
        Ok(())
    }

    /// Helm's records.
    async fn secrets(&self) -> Result<Vec<String>> {
        let secrets: Api<Secret> = Api::namespaced(self.test.client.clone(), &self.namespace);
        let found = secrets
            .list_metadata(&ListParams::default().labels("owner=helm"))
            .await?;
        Ok(found
            .into_iter()
            .filter_map(|secret| secret.metadata.name)
            .collect())
    }

    /// Reads all that a controller may touch.
    pub async fn seen(&self) -> Result<Seen> {
        let mut seen = Seen::default();
        for release in self.api("HelmRelease").list(&ListParams::default()).await? {
            let name = release.metadata.name.clone().context("it has a name")?;
            seen.releases.insert(name, serde_json::to_value(&release)?);
        }
        for (version, kind) in [
            ("v1", "ConfigMap"),
            ("v1", "Secret"),
            ("v1", "ServiceAccount"),
            ("apps/v1", "Deployment"),
            (SOURCE, "HelmChart"),
        ] {
            for namespace in [self.namespace.clone(), self.elsewhere()] {
                let api = objects::api(&self.test.client, version, kind, &namespace);
                for object in api.list(&ListParams::default()).await? {
                    let name = object.metadata.name.clone().context("it has a name")?;
                    if matches!(name.as_str(), "kube-root-ca.crt" | "default" | "values") {
                        continue;
                    }
                    let mut value = serde_json::to_value(&object)?;
                    value["apiVersion"] = json!(version);
                    value["kind"] = json!(kind);
                    seen.objects.insert(format!("{kind}/{namespace}/{name}"), value);
                }
            }
        }
        Ok(seen)
    }
}

/// Removes the parts of an object that change by themselves or by being observed.
fn settled_object(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let is_counted = metadata["generation"].is_number();
    json!({
        "uid": metadata["uid"], "generation": metadata["generation"],
        "version": if is_counted { Value::Null } else { metadata["resourceVersion"].clone() },
        "labels": metadata["labels"], "spec": object["spec"],
    })
}

fn settled_release(object: &Value) -> Value {
    let mut status = object["status"].clone();
    if let Some(status) = status.as_object_mut() {
        status.remove("lastHandledReconcileAt");
    }
    json!({"generation": object["metadata"]["generation"], "spec": object["spec"], "status": status})
}

impl Seen {
    /// The same without the times since when releases are stalled, which Flux sets anew at each look.
    pub fn without_stalls(mut self) -> Self {
        for release in self.releases.values_mut() {
            let conditions = release
                .pointer_mut("/status/conditions")
                .and_then(Value::as_array_mut);
            let stalled = conditions
                .into_iter()
                .flatten()
                .filter(|condition| condition["type"] == "Stalled");
            stalled.for_each(|condition| condition["lastTransitionTime"] = Value::Null);
        }
        self
    }

    /// Fails unless nothing was written but the answers to a request.
    pub fn ensure_same(&self, after: &Self) -> Result<()> {
        for (name, object) in &self.releases {
            let now = after.releases.get(name).context("a HelmRelease is gone")?;
            let (before, now) = (settled_release(object), settled_release(now));
            ensure!(before == now, "{name} was {before:#}\nand is {now:#}");
        }
        let names = |seen: &Self| seen.objects.keys().cloned().collect::<Vec<_>>();
        ensure!(
            names(self) == names(after),
            "{:?}\n{:?}",
            names(self),
            names(after)
        );
        for (name, object) in &self.objects {
            let (before, now) = (settled_object(object), settled_object(&after.objects[name]));
            ensure!(before == now, "{name} was {before:#}\nand is {now:#}");
        }
        Ok(())
    }

    /// Fails if a Deployment was re-created.
    pub fn ensure_same_workloads(&self, after: &Self) -> Result<()> {
        let workloads = self
            .objects
            .iter()
            .filter(|(name, _)| name.starts_with("Deployment/"));
        for (name, object) in workloads {
            let now = after.objects.get(name).context("a Deployment is gone")?;
            ensure!(object["metadata"]["uid"] == now["metadata"]["uid"], "{name}");
        }
        Ok(())
    }
}
