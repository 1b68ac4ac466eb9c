//! The watches of a cluster that fill the picture.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use delivery_graph::kind::{self, Kind};
use futures::StreamExt as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde_json::Value;

use crate::picture::Picture;
use crate::row::Key;
use crate::running::{self, Running};

/// kubectl keeps the whole manifest here; no one but kubectl reads it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A watch that failed is begun anew after so long, at first and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LAST_PAUSE: Duration = Duration::from_secs(15);
/// Kinds are asked for anew one after the other.
const SPREAD: Duration = Duration::from_millis(20);
/// A kind that is not installed is asked for so often.
const NOT_SERVED: Duration = Duration::from_secs(60);

/// Pods that may not be watched are asked for so often.
const FORBIDDEN: Duration = Duration::from_secs(600);

/// Watches all kinds of Flux and Windlass in a cluster, until it is dropped. A cluster that is away is tried again.
pub async fn fill(picture: &Picture, cluster: Arc<str>, client: Client) {
    picture.expect(&cluster, &kind::ALL);
    let offsets = (0..).map(|index| SPREAD * index);
    let watches = kind::ALL.iter().zip(offsets);
    let watches = watches.map(|(kind, offset)| one(picture, &cluster, &client, kind, offset));
    join_all(watches).await;
}

/// Watches a kind. After a failure it is listed anew: a watch that goes on where it was tells nothing until something changes,
/// so that nobody would know that the cluster is there again.
async fn one(picture: &Picture, cluster: &Arc<str>, client: &Client, kind: &'static Kind, offset: Duration) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource());
    let mut pause = FIRST_PAUSE;
    loop {
        let failed = until_it_fails(picture, cluster, &api, kind, &mut pause).await;
        match failed {
            // A kind that is not installed has no objects; it may be some day.
            Some(error) if is_not_served(&error) => {
                picture.listed(cluster, kind, &HashSet::new());
                pause = NOT_SERVED;
            }
            Some(error) => {
                let is_new = picture.failing(cluster, kind, format!("{} cannot be watched", kind.plural));
                // Callers need not know who the console is; the log says it, once.
                let kind = is_new.then_some(kind.plural);
                kind.inspect(|kind| tracing::warn!(cluster = &**cluster, %error, "{kind} cannot be watched"));
            }
            None => {}
        }
        tokio::time::sleep(pause + offset).await; // until the cluster may be there again
        pause = (2 * pause).min(LAST_PAUSE.max(pause));
    }
}

/// Watches a kind until that fails.
async fn until_it_fails(
    picture: &Picture,
    cluster: &Arc<str>,
    api: &Api<DynamicObject>,
    kind: &'static Kind,
    pause: &mut Duration,
) -> Option<watcher::Error> {
    let events = watcher(api.clone(), watcher::Config::default());
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
                *pause = FIRST_PAUSE;
            }
            Ok(watcher::Event::Apply(object)) => put(picture, cluster, kind, object),
            Ok(watcher::Event::Delete(object)) => picture.remove(&key(&object)),
            Err(error) => return Some(error),
        }
    }
    None
}

/// Watches the Pods of a cluster, until it is dropped. A cluster that does not let us is asked again now and then.
pub async fn fill_running(running: &Running, cluster: Arc<str>, client: Client) {
    let api: Api<Pod> = Api::all(client);
    let mut pause = FIRST_PAUSE;
    let mut was_told = false;
    loop {
        let failed = pods_until_it_fails(running, &cluster, &api, &mut pause).await;
        running.failing(&cluster);
        if let Some(error) = failed {
            if !std::mem::replace(&mut was_told, pause > FIRST_PAUSE) {
                tracing::warn!(cluster = &*cluster, %error, "pods cannot be watched: what runs is not known");
            }
            if is_forbidden(&error) {
                pause = FORBIDDEN;
            }
        }
        tokio::time::sleep(pause).await; // until the cluster may be there again
        pause = (2 * pause).min(LAST_PAUSE.max(pause));
    }
}

async fn pods_until_it_fails(
    running: &Running,
    cluster: &Arc<str>,
    api: &Api<Pod>,
    pause: &mut Duration,
) -> Option<watcher::Error> {
    let events = watcher(api.clone(), watcher::Config::default());
    futures::pin_mut!(events);
    let mut found = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => found.clear(),
            Ok(watcher::Event::InitApply(pod)) => {
                found.insert(running::place(&pod));
                running.put(cluster, &pod);
            }
            Ok(watcher::Event::InitDone) => {
                running.listed(cluster, &found);
                found = HashSet::new();
                *pause = FIRST_PAUSE;
            }
            Ok(watcher::Event::Apply(pod)) => running.put(cluster, &pod),
            Ok(watcher::Event::Delete(pod)) => running.remove(cluster, &pod),
            Err(error) => return Some(error),
        }
    }
    None
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

/// Returns whether a watch failed because its kind is not installed.
pub fn is_not_served(error: &watcher::Error) -> bool {
    code(error) == Some(404)
}

fn is_forbidden(error: &watcher::Error) -> bool {
    code(error) == Some(403)
}

/// The API server's answer.
fn code(error: &watcher::Error) -> Option<u16> {
    use watcher::Error::{InitialListFailed, WatchFailed, WatchStartFailed};
    let (InitialListFailed(answer) | WatchStartFailed(answer) | WatchFailed(answer)) = error else {
        return None;
    };
    match answer {
        kube::Error::Api(status) => Some(status.code),
        _ => None,
    }
}
