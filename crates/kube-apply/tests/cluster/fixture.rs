//! One engine in one namespace, with a record of its requests.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::{Api, Client};
use kube_apply::managed::Live;
use kube_apply::{
    Action, Applied, ApplyError, ApplyOptions, CommonMetadata, Drift, Engine, Inventory, Owner, Settings,
};
use manifest::{Object, Origin};
use serde_json::{Value, json};
use testkit::ControlPlane;

/// An engine, the namespace it works in, and everything it asked the server.
pub(crate) struct Fixture {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) namespace: String,
    /// A client whose requests are not recorded.
    pub(crate) client: Client,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Fixture {
    pub(crate) async fn new(purpose: &str) -> Self {
        let control_plane = ControlPlane::shared().await.unwrap();
        let namespace = control_plane.namespace(purpose).await.unwrap();
        let owner = Owner {
            namespace: "flux-system".into(),
            name: namespace.clone(),
        };
        Self::in_namespace(control_plane, owner, namespace)
    }

    fn in_namespace(control_plane: &ControlPlane, owner: Owner, namespace: String) -> Self {
        let client = control_plane.client();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let engine = Engine::new(recording(&client, Arc::clone(&requests)), Settings::default());
        Self {
            engine,
            owner,
            namespace,
            client,
            requests,
        }
    }

    /// Returns a new engine, as of a restarted or another controller: without memory.
    pub(crate) async fn another(&self, owner: &str) -> Self {
        let owner = Owner {
            name: owner.into(),
            ..self.owner.clone()
        };
        Self::in_namespace(
            ControlPlane::shared().await.unwrap(),
            owner,
            self.namespace.clone(),
        )
    }

    pub(crate) async fn try_apply(
        &self,
        objects: Vec<Object>,
        options: &ApplyOptions,
    ) -> Result<Applied, ApplyError> {
        let prepared = self
            .engine
            .prepare(&self.owner, objects, &CommonMetadata::default())
            .await?;
        self.engine.apply(prepared, options).await
    }

    /// Applies values as if each were a file of its own; returns `subject action` lines.
    pub(crate) async fn apply(&self, values: &[Value]) -> Vec<String> {
        let applied = self.try_apply(objects(values), &ApplyOptions::default()).await;
        let applied = applied.unwrap_or_else(|error| panic!("{error}"));
        self.watched(&applied).await;
        lines(&applied)
    }

    /// Waits until the watches have shown what was applied: how many requests the next step costs depends on it.
    async fn watched(&self, applied: &Applied) {
        let managed = self.engine.managed();
        let written = applied
            .changes
            .iter()
            .filter(|change| change.action != Action::Skipped);
        let seen = async {
            for change in written {
                while managed.live(&change.id) == Live::Absent {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), seen)
            .await
            .expect("the watches show what was applied");
    }

    /// Applies what the server must refuse; returns the lines of the error.
    pub(crate) async fn refusal(&self, values: &[Value]) -> Vec<String> {
        let error = self
            .try_apply(objects(values), &ApplyOptions::default())
            .await
            .unwrap_err();
        error.to_string().lines().map(str::to_owned).collect()
    }

    /// Returns what was asked since the last call, without discovery, lists and watches.
    pub(crate) fn requests(&self) -> Vec<String> {
        let all = std::mem::take(&mut *self.requests.lock().unwrap());
        all.into_iter()
            .filter(|request| !request.starts_with("LIST") && !request.starts_with("WATCH"))
            .collect()
    }

    /// Counts what was asked since the last call, all of it, by verb.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let all = std::mem::take(&mut *self.requests.lock().unwrap());
        let mut counts = BTreeMap::new();
        for request in all {
            *counts
                .entry(request.split(' ').next().unwrap().to_owned())
                .or_default() += 1;
        }
        counts
    }

    pub(crate) async fn inventory(&self, values: &[Value]) -> Inventory {
        let prepared = self
            .engine
            .prepare(&self.owner, objects(values), &CommonMetadata::default())
            .await;
        prepared.unwrap().inventory()
    }

    pub(crate) fn config_map(&self, name: &str, value: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.namespace}, "data": {"key": value}})
    }

    pub(crate) fn deployment(&self, name: &str, image: &str) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": self.namespace}, "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": image, "ports": [{"containerPort": 80}]}]}}}})
    }

    pub(crate) fn api(&self, api_version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        Api::namespaced_with(
            self.client.clone(),
            &self.namespace,
            &resource(api_version, kind, plural),
        )
    }

    pub(crate) fn config_maps(&self) -> Api<DynamicObject> {
        self.api("v1", "ConfigMap", "configmaps")
    }

    /// Makes the object look as if it had been applied long ago, because what was applied within the last seconds is
    /// not trusted by an engine that did not do it. The server ignores a change of times alone, hence the annotation.
    pub(crate) async fn age(&self, api: &Api<DynamicObject>, name: &str) {
        let metadata = api.get(name).await.unwrap().metadata;
        let mut entries = metadata.managed_fields.unwrap();
        let long_ago = "2020-01-01T00:00:00Z".parse().unwrap();
        for entry in &mut entries {
            entry.time = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(long_ago));
        }
        let mut annotations = metadata.annotations.unwrap_or_default();
        annotations.insert("example.com/aged".into(), "yes".into());
        let operations = json!([
            {"op": "add", "path": "/metadata/annotations", "value": annotations},
            {"op": "replace", "path": "/metadata/managedFields", "value": entries}]);
        let patch = Patch::<()>::Json(serde_json::from_value(operations).unwrap());
        let params = PatchParams {
            field_manager: Some("aging".into()),
            ..PatchParams::default()
        };
        api.patch(name, &params, &patch).await.unwrap();
    }

    /// Writes as kubectl does: a merge patch under a manager of its own.
    pub(crate) async fn edit(&self, api: &Api<DynamicObject>, name: &str, manager: &str, patch: Value) {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        api.patch(name, &params, &Patch::Merge(patch)).await.unwrap();
    }
}

pub(crate) fn resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.into(),
        version: version.into(),
        api_version: api_version.into(),
        kind: kind.into(),
        plural: plural.into(),
    }
}

/// Makes objects that say they come from `0.yaml:1`, `1.yaml:1` and so on.
pub(crate) fn objects(values: &[Value]) -> Vec<Object> {
    let object = |(index, value): (usize, &Value)| {
        let origin = Origin {
            file: format!("{index}.yaml").into(),
            line: 1,
        };
        Object::new(value.as_object().unwrap().clone(), Some(origin))
    };
    values.iter().enumerate().map(object).collect()
}

pub(crate) fn lines(applied: &Applied) -> Vec<String> {
    applied
        .changes
        .iter()
        .map(|c| format!("{}/{} {}", c.id.kind, c.id.name, c.action))
        .collect()
}

/// Waits for the next drift.
pub(crate) async fn next_drift(drifts: &mut (impl Stream<Item = Drift> + Unpin)) -> Drift {
    tokio::time::timeout(Duration::from_secs(10), drifts.next())
        .await
        .expect("drift within 10 s")
        .unwrap()
}

/// Passes requests on and notes each as `VERB [dry] path`.
fn recording(client: &Client, requests: Arc<Mutex<Vec<String>>>) -> Client {
    let client = client.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        requests.lock().unwrap().push(note(&request));
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, "default")
}

fn note(request: &http::Request<Body>) -> String {
    let query = request.uri().query().unwrap_or_default();
    let path = request.uri().path();
    let is_collection =
        path.rsplit('/').next().is_some_and(|last| last.ends_with('s')) && request.method() == "GET";
    let verb = match request.method().as_str() {
        "GET" if query.contains("watch=true") => "WATCH",
        "GET" if path == "/api" || path == "/apis" => "LIST",
        "GET" if is_collection => "LIST",
        "PATCH" if query.contains("dryRun=All") => "DRY",
        "PATCH" if is_apply(request) => "APPLY",
        other => other,
    };
    let name = path.rsplit('/').next().unwrap_or_default();
    format!("{verb} {name}")
}

fn is_apply(request: &http::Request<Body>) -> bool {
    let kind = request
        .headers()
        .get("content-type")
        .and_then(|v| v.to_str().ok());
    let query = request.uri().query().unwrap_or_default();
    kind == Some("application/apply-patch+yaml")
        && query.contains("force=true")
        && query.contains("fieldManager=kustomize-controller")
}
