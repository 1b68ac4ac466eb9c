//! The watches of a cluster that fill the picture.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use delivery_graph::kind::{self, Kind};
use futures::StreamExt as _;
use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;
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

/// What may not be watched is asked for so often.
const FORBIDDEN: Duration = Duration::from_secs(600);

/// How much of a cluster is watched.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach {
    /// Namespaces; all if none is named.
    pub namespaces: Vec<String>,
    /// Whether a kind that may not be listed is passed over, as someone's own client has it. Otherwise its cluster is away: whoever
    /// set the watches up has to give the right.
    pub skips_refused: bool,
}

impl Reach {
    /// An empty namespace stands for all.
    fn namespaces(&self) -> Vec<&str> {
        match self.namespaces.as_slice() {
            [] => vec![""],
            some => some.iter().map(String::as_str).collect(),
        }
    }
}

/// Watches all kinds of Flux and Windlass within a reach of a cluster, until it is dropped. A cluster that is away is tried again.
pub async fn fill(picture: &Picture, cluster: &Arc<str>, client: &Client, reach: &Reach) {
    let namespaces = reach.namespaces();
    let in_each = |kind: &'static Kind| namespaces.iter().map(move |namespace| (kind, *namespace));
    let parts: Vec<_> = kind::ALL.iter().flat_map(in_each).collect();
    picture.expect(cluster, parts.iter().copied());
    let offsets = (0..).map(|index| SPREAD * index);
    let watches = parts.into_iter().zip(offsets);
    let watches = watches.map(|(part, offset)| one(picture, cluster, client, part, reach, offset));
    join_all(watches).await;
}

/// Watches a kind. After a failure it is listed anew: a watch that goes on where it was tells nothing until something changes,
/// so that nobody would know that the cluster is there again.
async fn one(
    picture: &Picture,
    cluster: &Arc<str>,
    client: &Client,
    (kind, namespace): (&'static Kind, &str),
    reach: &Reach,
    offset: Duration,
) {
    let api: Api<DynamicObject> = match namespace {
        "" => Api::all_with(client.clone(), &kind.resource()),
        one => Api::namespaced_with(client.clone(), one, &kind.resource()),
    };
    let key = |object: &DynamicObject| {
        let namespace = object.namespace().unwrap_or_default();
        Key::new(cluster, kind, &namespace, &object.name_any())
    };
    let mut pause = FIRST_PAUSE;
    loop {
        let tell = |told| match told {
            Told::There(object) => put(picture, cluster, kind, object),
            Told::Gone(object) => picture.remove(&key(&object)),
            Told::Listed(found) => picture.listed(cluster, kind, namespace, &found),
        };
        match until_it_fails(&api, &mut pause, key, tell).await {
            Some(error) if is_not_served(&error) => {
                picture.not_served(cluster, kind, namespace);
                pause = NOT_SERVED;
            }
            Some(error) if reach.skips_refused && is_forbidden(&error) => {
                picture.refused(cluster, kind, namespace);
                pause = FORBIDDEN;
            }
            Some(error) => {
                let problem = format!("{} cannot be watched", kind.plural);
                let is_new = picture.failing(cluster, kind, namespace, problem);
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

/// Watches the Pods within a reach of a cluster, until it is dropped. A cluster that does not let us is asked again now and then.
pub async fn fill_running(running: &Running, cluster: &Arc<str>, client: &Client, reach: &Reach) {
    let namespaces = reach.namespaces();
    let watches = namespaces.iter().map(|namespace| {
        running.failing(cluster, namespace);
        pods(running, cluster, client, namespace)
    });
    join_all(watches).await;
}

async fn pods(running: &Running, cluster: &Arc<str>, client: &Client, namespace: &str) {
    let api: Api<Pod> = match namespace {
        "" => Api::all(client.clone()),
        one => Api::namespaced(client.clone(), one),
    };
    let mut pause = FIRST_PAUSE;
    let mut was_told = false;
    loop {
        let tell = |told| match told {
            Told::There(pod) => running.put(cluster, &pod),
            Told::Gone(pod) => running.remove(cluster, &pod),
            Told::Listed(found) => running.listed(cluster, namespace, &found),
        };
        let failed = until_it_fails(&api, &mut pause, running::place, tell).await;
        running.failing(cluster, namespace);
        if let Some(error) = failed {
            if !std::mem::replace(&mut was_told, pause > FIRST_PAUSE) {
                tracing::warn!(cluster = &**cluster, %error, "pods cannot be watched: what runs is not known");
            }
            if is_forbidden(&error) {
                pause = FORBIDDEN;
            }
        }
        tokio::time::sleep(pause).await; // until the cluster may be there again
        pause = (2 * pause).min(LAST_PAUSE.max(pause));
    }
}

/// What a watch tells.
enum Told<K, I> {
    /// An object is there, or has changed.
    There(K),
    /// It is gone.
    Gone(K),
    /// A list is complete, and had these.
    Listed(HashSet<I>),
}

/// Watches until that fails.
async fn until_it_fails<K, I>(
    api: &Api<K>,
    pause: &mut Duration,
    id: impl Fn(&K) -> I,
    tell: impl Fn(Told<K, I>),
) -> Option<watcher::Error>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    I: Eq + Hash,
{
    let events = watcher(api.clone(), watcher::Config::default());
    futures::pin_mut!(events);
    let mut found = HashSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::Init) => found.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                found.insert(id(&object));
                tell(Told::There(object));
            }
            Ok(watcher::Event::InitDone) => {
                tell(Told::Listed(std::mem::take(&mut found)));
                *pause = FIRST_PAUSE;
            }
            Ok(watcher::Event::Apply(object)) => tell(Told::There(object)),
            Ok(watcher::Event::Delete(object)) => tell(Told::Gone(object)),
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
