//! One watch as those who are interested in it see it: what it has seen, and who is to be woken.
//!
//! Written by the task in [`super::follow`], read through [`Subscription`]s. Holds verdicts, never objects.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::runtime::watcher;
use manifest::{GroupVersionKind, ObjectId};
use tokio::sync::{Notify, watch};

use crate::custom::Custom;
use crate::wait::{Reading, Seen};

/// Objects per page of a list: a page is all that is held of whole objects.
const PAGE_SIZE: u32 = 250;

/// Selection of a watch. Empty fields select everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    pub(super) gvk: GroupVersionKind,
    pub(super) namespace: String,
    pub(super) labels: String,
    pub(super) name: String,
    /// How its objects are judged; None is kstatus.
    pub(super) rule: Option<Arc<Custom>>,
}

impl WatchKey {
    /// All objects of a kind that carry a label; in one namespace, if it is not empty.
    pub(super) fn labelled(gvk: GroupVersionKind, namespace: &str, label: &str) -> Self {
        Self {
            gvk,
            namespace: namespace.to_owned(),
            labels: label.to_owned(),
            name: String::new(),
            rule: None,
        }
    }

    /// One object.
    pub(super) fn named(gvk: GroupVersionKind, namespace: &str, name: &str) -> Self {
        Self {
            gvk,
            namespace: namespace.to_owned(),
            labels: String::new(),
            name: name.to_owned(),
            rule: None,
        }
    }

    /// The Pods of a workload.
    pub(super) fn pods(namespace: &str, selector: &str) -> Self {
        let gvk = GroupVersionKind::new("v1", "Pod");
        Self {
            gvk,
            namespace: namespace.to_owned(),
            labels: selector.to_owned(),
            name: String::new(),
            rule: None,
        }
    }

    pub(super) fn config(&self) -> watcher::Config {
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
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ObjectKey {
    pub(super) fn from_id(id: &ObjectId) -> Self {
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
    objects: HashMap<ObjectKey, Arc<Seen>>,
    /// Lists that were begun, and the last one that was completed.
    lists_begun: u64,
    list_completed: u64,
    /// The newest resource version of any object so far.
    newest: u64,
    /// Set for objects of the cluster scope: their keys have no namespace, whatever the target said.
    cluster_scope: bool,
    trouble: Option<String>,
    refused: Option<String>,
    /// Waits to wake for an object; under None, those to wake for all.
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

    pub(super) fn set_cluster_scope(&self) {
        self.lock().cluster_scope = true;
    }

    pub(super) fn list_begins(&self) {
        self.lock().lists_begun += 1;
    }

    /// Takes a complete list in place of all that was known.
    pub(super) fn listed(&self, objects: HashMap<ObjectKey, Arc<Seen>>) {
        let mut state = self.lock();
        let newest = objects.values().filter_map(|seen| seen.version).max();
        state.newest = state.newest.max(newest.unwrap_or_default());
        state.list_completed = state.lists_begun;
        state.trouble = None;
        state.objects = objects;
        state.wake_all();
    }

    /// Takes the newest state of one object, its last one when it does not exist any more.
    pub(super) fn changed(&self, key: ObjectKey, seen: Arc<Seen>, exists: bool) {
        let mut state = self.lock();
        state.newest = state.newest.max(seen.version.unwrap_or_default());
        state.trouble = None;
        if state.cluster_scope {
            // A target may name a namespace where there is none: its interest is not under this key.
            state.wake_all();
        } else {
            state.wake(&key);
        }
        if exists {
            state.objects.insert(key, seen);
        } else {
            state.objects.remove(&key);
        }
    }

    /// Notes what stands in the way for now.
    pub(super) fn set_trouble(&self, message: String) {
        let mut state = self.lock();
        state.trouble = Some(message);
        state.wake_all();
    }

    /// Notes, unless it is known already, why nothing more will come.
    pub(super) fn refuse(&self, why: String) {
        let mut state = self.lock();
        state.refused.get_or_insert(why);
        state.wake_all();
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
    pub(super) async fn unused_for(&self, linger: Duration) {
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
        let seen = match &self.object {
            Some(key) if state.cluster_scope && !key.namespace.is_empty() => {
                let key = ObjectKey {
                    namespace: String::new(),
                    name: key.name.clone(),
                };
                state.objects.get(&key)
            }
            Some(key) => state.objects.get(key),
            None => None,
        };
        match seen {
            Some(seen) => Reading::Seen(Arc::clone(seen)),
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
