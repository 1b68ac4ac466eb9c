//! An API server in the same process: lists and watches that the test fills, and a log of requests.
//!
//! No sockets, so that tests can run on tokio's paused clock.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};

use axum::body::{Body, Bytes};
use futures::StreamExt;
use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use kube::Client;
use kube::core::ApiResource;
use kube_health::{Resolve, ResolveError, Resolved};
use manifest::GroupVersionKind;
use serde_json::{Value, json};
use tokio::sync::Notify;

/// The server. Clones are the same server.
#[derive(Clone, Default)]
pub(crate) struct FakeApi {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    /// Answers of lists, by path.
    objects: HashMap<String, Vec<Value>>,
    /// Status codes with which paths refuse requests.
    refusals: HashMap<String, u16>,
    /// Paths that are not answered.
    hanging: HashSet<String>,
    /// Open watches, by path.
    watches: HashMap<String, Vec<UnboundedSender<Value>>>,
    log: Vec<String>,
    version: u64,
}

impl FakeApi {
    pub(crate) fn client(&self) -> Client {
        let api = self.clone();
        let service = tower::service_fn(move |request: Request<kube::client::Body>| {
            let api = api.clone();
            let hangs = api.state.lock().unwrap().hanging.contains(request.uri().path());
            async move {
                if hangs {
                    futures::future::pending::<()>().await;
                }
                Ok::<_, std::convert::Infallible>(api.answer(&request))
            }
        });
        Client::new(service, "default")
    }

    /// Creates or changes an object: lists return it, and open watches on `path` hear of it.
    pub(crate) fn put(&self, path: &str, mut object: Value) -> Value {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        object["metadata"]["resourceVersion"] = json!(state.version.to_string());
        let name = object["metadata"]["name"].clone();
        let objects = state.objects.entry(path.to_owned()).or_default();
        let known = objects.iter().position(|other| other["metadata"]["name"] == name);
        match known {
            Some(index) => objects[index] = object.clone(),
            None => objects.push(object.clone()),
        }
        let kind = if known.is_some() { "MODIFIED" } else { "ADDED" };
        state.send(path, json!({"type": kind, "object": object.clone()}));
        object
    }

    /// Deletes an object.
    pub(crate) fn delete(&self, path: &str, name: &str) {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let version = state.version.to_string();
        let objects = state.objects.entry(path.to_owned()).or_default();
        let index = objects
            .iter()
            .position(|object| object["metadata"]["name"] == name)
            .unwrap();
        let mut object = objects.remove(index);
        object["metadata"]["resourceVersion"] = json!(version);
        state.send(path, json!({"type": "DELETED", "object": object}));
    }

    /// Sends an event that the lists know nothing of.
    pub(crate) fn send(&self, path: &str, event: Value) {
        self.state.lock().unwrap().send(path, event);
    }

    /// Ends all watches on a path with "too old resource version".
    pub(crate) fn expire(&self, path: &str) {
        let mut state = self.state.lock().unwrap();
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
            "reason": "Expired", "message": "too old resource version"});
        state.send(path, json!({"type": "ERROR", "object": status}));
        state.watches.remove(path);
    }

    /// Cuts all watches on a path.
    pub(crate) fn cut(&self, path: &str) {
        self.state.lock().unwrap().watches.remove(path);
    }

    /// Answers every request for a path with an error; with 0, no more.
    pub(crate) fn refuse(&self, path: &str, code: u16) {
        self.state.lock().unwrap().refusals.insert(path.to_owned(), code);
    }

    /// Answers no request for a path any more.
    pub(crate) fn hang(&self, path: &str) {
        self.state.lock().unwrap().hanging.insert(path.to_owned());
    }

    /// Returns the requests so far: `list /path?query` or `watch …` or `get …`.
    pub(crate) fn log(&self) -> Vec<String> {
        self.state.lock().unwrap().log.clone()
    }

    pub(crate) fn requests(&self, prefix: &str) -> usize {
        self.log().iter().filter(|line| line.starts_with(prefix)).count()
    }

    /// Comes back when so many requests that start with `prefix` have been made.
    pub(crate) async fn has_served(&self, prefix: &str, count: usize) {
        while self.requests(prefix) < count {
            self.changed.notified().await;
        }
    }

    fn answer(&self, request: &Request<kube::client::Body>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        let query = request.uri().query().unwrap_or_default().to_owned();
        let mut state = self.state.lock().unwrap();
        let watching = query.contains("watch=true");
        let lists = is_list(&path);
        let verb = if watching {
            "watch"
        } else if lists {
            "list"
        } else {
            "get"
        };
        state.log.push(format!("{verb} {path}?{query}"));
        self.changed.notify_one();
        match state.refusals.get(&path) {
            Some(code) if *code != 0 => return failure(*code, &path),
            _ => {}
        }
        if watching {
            let (sender, receiver) = unbounded();
            state.watches.entry(path).or_default().push(sender);
            return stream(receiver);
        }
        let objects = state.objects.get(&path).cloned();
        if lists {
            let version = state.version.max(1).to_string();
            // As the API server does, without the types of the items.
            let items: Vec<Value> = objects
                .unwrap_or_default()
                .into_iter()
                .map(without_types)
                .collect();
            return answer(
                200,
                &json!({"kind": "List", "apiVersion": "v1",
                "metadata": {"resourceVersion": version}, "items": items}),
            );
        }
        let (collection, name) = path.rsplit_once('/').unwrap();
        let found = state
            .objects
            .get(collection)
            .into_iter()
            .flatten()
            .find(|o| o["metadata"]["name"] == name);
        found.map_or_else(|| failure(404, &path), |object| answer(200, object))
    }
}

impl State {
    fn send(&mut self, path: &str, event: Value) {
        for watch in self.watches.get(path).into_iter().flatten() {
            // A watch that was closed is not an error.
            let _ = watch.unbounded_send(event.clone());
        }
    }
}

/// Collections have plural names, and these tests' objects do not end in "s".
fn is_list(path: &str) -> bool {
    path.ends_with('s')
}

fn without_types(mut object: Value) -> Value {
    let map = object.as_object_mut().unwrap();
    map.remove("apiVersion");
    map.remove("kind");
    object
}

fn stream(receiver: UnboundedReceiver<Value>) -> Response<Body> {
    let lines = receiver.map(|event| Ok::<_, std::convert::Infallible>(Bytes::from(format!("{event}\n"))));
    Response::new(Body::from_stream(lines))
}

fn answer(code: u16, body: &Value) -> Response<Body> {
    let response = Response::builder().status(StatusCode::from_u16(code).unwrap());
    response
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .unwrap()
}

fn failure(code: u16, path: &str) -> Response<Body> {
    answer(
        code,
        &json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
            "reason": "Forbidden", "message": format!("user cannot use {path}")}),
    )
}

/// Resolves what these tests use by rule, and learns nothing from the server.
pub(crate) struct ByRule;

impl Resolve for ByRule {
    fn resolve<'a>(&'a self, gvk: &'a GroupVersionKind) -> BoxFuture<'a, Result<Resolved, ResolveError>> {
        let kube_gvk = kube::core::GroupVersionKind::gvk(&gvk.group, &gvk.version, &gvk.kind);
        let resource = ApiResource::from_gvk(&kube_gvk);
        let namespaced = !matches!(gvk.kind.as_str(), "Namespace" | "CustomResourceDefinition");
        Box::pin(async move { Ok(Resolved { resource, namespaced }) })
    }
}
