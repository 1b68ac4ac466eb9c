//! The watches of a cluster that fill the picture.

use std::collections::HashSet;
use std::sync::Arc;

use delivery_graph::kind::{self, Kind};
use futures::StreamExt as _;
use futures::future::join_all;
use kube::api::{Api, DynamicObject};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::picture::Picture;
use crate::row::Key;

/// kubectl keeps the whole manifest here; no one but kubectl reads it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Watches all kinds of Flux and Windlass in a cluster, until it is dropped. A cluster that is away is tried again.
pub async fn fill(picture: &Picture, cluster: Arc<str>, client: Client) {
    picture.expect(&cluster, &kind::ALL);
    let watches = kind::ALL.iter().map(|kind| one(picture, &cluster, &client, kind));
    join_all(watches).await;
}

async fn one(picture: &Picture, cluster: &Arc<str>, client: &Client, kind: &'static Kind) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    let events = watcher(api, watcher::Config::default()).default_backoff();
    futures::pin_mut!(events);
    let mut found = HashSet::new();
    let key = |object: &DynamicObject| {
        let namespace = object.namespace().unwrap_or_default();
        Key::new(cluster, kind, &namespace, &object.name_any())
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => found.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                found.insert(key(&object));
                put(picture, cluster, kind, object);
            }
            Ok(watcher::Event::InitDone) => {
                picture.listed(cluster, kind, &found);
                found = HashSet::new();
            }
            Ok(watcher::Event::Apply(object)) => {
                picture.healthy(cluster, kind);
                put(picture, cluster, kind, object);
            }
            Ok(watcher::Event::Delete(object)) => picture.remove(&key(&object)),
            // A kind that is not installed has no objects; it is asked for again.
            Err(error) if is_not_served(&error) => picture.listed(cluster, kind, &HashSet::new()),
            Err(error) => {
                // Callers need not know who the console is; the log says it, once.
                if picture.failing(cluster, kind, format!("{} cannot be watched", kind.plural)) {
                    tracing::warn!(cluster = &**cluster, %error, "{} cannot be watched", kind.plural);
                }
            }
        }
    }
}

fn put(picture: &Picture, cluster: &Arc<str>, kind: &'static Kind, mut object: DynamicObject) {
    object.metadata.managed_fields = None;
    object.annotations_mut().remove(LAST_APPLIED);
    // Objects of a list do not say what they are.
    object.types = Some(kube::core::TypeMeta {
        api_version: format!("{}/{}", kind.group, kind.version),
        kind: kind.kind.to_owned(),
    });
    let value = serde_json::to_value(&object).unwrap_or(Value::Null);
    picture.put(cluster, kind, &value);
}

fn is_not_served(error: &watcher::Error) -> bool {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    let (InitialListFailed(answer) | WatchStartFailed(answer) | WatchFailed(answer)) = error else {
        return false;
    };
    matches!(answer, kube::Error::Api(status) if status.code == 404)
}
