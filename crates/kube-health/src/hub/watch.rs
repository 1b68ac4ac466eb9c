//! One watch and those who are interested in it.
//!
//! A task follows the stream, reduces each object to what a wait needs to know, and wakes the waits that asked for
//! that object. Gone versions, lost connections and kinds that are not served yet are retried with backoff; a refusal
//! ends the watch.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::{ApiResource, DynamicObject, Selector, TypeMeta};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use manifest::{GroupVersionKind, ObjectId};
use serde_json::Value;
use tokio::sync::{Notify, watch};

use super::HubRef;
use crate::kinds;
use crate::resolve::{Resolve, Resolved};
use crate::text::one_line;
use crate::verdict::{BuiltIn, Rule, Status};
use crate::wait::{Reading, Seen};

/// Wait between attempts to resolve a kind: doubled from the first to the second.
const RESOLVE_BACKOFF: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(10));
/// Objects per page of a list: a page is all that is held of whole objects.
const PAGE_SIZE: u32 = 250;
/// Characters of an error that are kept.
const TROUBLE_LIMIT: usize = 300;

/// What a watch is on. Empty fields select everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    gvk: GroupVersionKind,
    namespace: String,
    labels: String,
    name: String,
}

impl WatchKey {
    /// All objects of a kind that carry a label.
    pub(super) fn labelled(gvk: GroupVersionKind, label: &str) -> Self {
        Self {
            gvk,
            namespace: String::new(),
            labels: label.to_owned(),
            name: String::new(),
        }
    }

    /// One object.
    pub(super) fn named(gvk: GroupVersionKind, namespace: &str, name: &str) -> Self {
        Self {
            gvk,
            namespace: namespace.to_owned(),
            labels: String::new(),
            name: name.to_owned(),
        }
    }

    /// The Pods of a workload.
    pub(super) fn pods(namespace: &str, selector: &str) -> Self {
        let gvk = super::pod();
        Self {
            gvk,
            namespace: namespace.to_owned(),
            labels: selector.to_owned(),
            name: String::new(),
        }
    }

    fn config(&self) -> watcher::Config {
        let mut config = watcher::Config::default().page_size(PAGE_SIZE);
        if !self.labels.is_empty() {
            config = config.labels(&self.labels);
        }
        if !self.name.is_empty() {
            config = config.fields(&format!("metadata.name={}", self.name));
        }
        config
    }
}

/// An object within a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ObjectKey {
    namespace: String,
    name: String,
}

impl ObjectKey {
    pub(super) fn of(id: &ObjectId) -> Self {
        Self {
            namespace: id.namespace.clone(),
            name: id.name.clone(),
        }
    }
}

/// A watch as its subscribers see it.
pub(super) struct SharedWatch {
    key: WatchKey,
    state: Mutex<State>,
    subscribers: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    objects: HashMap<ObjectKey, Seen>,
    /// Lists that were begun, and the last one that was completed.
    lists_begun: u64,
    list_completed: u64,
    /// The newest resource version of any object so far.
    newest: u64,
    /// Set for objects of the cluster scope: their keys have no namespace, whatever the target said.
    cluster_scope: bool,
    trouble: Option<String>,
    refused: Option<String>,
    /// Who is to be woken for an object; under None, who is to be woken for all.
    interests: HashMap<Option<ObjectKey>, Vec<Arc<Notify>>>,
}

impl State {
    fn wake(&self, object: &ObjectKey) {
        let specific = self.interests.get(&Some(object.clone()));
        let general = self.interests.get(&None);
        specific
            .into_iter()
            .chain(general)
            .flatten()
            .for_each(|news| news.notify_one());
    }

    fn wake_all(&self) {
        self.interests
            .values()
            .flatten()
            .for_each(|news| news.notify_one());
    }
}

impl SharedWatch {
    pub(super) fn new(key: WatchKey) -> Self {
        Self {
            key,
            state: Mutex::default(),
            subscribers: watch::Sender::new(0),
        }
    }

    pub(super) fn key(&self) -> &WatchKey {
        &self.key
    }

    pub(super) fn subscribers(&self) -> usize {
        *self.subscribers.borrow()
    }

    /// Registers interest in one object, or in all.
    pub(super) fn subscribe(self: &Arc<Self>, object: Option<ObjectKey>, news: &Arc<Notify>) -> Subscription {
        self.subscribers.send_modify(|count| *count += 1);
        let mut state = self.lock();
        state
            .interests
            .entry(object.clone())
            .or_default()
            .push(Arc::clone(news));
        let lists_begun = state.lists_begun;
        drop(state);
        Subscription {
            watch: Arc::clone(self),
            object,
            news: Arc::clone(news),
            lists_begun,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Comes to an end when there have been no subscribers for `linger`.
    async fn unused_for(&self, linger: Duration) {
        let mut subscribers = self.subscribers.subscribe();
        loop {
            // The sender lives in self, so neither wait can fail.
            let _ = subscribers.wait_for(|count| *count == 0).await;
            let used = subscribers.wait_for(|count| *count > 0);
            if tokio::time::timeout(linger, used).await.is_err() {
                return;
            }
        }
    }
}

/// One wait's interest in one watch; ends when it is dropped.
pub(super) struct Subscription {
    watch: Arc<SharedWatch>,
    object: Option<ObjectKey>,
    news: Arc<Notify>,
    lists_begun: u64,
}

impl Subscription {
    /// Reads what the watch knows of the object. `baseline` is the resource version that it is known to have had.
    pub(super) fn read(&self, baseline: Option<u64>) -> Reading {
        let state = self.watch.lock();
        if let Some(why) = &state.refused {
            return Reading::Refused(why.clone());
        }
        let seen = self.object.as_ref().and_then(|key| {
            let key = ObjectKey {
                namespace: if state.cluster_scope {
                    String::new()
                } else {
                    key.namespace.clone()
                },
                name: key.name.clone(),
            };
            state.objects.get(&key)
        });
        match seen {
            Some(seen) => Reading::Seen(seen.clone()),
            None if self.absence_counts(&state, baseline) => Reading::Absent,
            None => Reading::Nothing {
                trouble: state.trouble.clone(),
            },
        }
    }

    /// A watch that was open already may be behind the apply: that it has not seen the object proves nothing until
    /// it has come past the object's version, or has listed anew.
    fn absence_counts(&self, state: &State, baseline: Option<u64>) -> bool {
        let listed_since = state.list_completed > self.lists_begun;
        let came_past = baseline.is_none_or(|version| state.newest >= version);
        listed_since || (state.list_completed > 0 && came_past)
    }

    /// Counts the Pods whose failure is their owner's.
    pub(super) fn failed_pods(&self) -> usize {
        self.watch
            .lock()
            .objects
            .values()
            .filter(|seen| seen.fails_owner)
            .count()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut state = self.watch.lock();
        if let Some(waiting) = state.interests.get_mut(&self.object) {
            if let Some(index) = waiting.iter().position(|news| Arc::ptr_eq(news, &self.news)) {
                waiting.swap_remove(index);
            }
            if waiting.is_empty() {
                state.interests.remove(&self.object);
            }
        }
        drop(state);
        self.watch.subscribers.send_modify(|count| *count -= 1);
    }
}

/// Follows a watch until nobody needs it or the API server refuses it.
pub(super) async fn run(
    watch: Arc<SharedWatch>,
    hub: HubRef,
    client: Client,
    resolver: Arc<dyn Resolve>,
    linger: Duration,
) {
    let mut following = pin!(follow(&watch, client, resolver.as_ref()));
    loop {
        tokio::select! {
            why = &mut following => {
                // Out of the hub first: whoever wakes up and waits again gets a new watch.
                if let Some(hub) = hub.upgrade() {
                    hub.close(&watch);
                }
                let mut state = watch.lock();
                state.refused = Some(why);
                state.wake_all();
                return;
            }
            () = watch.unused_for(linger) => {
                if hub.upgrade().is_none_or(|hub| hub.close_if_unused(&watch)) {
                    return;
                }
            }
        }
    }
}

/// Follows a watch for ever; returns why it never can.
async fn follow(watch: &SharedWatch, client: Client, resolver: &dyn Resolve) -> String {
    let key = &watch.key;
    let Resolved { resource, namespaced } = resolve(watch, resolver).await;
    watch.lock().cluster_scope = !namespaced;
    let api: Api<DynamicObject> = match (namespaced, key.namespace.as_str()) {
        (true, "") if !key.name.is_empty() => {
            return "its kind is namespaced, but no namespace is given".to_owned();
        }
        (true, "") | (false, _) => Api::all_with(client, &resource),
        (true, namespace) => Api::namespaced_with(client, namespace, &resource),
    };
    let mut events = pin!(watcher(api, key.config()).default_backoff());
    let mut relisted = HashMap::new();
    loop {
        match events.try_next().await {
            Ok(Some(event)) => take(watch, &resource, event, &mut relisted),
            Ok(None) => return "the watch has ended".to_owned(),
            Err(error) => {
                if let Some(why) = refusal(&error) {
                    return format!("cannot list and watch {}: {why}", described(&resource));
                }
                trouble(watch, &error.to_string());
            }
        }
    }
}

async fn resolve(watch: &SharedWatch, resolver: &dyn Resolve) -> Resolved {
    let (mut delay, limit) = RESOLVE_BACKOFF;
    loop {
        match resolver.resolve(&watch.key.gvk).await {
            Ok(resolved) => return resolved,
            Err(error) => trouble(watch, &chain(error.as_ref())),
        }
        tokio::time::sleep(delay).await;
        delay = limit.min(delay * 2);
    }
}

fn trouble(watch: &SharedWatch, message: &str) {
    let mut state = watch.lock();
    state.trouble = Some(one_line(message, TROUBLE_LIMIT));
    state.wake_all();
}

fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Forbidden, or not a thing that can be watched: no retry within a wait changes that.
fn refusal(error: &watcher::Error) -> Option<String> {
    let (watcher::Error::InitialListFailed(kube::Error::Api(status))
    | watcher::Error::WatchStartFailed(kube::Error::Api(status))
    | watcher::Error::WatchFailed(kube::Error::Api(status))
    | watcher::Error::WatchError(status)) = error
    else {
        return None;
    };
    matches!(status.code, 403 | 405).then(|| one_line(&status.message, TROUBLE_LIMIT))
}

/// `deployments.apps`, as RBAC and kubectl name it.
fn described(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        resource.plural.clone()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

fn take(
    watch: &SharedWatch,
    resource: &ApiResource,
    event: watcher::Event<DynamicObject>,
    relisted: &mut HashMap<ObjectKey, Seen>,
) {
    let reduced = match event {
        watcher::Event::Init => {
            relisted.clear();
            watch.lock().lists_begun += 1;
            return;
        }
        watcher::Event::InitApply(object) => {
            let (key, seen) = reduce(object, resource);
            relisted.insert(key, seen);
            return;
        }
        watcher::Event::InitDone => {
            let mut state = watch.lock();
            state.list_completed = state.lists_begun;
            state.trouble = None;
            state.objects = std::mem::take(relisted);
            state.newest = state
                .objects
                .values()
                .filter_map(|seen| seen.version)
                .fold(state.newest, u64::max);
            state.wake_all();
            return;
        }
        watcher::Event::Apply(object) => (reduce(object, resource), true),
        watcher::Event::Delete(object) => (reduce(object, resource), false),
    };
    let ((key, seen), exists) = reduced;
    let mut state = watch.lock();
    state.trouble = None;
    state.newest = state.newest.max(seen.version.unwrap_or_default());
    if exists {
        state.objects.insert(key.clone(), seen);
    } else {
        state.objects.remove(&key);
    }
    if state.cluster_scope {
        // A target may name a namespace where there is none: its interest is not under this key.
        state.wake_all();
    } else {
        state.wake(&key);
    }
}

/// Keeps of an object what a wait needs.
fn reduce(mut object: DynamicObject, resource: &ApiResource) -> (ObjectKey, Seen) {
    object.metadata.managed_fields = None;
    // Objects of a list come without their types.
    object.types = Some(TypeMeta {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
    });
    let metadata = &mut object.metadata;
    let key = ObjectKey {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    };
    let version = metadata
        .resource_version
        .as_deref()
        .and_then(|version| version.parse().ok());
    let (generation, uid) = (metadata.generation, metadata.uid.clone());
    let value = serde_json::to_value(object).unwrap_or_default();
    let verdict = BuiltIn.verdict(&value, Timestamp::now());
    let pods = pods_of(resource, &value).filter(|_| verdict.status == Status::InProgress);
    // A Pod that finds no node may yet find one: a cluster autoscaler takes longer than kstatus's window.
    let is_pod = resource.group.is_empty() && resource.kind == "Pod";
    let fails_owner =
        is_pod && verdict.status == Status::Failed && kinds::pod::unschedulable(&value).is_none();
    (
        key,
        Seen {
            verdict,
            generation,
            uid,
            version,
            pods,
            fails_owner,
        },
    )
}

/// StatefulSets and ReplicaSets never say that they have failed; kstatus looks at their Pods.
fn pods_of(resource: &ApiResource, object: &Value) -> Option<String> {
    if resource.group != "apps" || !matches!(resource.kind.as_str(), "StatefulSet" | "ReplicaSet") {
        return None;
    }
    let selector: LabelSelector = serde_json::from_value(object.pointer("/spec/selector")?.clone()).ok()?;
    let selector = Selector::try_from(selector).ok()?.to_string();
    (!selector.is_empty()).then_some(selector)
}
