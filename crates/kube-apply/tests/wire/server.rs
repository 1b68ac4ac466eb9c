//! An API server that knows ConfigMaps and Deployments, stores nothing, and does what a test tells it to.

use std::sync::{Arc, Mutex};

use http::{Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use kube_apply::{Applied, ApplyError, ApplyOptions, CommonMetadata, Engine, Owner, Settings};
use manifest::Object;
use serde_json::{Value, json};

/// Fault for a request instead of the usual answer.
pub(crate) enum Fate {
    Answer(StatusCode, Value),
    ConnectionLost,
    Silence,
}

type Script = Box<dyn Fn(&str) -> Option<Fate> + Send + Sync>;

#[derive(Clone, Default)]
pub(crate) struct Server {
    log: Arc<Mutex<Vec<String>>>,
    accepts: Arc<Mutex<Vec<String>>>,
    script: Arc<Mutex<Option<Script>>>,
}

impl Server {
    /// Lets `script` decide about requests, noted as `VERB name`, that it has an answer for.
    pub(crate) fn scripted(script: impl Fn(&str) -> Option<Fate> + Send + Sync + 'static) -> Self {
        let server = Self::default();
        *server.script.lock().unwrap() = Some(Box::new(script));
        server
    }

    pub(crate) fn engine(&self) -> Engine {
        self.engine_with(Settings::default())
    }

    pub(crate) fn engine_with(&self, settings: Settings) -> Engine {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            let request = request.map(drop);
            async move { server.answer(&request).await }
        });
        Engine::new(Client::new(service, "default"), settings)
    }

    /// Returns what was asked since the last call.
    pub(crate) fn log(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock().unwrap())
    }

    /// Returns the Accept headers of writes since the last call.
    pub(crate) fn accepts(&self) -> Vec<String> {
        std::mem::take(&mut *self.accepts.lock().unwrap())
    }

    async fn answer(&self, request: &Request<()>) -> Result<Response<Body>, std::io::Error> {
        let note = note(request);
        self.log.lock().unwrap().push(note.clone());
        if request.method() == "PATCH" {
            let accept = request.headers()["accept"].to_str().unwrap().to_owned();
            self.accepts.lock().unwrap().push(accept);
        }
        let fate = self
            .script
            .lock()
            .unwrap()
            .as_ref()
            .and_then(|script| script(&note));
        match fate {
            None if query_of(request).contains("sendInitialEvents=true") => {
                let message =
                    "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled";
                let Some(Fate::Answer(code, status)) = refuse(422, "Invalid", message) else {
                    unreachable!()
                };
                Ok(respond(code, &status))
            }
            None if note.starts_with("WATCH") => std::future::pending().await,
            None => Ok(respond(StatusCode::OK, &usual(request))),
            Some(Fate::Answer(code, value)) => Ok(respond(code, &value)),
            Some(Fate::ConnectionLost) => Err(std::io::Error::other("connection lost")),
            Some(Fate::Silence) => std::future::pending().await,
        }
    }
}

fn query_of(request: &Request<()>) -> &str {
    request.uri().query().unwrap_or_default()
}

/// A refusal as Kubernetes words it.
pub(crate) fn refuse(code: u16, reason: &str, message: &str) -> Option<Fate> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": message});
    Some(Fate::Answer(StatusCode::from_u16(code).unwrap(), status))
}

fn respond(code: StatusCode, value: &Value) -> Response<Body> {
    Response::builder()
        .status(code)
        .body(Body::from(serde_json::to_vec(value).unwrap()))
        .unwrap()
}

fn note(request: &Request<()>) -> String {
    let query = request.uri().query().unwrap_or_default();
    let name = request.uri().path().rsplit('/').next().unwrap_or_default();
    let verb = match request.method().as_str() {
        "GET" if query.contains("watch=true") => "WATCH",
        "PATCH" if query.contains("dryRun=All") => "DRY",
        "PATCH" => "APPLY",
        other => other,
    };
    format!("{verb} {name}")
}

fn usual(request: &Request<()>) -> Value {
    let resource = |plural: &str, kind: &str| json!({"resource": plural, "responseKind": {"group": "", "version": "", "kind": kind}, "scope": "Namespaced", "verbs": ["list", "watch"]});
    match request.uri().path() {
        "/apis" => {
            json!({"items": [{"metadata": {"name": "apps"}, "versions": [{"version": "v1", "resources": [resource("deployments", "Deployment")]}]}]})
        }
        "/api" => {
            json!({"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": [resource("configmaps", "ConfigMap")]}]}]})
        }
        _ if request.method() == "PATCH" => applied(request),
        _ => json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}),
    }
}

/// The answer to an apply of a new object.
fn applied(request: &Request<()>) -> Value {
    let name = request.uri().path().rsplit('/').next().unwrap();
    let is_dry = request.uri().query().unwrap_or_default().contains("dryRun=All");
    let version = if is_dry { Value::Null } else { json!("2") };
    json!({"metadata": {"name": name, "namespace": "default", "resourceVersion": version,
        "labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
        "managedFields": [{"manager": "kustomize-controller", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {}}]},
        "data": {"key": "value"}})
}

pub(crate) fn owner() -> Owner {
    Owner {
        namespace: "flux-system".into(),
        name: "apps".into(),
    }
}

pub(crate) fn object(api_version: &str, kind: &str, name: &str) -> Object {
    let value =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}});
    Object::new(value.as_object().unwrap().clone(), None)
}

/// Prepares and applies ConfigMaps of these names.
pub(crate) async fn apply(
    engine: &Engine,
    names: &[&str],
    options: &ApplyOptions,
) -> Result<Applied, ApplyError> {
    let objects = names.iter().map(|name| object("v1", "ConfigMap", name)).collect();
    let prepared = engine
        .prepare(&owner(), objects, &CommonMetadata::default())
        .await?;
    engine.apply(prepared, options).await
}
