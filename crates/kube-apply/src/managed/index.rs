//! Index of managed objects, and the consequences of an event. Pure but for the handles of watch tasks that
//! it holds.
//!
//! An answer to our own write and the watch event of the same write arrive in either order, and events of others fall in
//! between. Two rules sort them: while a write is in flight nothing is told, and an event that is older than what was
//! recorded (by resourceVersion) is ignored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use manifest::ObjectId;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::drift::{Drift, What};
use crate::fingerprint::{Digest, Facts};
use crate::ignore::Ignored;
use crate::mapper::Resource;
use crate::settings::Owner;

/// State of a live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Live {
    /// The kind is not watched, or its list is not in.
    Unknown,
    /// There is no object of that name that wears owner labels.
    Absent,
    /// There is one.
    Present(Facts),
}

/// Apply in progress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applying {
    /// Digest of the object as it is wanted.
    pub desired: Digest,
    /// Kubernetes deletes the object by itself, so that its end is no drift.
    pub expires: bool,
    /// Fields that are left to others, whose changes are no drift.
    pub ignored: Option<Arc<Ignored>>,
}

/// Record of an apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Owner that applied it.
    pub owner: Arc<Owner>,
    /// Digest of what was applied.
    pub desired: Digest,
    /// Its end is no drift.
    pub expires: bool,
    /// Changes of these fields are no drift.
    pub ignored: Option<Arc<Ignored>>,
    /// Fingerprint of what the server made of it.
    pub fingerprint: Digest,
    /// Version of the server's answer; None when versions are no numbers.
    pub resource_version: Option<u64>,
}

/// Drift, and how long to wait before it is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) drift: Drift,
    pub(super) after: Duration,
}

/// All kinds in use.
#[derive(Default)]
pub(super) struct Index {
    kinds: HashMap<KindName, Kind>,
}

/// Group and kind. A kind is watched once, whatever versions its owners use: metadata is the same in all.
type KindName = (String, String);

struct Kind {
    owners: HashSet<Arc<Owner>>,
    /// Turns true with the first list, or when there will be none for now.
    ready: watch::Sender<bool>,
    /// The list is in, and the watch lives.
    synced: bool,
    /// Keys seen since a relist began.
    relisting: Option<HashSet<Key>>,
    objects: HashMap<Key, Entry>,
    /// The version that is watched.
    version: String,
    task: AbortHandle,
}

impl Kind {
    fn new(version: &str, task: AbortHandle) -> Self {
        Self {
            owners: HashSet::new(),
            ready: watch::Sender::new(false),
            synced: false,
            relisting: None,
            objects: HashMap::new(),
            version: version.to_owned(),
            task,
        }
    }

    /// Returns whether the watch was given up for now, as opposed to not having begun.
    fn is_lost(&self) -> bool {
        *self.ready.borrow() && !self.synced
    }
}

impl Drop for Kind {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// `namespace/name`, in one allocation.
type Key = Box<str>;

#[derive(Default)]
struct Entry {
    seen: Seen,
    recorded: Option<Recorded>,
    in_flight: u16,
    /// This drift was told, or will be after its pause.
    told: bool,
    /// That another owner applied it was told.
    told_taken: bool,
    strikes: u8,
    last_strike: Option<Instant>,
}

#[derive(Default)]
enum Seen {
    #[default]
    Nothing,
    Present(Facts),
    /// With the version of the delete event; None when only a list showed it.
    Gone(Option<u64>),
}

fn key(namespace: &str, name: &str) -> Key {
    format!("{namespace}/{name}").into_boxed_str()
}

fn kind_name(id: &ObjectId) -> KindName {
    (id.group.clone(), id.kind.clone())
}

fn id_of(kind: &KindName, key: &str) -> ObjectId {
    let (namespace, name) = key.split_once('/').unwrap_or(("", key));
    ObjectId {
        group: kind.0.clone(),
        kind: kind.1.clone(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

/// Drift of one object within this time counts as one quarrel.
const QUARREL: Duration = Duration::from_secs(600);

/// So many drifts of one object are told at once; each further one waits twice as long as the one before.
const PATIENCE: u8 = 3;

/// Longest pause between two drifts of one object.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

impl Index {
    /// Notes that the owner uses the kind, and starts its watch at first use; or anew, in another version, when the one
    /// that was watched does not answer any more.
    pub(super) fn acquire(
        &mut self,
        owner: &Owner,
        resource: &Resource,
        start: impl Fn() -> AbortHandle,
    ) -> watch::Receiver<bool> {
        let name = (resource.api.group.clone(), resource.api.kind.clone());
        let kind = self
            .kinds
            .entry(name)
            .or_insert_with(|| Kind::new(&resource.api.version, start()));
        if kind.is_lost() && kind.version != resource.api.version {
            kind.task.abort();
            (kind.task, kind.version) = (start(), resource.api.version.clone());
            kind.ready.send_replace(false);
        }
        if !kind.owners.contains(owner) {
            kind.owners.insert(Arc::new(owner.clone()));
        }
        kind.ready.subscribe()
    }

    /// Notes that the owner no longer uses the kinds that `keep` does not want; unused watches stop.
    pub(super) fn release(&mut self, owner: &Owner, keep: &dyn Fn(&str, &str) -> bool) {
        self.kinds.retain(|(group, name), kind| {
            if !keep(group, name) {
                kind.owners.remove(owner);
            }
            !kind.owners.is_empty()
        });
    }

    /// Forgets what the owner recorded, but for the objects that `keep` wants.
    pub(super) fn forget_records(&mut self, owner: &Owner, keep: &dyn Fn(&ObjectId) -> bool) {
        for (name, kind) in &mut self.kinds {
            for (key, entry) in &mut kind.objects {
                let is_theirs = entry.recorded.as_ref().is_some_and(|r| *r.owner == *owner);
                if is_theirs && !keep(&id_of(name, key)) {
                    entry.recorded = None;
                }
            }
            kind.objects.retain(|_, entry| entry.is_needed());
        }
    }

    /// Forgets what was recorded of one object.
    pub(super) fn forget_object(&mut self, id: &ObjectId) {
        if let Some(entry) = self.entry(id) {
            entry.recorded = None;
        }
    }

    /// Tells what is known of the live object.
    pub(super) fn live(&self, id: &ObjectId) -> Live {
        match self.kinds.get(&kind_name(id)) {
            Some(kind) if kind.synced => {
                match kind.objects.get(&key(&id.namespace, &id.name)).map(|e| &e.seen) {
                    Some(Seen::Present(facts)) => Live::Present(facts.clone()),
                    _ => Live::Absent,
                }
            }
            _ => Live::Unknown,
        }
    }

    /// Returns what was recorded of an object.
    pub(super) fn recorded(&self, id: &ObjectId) -> Option<Recorded> {
        self.kinds
            .get(&kind_name(id))?
            .objects
            .get(&key(&id.namespace, &id.name))?
            .recorded
            .clone()
    }

    /// Returns whether the owner applied exactly this and no one touched it since.
    pub(super) fn is_current(&self, id: &ObjectId, owner: &Owner, desired: Digest) -> bool {
        self.untouched(id, owner)
            .is_some_and(|recorded| recorded.desired == desired)
    }

    /// Returns whether the owner applied the object and no one touched it since.
    pub(super) fn is_untouched(&self, id: &ObjectId, owner: &Owner) -> bool {
        self.untouched(id, owner).is_some()
    }

    fn untouched(&self, id: &ObjectId, owner: &Owner) -> Option<&Recorded> {
        let kind = self.kinds.get(&kind_name(id)).filter(|kind| kind.synced)?;
        let entry = kind.objects.get(&key(&id.namespace, &id.name))?;
        let recorded = entry.recorded.as_ref().filter(|r| *r.owner == *owner)?;
        entry.touched().is_none().then_some(recorded)
    }

    /// Notes that a write to the object is under way.
    pub(super) fn begin(&mut self, id: &ObjectId) {
        if let Some(kind) = self.kinds.get_mut(&kind_name(id)) {
            kind.objects
                .entry(key(&id.namespace, &id.name))
                .or_default()
                .in_flight += 1;
        }
    }

    /// Notes that a write ended; returns drift that was held back meanwhile.
    pub(super) fn end(&mut self, id: &ObjectId, now: Instant) -> Option<Due> {
        let entry = self.entry(id)?;
        entry.in_flight = entry.in_flight.saturating_sub(1);
        let due = entry.evaluate(id, now);
        self.drop_if_unneeded(id);
        due
    }

    /// Records what an apply left. Nothing is kept for a kind that is not watched. The owner that had the object before is
    /// told.
    pub(super) fn record(
        &mut self,
        id: &ObjectId,
        owner: &Owner,
        applying: Applying,
        facts: &Facts,
        now: Instant,
    ) -> Option<Due> {
        let kind = self.kinds.get_mut(&kind_name(id))?;
        let owner = kind
            .owners
            .get(owner)
            .cloned()
            .unwrap_or_else(|| Arc::new(owner.clone()));
        let entry = kind.objects.entry(key(&id.namespace, &id.name)).or_default();
        let before = entry
            .recorded
            .as_ref()
            .and_then(|recorded| recorded.ignored.as_ref());
        if before != applying.ignored.as_ref() {
            entry.see_again(facts);
        }
        let taken = entry.recorded.as_ref().filter(|recorded| recorded.owner != owner);
        let taken = taken.map(|recorded| Due {
            drift: Drift {
                owner: Owner::clone(&recorded.owner),
                object: id.clone(),
                what: What::Taken,
                by: Some(Owner::clone(&owner)),
            },
            after: Duration::ZERO,
        });
        entry.recorded = Some(Recorded {
            owner,
            desired: applying.desired,
            expires: applying.expires,
            ignored: applying.ignored,
            fingerprint: facts.fingerprint,
            resource_version: facts.resource_version,
        });
        entry.told = false;
        entry.told_taken = false;
        taken.or_else(|| entry.evaluate(id, now))
    }

    /// Returns the fields of an object whose changes are no drift.
    pub(super) fn ignored(
        &self,
        group_kind: (&str, &str),
        namespace: &str,
        name: &str,
    ) -> Option<Arc<Ignored>> {
        let kind = self
            .kinds
            .get(&(group_kind.0.to_owned(), group_kind.1.to_owned()))?;
        let entry = kind.objects.get(&key(namespace, name))?;
        entry.recorded.as_ref()?.ignored.clone()
    }

    /// Takes in an object that the watch shows.
    pub(super) fn observe(
        &mut self,
        group_kind: (&str, &str),
        namespace: &str,
        name: &str,
        mut facts: Facts,
        now: Instant,
    ) -> Option<Due> {
        let kind_name = (group_kind.0.to_owned(), group_kind.1.to_owned());
        let kind = self.kinds.get_mut(&kind_name)?;
        if let Some(known) = facts.owner.as_ref().and_then(|owner| kind.owners.get(owner)) {
            facts.owner = Some(Arc::clone(known)); // one allocation per owner instead of one per object
        }
        let key = key(namespace, name);
        if let Some(seen) = &mut kind.relisting {
            seen.insert(key.clone());
        }
        let id = id_of(&kind_name, &key);
        let entry = kind.objects.entry(key).or_default();
        entry.seen = Seen::Present(facts);
        entry.evaluate(&id, now)
    }

    /// Takes in that an object is gone, or wears no owner labels any more.
    pub(super) fn vanish(
        &mut self,
        group_kind: (&str, &str),
        namespace: &str,
        name: &str,
        resource_version: Option<u64>,
        now: Instant,
    ) -> Option<Due> {
        let kind_name = (group_kind.0.to_owned(), group_kind.1.to_owned());
        let key = key(namespace, name);
        let id = id_of(&kind_name, &key);
        let entry = self.kinds.get_mut(&kind_name)?.objects.get_mut(&key)?;
        entry.seen = Seen::Gone(resource_version);
        let due = entry.evaluate(&id, now);
        self.drop_if_unneeded(&id);
        due
    }

    /// Notes that a list begins.
    pub(super) fn relist_begins(&mut self, group: &str, kind: &str) {
        if let Some(kind) = self.kinds.get_mut(&(group.to_owned(), kind.to_owned())) {
            kind.relisting = Some(HashSet::new());
        }
    }

    /// Notes that the list is in: what it did not show is gone. An object that was created while the list was made may
    /// be told as gone although it is there; that costs its owner one idle reconcile, and missing a delete would cost
    /// more.
    pub(super) fn relist_ends(&mut self, group: &str, kind: &str, now: Instant) -> Vec<Due> {
        let name = (group.to_owned(), kind.to_owned());
        let Some(kind) = self.kinds.get_mut(&name) else {
            return Vec::new();
        };
        let seen = kind.relisting.take().unwrap_or_default();
        let mut due = Vec::new();
        for (key, entry) in kind.objects.iter_mut().filter(|(key, _)| !seen.contains(*key)) {
            entry.seen = Seen::Gone(None);
            due.extend(entry.evaluate(&id_of(&name, key), now));
        }
        kind.objects.retain(|_, entry| entry.is_needed());
        kind.synced = true;
        kind.ready.send_replace(true);
        due
    }

    /// Notes that the kind cannot be watched for now.
    pub(super) fn lose(&mut self, group: &str, kind: &str) {
        if let Some(kind) = self.kinds.get_mut(&(group.to_owned(), kind.to_owned())) {
            kind.synced = false;
            kind.ready.send_replace(true);
        }
    }

    /// Looks again at drift whose pause is over.
    pub(super) fn due_now(&mut self, id: &ObjectId) -> Option<Due> {
        let entry = self.entry(id)?;
        entry.told = false;
        entry.told_taken = false;
        let drift = entry.reportable(id)?;
        entry.mark_reported(&drift);
        Some(Due {
            drift,
            after: Duration::ZERO,
        })
    }

    fn entry(&mut self, id: &ObjectId) -> Option<&mut Entry> {
        self.kinds
            .get_mut(&kind_name(id))?
            .objects
            .get_mut(&key(&id.namespace, &id.name))
    }

    fn drop_if_unneeded(&mut self, id: &ObjectId) {
        let Some(kind) = self.kinds.get_mut(&kind_name(id)) else {
            return;
        };
        let key = key(&id.namespace, &id.name);
        if kind.objects.get(&key).is_some_and(|entry| !entry.is_needed()) {
            kind.objects.remove(&key);
        }
    }
}

impl Entry {
    fn is_needed(&self) -> bool {
        self.recorded.is_some() || self.in_flight > 0 || matches!(self.seen, Seen::Present(_))
    }

    /// Takes what is recorded now for what was seen, unless something newer was: fingerprints are comparable only when
    /// they leave out the same fields.
    fn see_again(&mut self, facts: &Facts) {
        if let Seen::Present(seen) = &mut self.seen
            && seen.resource_version <= facts.resource_version
        {
            *seen = facts.clone();
        }
    }

    /// Tells what happened since the last record, whoever did it.
    fn touched(&self) -> Option<What> {
        let recorded = self.recorded.as_ref()?;
        let is_older =
            |version: Option<u64>| version.zip(recorded.resource_version).is_some_and(|(v, r)| v < r);
        match &self.seen {
            Seen::Nothing => None,
            Seen::Gone(version) if is_older(*version) => None,
            Seen::Gone(_) => Some(What::Deleted),
            Seen::Present(facts) if is_older(facts.resource_version) => None,
            Seen::Present(facts) => (facts.fingerprint != recorded.fingerprint).then_some(What::Modified),
        }
    }

    /// Tells the drift that the owner is to hear of. Not of an object that ends by itself.
    fn reportable(&self, id: &ObjectId) -> Option<Drift> {
        if self.in_flight > 0 {
            return None;
        }
        let what = self.touched()?;
        let recorded = self.recorded.as_ref()?;
        if what == What::Deleted && recorded.expires {
            return None;
        }
        let owner = &recorded.owner;
        let by = match &self.seen {
            Seen::Present(facts) if facts.owner_label_is_ours => {
                facts.owner.as_deref().filter(|other| **other != **owner)
            }
            _ => None,
        };
        let is_told = if by.is_some() { self.told_taken } else { self.told };
        (!is_told).then(|| Drift {
            owner: Owner::clone(owner),
            object: id.clone(),
            what: if by.is_some() { What::Taken } else { what },
            by: by.cloned(),
        })
    }

    fn evaluate(&mut self, id: &ObjectId, now: Instant) -> Option<Due> {
        let drift = self.reportable(id)?;
        self.mark_reported(&drift);
        Some(Due {
            drift,
            after: self.pause(now),
        })
    }

    fn mark_reported(&mut self, drift: &Drift) {
        match drift.what {
            What::Taken => self.told_taken = true,
            What::Modified | What::Deleted => self.told = true,
        }
    }

    /// Counts a drift, and returns how long to hold it back.
    fn pause(&mut self, now: Instant) -> Duration {
        let quarrelling = self
            .last_strike
            .is_some_and(|last| now.duration_since(last) < QUARREL);
        self.strikes = if quarrelling {
            self.strikes.saturating_add(1)
        } else {
            1
        };
        self.last_strike = Some(now);
        match self.strikes.checked_sub(PATIENCE + 1) {
            None => Duration::ZERO,
            Some(over) => LONGEST_PAUSE.min(Duration::from_secs(1 << over.min(16))),
        }
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
