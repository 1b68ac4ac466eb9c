//! Knows, without reading them, whether the objects that we applied are still as we left them.
//!
//! One metadata watch per kind in use, shared by all owners, feeds an [`index`] of [`Facts`] (about a hundred bytes per
//! object). After each apply the engine records what it left; an event whose facts differ is drift and goes to the
//! [subscribers](ManagedIndex::subscribe). What this does not do: read objects, correct anything, or decide for how long
//! a kind that may not be watched goes unwatched; such objects are [`Live::Unknown`] and applied anew each time.

mod drift;
mod index;
mod watch;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::channel::mpsc::{UnboundedSender, unbounded};
use futures::{Stream, future};
use kube::Client;
use manifest::ObjectId;

use crate::fingerprint::{Digest, Facts};
use crate::mapper::Resource;
use crate::settings::{Owner, Settings};
use index::Index;
pub use index::{Applying, Live, Recorded};

pub use drift::{Drift, What};

/// The index, shared by all reconciles of a process. Clones are handles to the same index.
#[derive(Clone)]
pub struct ManagedIndex {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    settings: Arc<Settings>,
    index: Mutex<Index>,
    subscribers: Mutex<Vec<UnboundedSender<Drift>>>,
}

/// How long an apply waits for the first list of a kind before it goes on without.
const FIRST_LIST: Duration = Duration::from_secs(10);

impl ManagedIndex {
    /// Makes an index that watches nothing yet.
    pub fn new(client: Client, settings: Arc<Settings>) -> Self {
        let (index, subscribers) = (Mutex::default(), Mutex::default());
        Self {
            inner: Arc::new(Inner {
                client,
                settings,
                index,
                subscribers,
            }),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Returns drift from now on. Each drift of an object is told once until the object is applied again; an object that
    /// drifts again and again (two controllers that disagree) is told ever more slowly.
    pub fn subscribe(&self) -> impl Stream<Item = Drift> + Send + Unpin + use<> {
        let (sender, receiver) = unbounded();
        self.inner.subscribers().push(sender);
        receiver
    }

    /// Makes sure that the kinds are watched for this owner, and that their first lists are in.
    pub async fn ensure(&self, owner: &Owner, kinds: &[Arc<Resource>]) {
        let waits: Vec<_> = kinds
            .iter()
            .filter(|kind| kind.watchable)
            .map(|kind| self.start(owner, kind))
            .collect();
        let all = future::join_all(waits.into_iter().map(|mut ready| async move {
            // An error means that the watch ended: someone forgot the kind meanwhile.
            let _ = ready.wait_for(|ready| *ready).await;
        }));
        if tokio::time::timeout(FIRST_LIST, all).await.is_err() {
            tracing::warn!(%owner, "managed objects are not listed yet; going on without");
        }
    }

    /// Says that the owner uses these kinds and no others; watches that no one uses are stopped.
    pub fn retain_kinds(&self, owner: &Owner, kinds: &[Arc<Resource>]) {
        let keep = |group: &str, kind: &str| kinds.iter().any(|r| r.api.group == group && r.api.kind == kind);
        self.inner.index().release(owner, &keep);
    }

    /// Says that the owner has applied these objects and no others.
    pub fn retain_objects(&self, owner: &Owner, keep: impl Fn(&ObjectId) -> bool) {
        self.inner.index().forget_records(owner, &keep);
    }

    /// Forgets an owner: what it applied, and the watches that only it used.
    pub fn forget(&self, owner: &Owner) {
        let mut index = self.inner.index();
        index.forget_records(owner, &|_| false);
        index.release(owner, &|_, _| false);
    }

    /// Forgets what one owner recorded of an object, so that it is applied anew.
    pub fn forget_record(&self, owner: &Owner, id: &ObjectId) {
        let is_its = self
            .recorded(id)
            .is_some_and(|recorded| *recorded.owner == *owner);
        if is_its {
            self.forget_object(id);
        }
    }

    /// Forgets what was recorded of one object, for example before it is deleted.
    pub fn forget_object(&self, id: &ObjectId) {
        self.inner.index().forget_object(id);
    }

    /// Tells what is known of the live object.
    pub fn live(&self, id: &ObjectId) -> Live {
        self.inner.index().live(id)
    }

    /// Returns what was recorded when the object was applied last.
    pub fn recorded(&self, id: &ObjectId) -> Option<Recorded> {
        self.inner.index().recorded(id)
    }

    /// Returns whether this owner applied exactly this, and no one touched it since.
    pub fn is_current(&self, id: &ObjectId, owner: &Owner, desired: Digest) -> bool {
        self.inner.index().is_current(id, owner, desired)
    }

    /// Returns whether this owner applied the object, and no one touched it since.
    pub fn is_untouched(&self, id: &ObjectId, owner: &Owner) -> bool {
        self.inner.index().is_untouched(id, owner)
    }

    /// Records what an apply left, outside of a [`Flight`].
    pub fn record(&self, id: &ObjectId, owner: &Owner, applying: Applying, facts: &Facts) {
        let due = self
            .inner
            .index()
            .record(id, owner, applying, facts, Instant::now());
        self.inner.notify(due);
    }

    /// Holds back drift of an object while it is being written; events caused by the write come before its answer.
    pub fn begin(&self, id: &ObjectId) -> Flight {
        self.inner.index().begin(id);
        Flight {
            inner: Arc::clone(&self.inner),
            id: id.clone(),
        }
    }

    fn start(&self, owner: &Owner, kind: &Arc<Resource>) -> tokio::sync::watch::Receiver<bool> {
        let task = || {
            watch::spawn(
                Arc::downgrade(&self.inner),
                self.inner.client.clone(),
                Arc::clone(kind),
            )
        };
        self.inner.index().acquire(owner, kind, task)
    }
}

/// A write in flight. Dropping it lets drift through again.
pub struct Flight {
    inner: Arc<Inner>,
    id: ObjectId,
}

impl Flight {
    /// Records what the write left.
    pub fn record(self, owner: &Owner, applying: Applying, facts: &Facts) {
        let due = self
            .inner
            .index()
            .record(&self.id, owner, applying, facts, Instant::now());
        // What happens to our own write is told, if at all, when `self` is dropped.
        self.inner.notify(due.filter(|due| due.drift.what == What::Taken));
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let due = self.inner.index().end(&self.id, Instant::now());
        self.inner.notify(due);
    }
}

impl Inner {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn subscribers(&self) -> MutexGuard<'_, Vec<UnboundedSender<Drift>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the subscribers, at once or after the pause that an often drifting object has earned.
    fn notify(self: &Arc<Self>, due: Option<index::Due>) {
        let Some(due) = due else { return };
        if due.after.is_zero() {
            tracing::info!(owner = %due.drift.owner, object = %due.drift.object, what = ?due.drift.what, "drift");
            self.subscribers()
                .retain(|subscriber| subscriber.unbounded_send(due.drift.clone()).is_ok());
            return;
        }
        let weak = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(due.after).await;
            let Some(inner) = weak.upgrade() else { return };
            let due = inner.index().due_now(&due.drift.object);
            inner.notify(due);
        });
    }
}
