//! All rows, the objects behind them, and the numbers of the last changes.
//!
//! A change has a number. Who follows changes is a number, too, and asks what changed since: they get the newest state of each
//! row once, however often it changed, and hold no memory while they are slow.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use delivery_graph::kind::Kind;
use delivery_graph::{DELIVERERS, object};
use jiff::Timestamp;
use manifest::ObjectId;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use utoipa::ToSchema;

use crate::row::{Key, Row};

/// An object of more bytes is known by its row alone; a HelmRelease with large values has some hundred kilobytes.
const MAX_OBJECT: usize = 512 << 10;
/// Bytes of all objects. Of those that come when it is reached, rows are kept, so that no tenant fills the memory.
const MAX_OBJECTS: usize = 256 << 20;
/// Objects of one cluster; a cluster may be run by someone who wishes the others no good.
const MAX_ROWS: usize = 200_000;
/// Changes whose numbers are known. Who is further behind begins again.
const MAX_CHANGES: usize = 8192;

/// The picture. Clones are handles to the same.
#[derive(Clone)]
pub struct Picture {
    state: Arc<RwLock<State>>,
    /// The number of the last change.
    last: Arc<watch::Sender<u64>>,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<Key, Entry>,
    /// Its keys are of this process: who writes inventories cannot make them meet.
    hashes: RandomState,
    changes: VecDeque<(u64, Key)>,
    clusters: BTreeMap<Arc<str>, Health>,
    /// Bytes of all objects.
    bytes: usize,
}

struct Entry {
    row: Arc<Row>,
    /// The object as JSON: a fifth of what it takes when it is parsed. None if it is too large.
    json: Option<Box<[u8]>>,
    /// Hashes of what its inventory names. Four bytes for each entry are enough to pass over whoever did not apply an object;
    /// who is left is read.
    applied: Box<[u32]>,
}

/// An object that was asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum Known {
    /// As it is.
    Whole(Value),
    /// It is there, and too large to be kept.
    TooLarge,
    /// It is not there.
    Absent,
}

/// Kinds whose pages show more of them than their rows: every change of theirs counts.
const SHOWN_WHOLE: [&str; 1] = ["Pipeline"];

/// What one watch tells of: a kind, by its name, in a namespace or (if that is empty) in all.
type Part = (&'static str, Box<str>);

fn part(kind: &'static Kind, namespace: &str) -> Part {
    (kind.kind, namespace.into())
}

/// How a cluster can be seen.
#[derive(Default)]
struct Health {
    /// What was not listed yet.
    missing: HashSet<Part>,
    /// Watches that fail, with why.
    failing: BTreeMap<Part, String>,
    /// What may not be listed, and is passed over.
    refused: BTreeSet<Part>,
    /// What is not installed.
    absent: HashSet<Part>,
    /// Why it cannot be watched at all.
    unreachable: Option<String>,
    /// Since when it has been away, or there.
    since: Option<Timestamp>,
    /// Its rows.
    rows: usize,
    /// Objects that found no room.
    is_cut: bool,
}

impl Health {
    fn is_away(&self) -> bool {
        self.unreachable.is_some() || !self.failing.is_empty()
    }

    fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.unreachable.is_none()
    }

    fn message(&self) -> Option<String> {
        let of_watches = || self.failing.values().next().cloned();
        let of_rows = || format!("it has more than {MAX_ROWS} objects; the others are not shown");
        let of_refused = || {
            let mut kinds: Vec<&str> = self.refused.iter().map(|(kind, _)| *kind).collect();
            kinds.dedup();
            let some = !kinds.is_empty();
            some.then(|| {
                format!(
                    "you may not list these, so they are not shown: {}",
                    kinds.join(", ")
                )
            })
        };
        let why = self.unreachable.clone().or_else(of_watches);
        why.or_else(|| self.is_cut.then(of_rows)).or_else(of_refused)
    }
}

/// A cluster, and whether what is known of it is up to date.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Cluster {
    /// Its name.
    #[schema(value_type = String)]
    pub name: Arc<str>,
    /// True once all kinds were listed.
    pub complete: bool,
    /// True while it cannot be watched: what is shown of it is as old as `since`.
    pub away: bool,
    /// Why it is away, or what is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when it is away, or was there again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
}

/// What changed since a number.
#[derive(Debug, PartialEq, Eq)]
pub enum Changes {
    /// The number is not known: all must be read again.
    Reset,
    /// The newest state of each row that changed, None if it is gone.
    Rows(Vec<(Key, Option<Arc<Row>>)>),
}

impl Entry {
    fn size(&self) -> usize {
        self.json.as_ref().map_or(0, |json| json.len())
    }
}

impl State {
    /// The lower half of a hash.
    fn hash(&self, inventory_id: &str) -> u32 {
        let hash = self.hashes.hash_one(inventory_id) & u64::from(u32::MAX);
        u32::try_from(hash).unwrap_or_default()
    }

    /// Counts one more row of a cluster, if it may have one.
    fn has_room_for_a_row(&mut self, cluster: &Arc<str>) -> bool {
        let health = self.clusters.entry(cluster.clone()).or_default();
        health.is_cut = health.rows >= MAX_ROWS;
        health.rows += usize::from(!health.is_cut);
        !health.is_cut
    }

    /// Counts the bytes of an object in the place of those that it had before; None if there is no room for them.
    fn room_for(&mut self, key: &Key, json: Box<[u8]>) -> Option<Box<[u8]>> {
        self.bytes -= self.entries.get(key).map_or(0, Entry::size);
        let json =
            Some(json).filter(|json| json.len() <= MAX_OBJECT && self.bytes + json.len() <= MAX_OBJECTS);
        self.bytes += json.as_ref().map_or(0, |json| json.len());
        json
    }
}

impl Default for Picture {
    fn default() -> Self {
        // Numbers of a process that was before mean nothing now; they are lower.
        let first = u64::try_from(Timestamp::now().as_millisecond()).unwrap_or_default();
        Self {
            state: Arc::default(),
            last: Arc::new(watch::Sender::new(first)),
        }
    }
}

impl Picture {
    /// Adds a cluster of which these kinds are going to be listed, in each of these namespaces (an empty one stands for all).
    pub fn expect<'a>(&self, cluster: &Arc<str>, parts: impl IntoIterator<Item = (&'static Kind, &'a str)>) {
        let mut state = self.write();
        let health = state.clusters.entry(cluster.clone()).or_default();
        let parts = parts.into_iter();
        health.missing = parts.map(|(kind, namespace)| part(kind, namespace)).collect();
        health.failing.clear();
        health.refused.clear();
        if health.unreachable.take().is_some() {
            health.since = Some(Timestamp::now());
        }
    }

    /// Notes that a cluster cannot be watched. Its rows stay as they are.
    pub fn unreachable(&self, cluster: &Arc<str>, problem: &str) {
        let mut state = self.write();
        let health = state.clusters.entry(cluster.clone()).or_default();
        if !health.is_away() {
            health.since = Some(Timestamp::now());
        }
        health.unreachable = Some(problem.to_owned());
    }

    /// Takes out a cluster and all of its rows.
    pub fn forget(&self, cluster: &Arc<str>) {
        let of_it: Vec<Key> = {
            let state = self.read();
            let keys = state.entries.keys().filter(|key| key.cluster == *cluster);
            keys.cloned().collect()
        };
        of_it.iter().for_each(|key| self.remove(key));
        self.write().clusters.remove(cluster);
    }

    /// Returns whether all kinds of a cluster were listed.
    pub fn is_complete(&self, cluster: &Arc<str>) -> bool {
        let state = self.read();
        let health = state.clusters.get(cluster);
        health.is_some_and(Health::is_complete)
    }

    /// Puts in an object, or its newest state.
    pub fn put(&self, cluster: &Arc<str>, kind: &'static Kind, object: &Value) {
        let key = Key::new(cluster, kind, object::namespace(object), object::name(object));
        let row = Row::new(cluster, kind, object);
        let json = serde_json::to_vec(object).unwrap_or_default().into_boxed_slice();
        let mut state = self.write();
        if !state.entries.contains_key(&key) && !state.has_room_for_a_row(cluster) {
            return;
        }
        let json = state.room_for(&key, json);
        let applied = match DELIVERERS.contains(&kind.kind) && json.is_some() {
            true => object::inventory_ids(object).map(|id| state.hash(id)).collect(),
            false => Box::default(),
        };
        match state.entries.get_mut(&key) {
            // Nothing that a row shows.
            Some(known) if *known.row == row && !SHOWN_WHOLE.contains(&kind.kind) => {
                (known.json, known.applied) = (json, applied);
            }
            Some(known) => {
                let row = Arc::new(row);
                *known = Entry { row, json, applied };
                self.changed(&mut state, key);
            }
            None => {
                let row = Arc::new(row);
                state.entries.insert(key.clone(), Entry { row, json, applied });
                self.changed(&mut state, key);
            }
        }
    }

    /// Takes out an object.
    pub fn remove(&self, key: &Key) {
        let mut state = self.write();
        if let Some(gone) = state.entries.remove(key) {
            state.bytes -= gone.size();
            if let Some(health) = state.clusters.get_mut(&key.cluster) {
                health.rows -= 1;
            }
            self.changed(&mut state, key.clone());
        }
    }

    /// Takes out what a new list of a kind (in a namespace, unless that is empty) does not have, and notes that it was listed.
    pub fn listed(&self, cluster: &Arc<str>, kind: &'static Kind, namespace: &str, found: &HashSet<Key>) {
        let is_listed = |key: &&Key| {
            let is_there = namespace.is_empty() || *key.namespace == *namespace;
            key.kind() == kind && key.cluster == *cluster && is_there
        };
        let gone: Vec<Key> = {
            let state = self.read();
            let known = state.entries.keys().filter(is_listed);
            known.filter(|key| !found.contains(*key)).cloned().collect()
        };
        gone.iter().for_each(|key| self.remove(key));
        let part = part(kind, namespace);
        let mut state = self.write();
        let Some(health) = state.clusters.get_mut(cluster) else {
            return;
        };
        health.missing.remove(&part);
        health.refused.remove(&part);
        health.absent.remove(&part);
        if health.failing.remove(&part).is_some() && !health.is_away() {
            health.since = Some(Timestamp::now());
        }
    }

    /// Notes that a kind is not installed: it has no objects, and may have some day.
    pub fn not_served(&self, cluster: &Arc<str>, kind: &'static Kind, namespace: &str) {
        self.listed(cluster, kind, namespace, &HashSet::new());
        let mut state = self.write();
        if let Some(health) = state.clusters.get_mut(cluster) {
            health.absent.insert(part(kind, namespace));
        }
    }

    /// Whether a kind is installed in any cluster.
    pub fn is_served(&self, kind: &'static Kind) -> bool {
        let is_it = |part: &Part| part.0 == kind.kind;
        let state = self.read();
        let mut clusters = state.clusters.values();
        clusters.any(|health| {
            health.unreachable.is_none() && !health.absent.iter().chain(&health.missing).any(is_it)
        })
    }

    /// Takes out a kind that may not be listed, in a namespace or (if that is empty) in all, and passes over it.
    pub fn refused(&self, cluster: &Arc<str>, kind: &'static Kind, namespace: &str) {
        self.listed(cluster, kind, namespace, &HashSet::new());
        let mut state = self.write();
        if let Some(health) = state.clusters.get_mut(cluster) {
            health.refused.insert(part(kind, namespace));
        }
    }

    /// Notes that a watch fails. Returns whether that is new.
    pub fn failing(&self, cluster: &Arc<str>, kind: &'static Kind, namespace: &str, problem: String) -> bool {
        let mut state = self.write();
        let Some(health) = state.clusters.get_mut(cluster) else {
            return false;
        };
        if !health.is_away() {
            health.since = Some(Timestamp::now());
        }
        health.failing.insert(part(kind, namespace), problem).is_none()
    }

    /// All clusters, by name.
    pub fn clusters(&self) -> Vec<Cluster> {
        let state = self.read();
        let clusters = state.clusters.iter();
        clusters
            .map(|(name, health)| Cluster {
                name: name.clone(),
                complete: health.is_complete(),
                away: health.is_away(),
                message: health.message(),
                since: health.since,
            })
            .collect()
    }

    /// How many rows each cluster has. Not for callers: nothing is cut.
    pub fn sizes(&self) -> Vec<(Arc<str>, u64)> {
        let state = self.read();
        let clusters = state.clusters.iter();
        let count = |rows: usize| u64::try_from(rows).unwrap_or(u64::MAX);
        clusters
            .map(|(name, health)| (name.clone(), count(health.rows)))
            .collect()
    }

    /// All rows in their order, and the number of the last change that they have.
    pub fn rows(&self) -> (u64, Vec<(Key, Arc<Row>)>) {
        self.rows_of(|_| true)
    }

    /// The rows of some keys in their order, and the number of the last change that they have. Changes wait while it is looked at keys.
    pub fn rows_of(&self, is_wanted: impl Fn(&Key) -> bool) -> (u64, Vec<(Key, Arc<Row>)>) {
        let state = self.read();
        let rows = state.entries.iter().filter(|(key, _)| is_wanted(key));
        let rows = rows
            .map(|(key, entry)| (key.clone(), entry.row.clone()))
            .collect();
        (*self.last.borrow(), rows)
    }

    /// A key with its row; None if it is gone.
    pub fn row(&self, key: &Key) -> (Key, Option<Arc<Row>>) {
        let state = self.read();
        (key.clone(), state.entries.get(key).map(|entry| entry.row.clone()))
    }

    /// An object.
    pub fn object(&self, key: &Key) -> Known {
        let state = self.read();
        let Some(entry) = state.entries.get(key) else {
            return Known::Absent;
        };
        let parsed = entry.json.as_ref().map(|json| serde_json::from_slice(json));
        match parsed {
            Some(Ok(object)) => Known::Whole(object),
            _ => Known::TooLarge,
        }
    }

    /// The objects of a kind in a cluster that are not too large.
    pub fn objects(&self, cluster: &Arc<str>, kind: &'static Kind) -> Vec<(Key, Value)> {
        let state = self.read();
        let of_kind = state.entries.iter();
        let of_kind = of_kind.filter(|(key, _)| key.kind() == kind && key.cluster == *cluster);
        of_kind
            .filter_map(|(key, entry)| {
                Some((key.clone(), serde_json::from_slice(entry.json.as_ref()?).ok()?))
            })
            .collect()
    }

    /// Those of a kind in a cluster that may have applied an object: all who have, and hardly anyone else.
    pub fn may_have_applied(&self, cluster: &Arc<str>, kind: &'static Kind, id: &ObjectId) -> Vec<Key> {
        let state = self.read();
        let hash = state.hash(&id.inventory_id());
        let entries = state.entries.iter();
        let found = entries.filter(|(key, entry)| {
            key.kind() == kind && entry.applied.contains(&hash) && key.cluster == *cluster
        });
        found.map(|(key, _)| key.clone()).collect()
    }

    /// Those in a cluster that may have applied any of some objects: all who have, and hardly anyone else.
    pub fn may_have_applied_any(&self, cluster: &Arc<str>, ids: &[ObjectId]) -> Vec<Key> {
        let state = self.read();
        let hashes: HashSet<u32> = ids.iter().map(|id| state.hash(&id.inventory_id())).collect();
        let entries = state.entries.iter();
        let found = entries.filter(|(key, entry)| {
            key.cluster == *cluster && entry.applied.iter().any(|hash| hashes.contains(hash))
        });
        found.map(|(key, _)| key.clone()).collect()
    }

    /// Notifies of each new change number. Ask [`changes_since`](Self::changes_since) what changed.
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// The number of the last change. The guard of the channel must not live while the state is locked: who writes has both, the other
    /// way round.
    pub fn number(&self) -> u64 {
        *self.last.borrow()
    }

    /// What changed after a number, and the number up to which that is.
    pub fn changes_since(&self, number: u64) -> (u64, Changes) {
        let state = self.read();
        let last = *self.last.borrow();
        let first_known = state.changes.front().map_or(last + 1, |(first, _)| *first);
        if number > last || number + 1 < first_known {
            return (last, Changes::Reset);
        }
        let new = state.changes.iter().rev().take_while(|(at, _)| *at > number);
        let keys: HashSet<&Key> = new.map(|(_, key)| key).collect();
        let mut rows: Vec<_> = keys
            .into_iter()
            .map(|key| (key.clone(), state.entries.get(key).map(|entry| entry.row.clone())))
            .collect();
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        (last, Changes::Rows(rows))
    }

    fn changed(&self, state: &mut State, key: Key) {
        let mut number = 0;
        self.last.send_modify(|last| {
            *last += 1;
            number = *last;
        });
        if state.changes.len() == MAX_CHANGES {
            state.changes.pop_front();
        }
        state.changes.push_back((number, key));
    }

    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use delivery_graph::kind;
    use serde_json::json;

    use super::*;

    fn put(picture: &Picture, name: &str, revision: &str) -> Key {
        let kind = kind::exact("Kustomization").unwrap();
        let cluster = "here".into();
        let object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": name, "namespace": "shop"}, "status": {"lastAppliedRevision": revision},
        });
        picture.put(&cluster, kind, &object);
        Key::new(&cluster, kind, "shop", name)
    }

    fn names(changes: &Changes) -> Vec<(String, bool)> {
        let Changes::Rows(rows) = changes else {
            return vec![("reset".to_owned(), true)];
        };
        let rows = rows.iter();
        rows.map(|(key, row)| (key.name.to_string(), row.is_some()))
            .collect()
    }

    #[test]
    fn who_follows_gets_the_newest_of_each_row_once() {
        let picture = Picture::default();
        let (start, rows) = picture.rows();
        assert!(rows.is_empty());
        let a = put(&picture, "a", "1");
        for revision in 0..10 {
            put(&picture, "b", &revision.to_string());
        }
        let (last, changes) = picture.changes_since(start);
        assert_eq!(last, start + 11);
        assert_eq!(names(&changes), [("a".to_owned(), true), ("b".to_owned(), true)]);
        let Changes::Rows(rows) = changes else { panic!() };
        assert_eq!(&*rows[1].1.as_ref().unwrap().revision, "9");
        picture.remove(&a);
        picture.remove(&a);
        let (end, changes) = picture.changes_since(last);
        assert_eq!(names(&changes), [("a".to_owned(), false)]);
        assert_eq!(picture.changes_since(end), (end, Changes::Rows(Vec::new())));
        put(&picture, "b", "9");
        assert_eq!(picture.number(), end, "nothing that a row shows has changed");
    }

    #[test]
    fn a_number_that_is_not_known_begins_again() {
        let picture = Picture::default();
        let (start, _) = picture.rows();
        assert_eq!(
            picture.changes_since(start + 1).1,
            Changes::Reset,
            "of the future"
        );
        assert_eq!(picture.changes_since(0).1, Changes::Reset, "of a process before");
        for revision in 0..=MAX_CHANGES {
            put(&picture, "a", &revision.to_string());
        }
        assert_eq!(picture.changes_since(start).1, Changes::Reset, "too far behind");
        assert_ne!(picture.changes_since(start + 1).1, Changes::Reset);
    }

    #[test]
    fn a_new_list_takes_out_what_is_gone() {
        let picture = Picture::default();
        let (here, kind) = ("here".into(), kind::exact("Kustomization").unwrap());
        picture.expect(&here, [(kind, "")]);
        assert!(!picture.clusters()[0].complete);
        put(&picture, "a", "1");
        let b = put(&picture, "b", "1");
        picture.failing(&here, kind, "", "refused".to_owned());
        assert!(picture.clusters()[0].away);
        picture.listed(&here, kind, "", &HashSet::from([b.clone()]));
        let (_, rows) = picture.rows();
        assert_eq!(rows.iter().map(|(key, _)| key).collect::<Vec<_>>(), [&b]);
        let cluster = picture.clusters().remove(0);
        assert!(cluster.complete && !cluster.away && cluster.since.is_some());
        let Known::Whole(object) = picture.object(&b) else {
            panic!()
        };
        assert_eq!(object["metadata"]["name"], "b");
        assert_eq!(picture.objects(&here, kind).len(), 1);
        assert!(picture.objects(&"there".into(), kind).is_empty());
    }

    #[test]
    fn a_kind_is_served_once_it_was_listed_anywhere() {
        let picture = Picture::default();
        let (here, there): (Arc<str>, Arc<str>) = ("here".into(), "there".into());
        let kind = kind::exact("Pipeline").unwrap();
        picture.unreachable(&there, "it cannot be reached");
        picture.expect(&here, [(kind, "")]);
        assert!(!picture.is_served(kind), "it is not known");
        picture.not_served(&here, kind, "");
        assert!(picture.is_complete(&here) && !picture.is_served(kind));
        picture.listed(&here, kind, "", &HashSet::new());
        assert!(picture.is_served(kind), "it was installed since");
    }

    #[test]
    fn a_list_of_a_namespace_leaves_the_others_alone() {
        let picture = Picture::default();
        let (here, kind) = ("here".into(), kind::exact("Kustomization").unwrap());
        picture.expect(&here, [(kind, "shop"), (kind, "bank")]);
        let of_shop = put(&picture, "a", "1");
        picture.listed(&here, kind, "bank", &HashSet::new());
        assert!(matches!(picture.object(&of_shop), Known::Whole(_)));
        assert!(!picture.is_complete(&here), "shop was not listed");
        picture.failing(&here, kind, "shop", "refused".to_owned());
        picture.listed(&here, kind, "bank", &HashSet::new());
        assert!(
            picture.clusters()[0].away,
            "that bank can be watched says nothing of shop"
        );
        picture.listed(&here, kind, "shop", &HashSet::new());
        assert_eq!(picture.object(&of_shop), Known::Absent);
        assert!(picture.is_complete(&here) && !picture.clusters()[0].away);
    }

    #[test]
    fn a_kind_that_may_not_be_listed_is_passed_over_and_told() {
        let picture = Picture::default();
        let (here, kind) = ("here".into(), kind::exact("Kustomization").unwrap());
        picture.expect(&here, [(kind, "shop"), (kind, "bank")]);
        let before = put(&picture, "a", "1");
        picture.refused(&here, kind, "shop");
        picture.refused(&here, kind, "bank");
        assert_eq!(
            picture.object(&before),
            Known::Absent,
            "it may have been allowed before"
        );
        let cluster = picture.clusters().remove(0);
        assert!(cluster.complete && !cluster.away);
        let told = cluster.message.unwrap_or_default();
        assert!(told.ends_with("not shown: Kustomization"), "{told}");
        picture.listed(&here, kind, "shop", &HashSet::new());
        picture.listed(&here, kind, "bank", &HashSet::new());
        assert_eq!(picture.clusters()[0].message, None);
    }

    #[test]
    fn a_cluster_that_is_away_keeps_its_rows_until_it_is_forgotten() {
        let picture = Picture::default();
        let (here, there) = (Arc::from("here"), Arc::from("there"));
        let kind = kind::exact("Kustomization").unwrap();
        picture.unreachable(&there, "it cannot be reached");
        assert!(!picture.is_complete(&here) && picture.clusters()[0].away);
        picture.expect(&there, [(kind, "")]);
        put(&picture, "a", "1");
        let object = json!({"metadata": {"name": "b", "namespace": "shop"}});
        picture.put(&there, kind, &object);
        picture.listed(
            &there,
            kind,
            "",
            &HashSet::from([Key::new(&there, kind, "shop", "b")]),
        );
        let known = |picture: &Picture| {
            let clusters = picture.clusters().into_iter();
            let mut clusters = clusters.filter(|cluster| cluster.name == there);
            clusters.next().unwrap()
        };
        assert!(known(&picture).complete && !known(&picture).away && picture.is_complete(&there));
        picture.unreachable(&there, "it cannot be reached");
        let away = known(&picture);
        assert!(away.away && away.since.is_some());
        assert_eq!(away.message.as_deref(), Some("it cannot be reached"));
        assert_eq!(picture.rows().1.len(), 2);
        let (before, _) = picture.rows();
        picture.forget(&there);
        assert_eq!(picture.rows().1.len(), 1);
        assert_eq!(names(&picture.changes_since(before).1), [("b".to_owned(), false)]);
    }

    #[test]
    fn large_objects_are_known_by_their_rows_and_fill_no_memory() {
        let picture = Picture::default();
        let (here, kind) = ("here".into(), kind::exact("Kustomization").unwrap());
        let put = |number: usize, size: usize| {
            let name = number.to_string();
            picture.put(
                &here,
                kind,
                &json!({
                    "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                    "metadata": {"name": name, "namespace": "shop"}, "spec": {"text": "x".repeat(size)},
                }),
            );
            Key::new(&here, kind, "shop", &name)
        };
        let large = put(0, MAX_OBJECT);
        assert_eq!(picture.object(&large), Known::TooLarge);
        assert_eq!(picture.rows().1.len(), 1);
        put(0, 10);
        assert!(matches!(picture.object(&large), Known::Whole(_)));
        let many = MAX_OBJECTS / (MAX_OBJECT / 2) + 10;
        let all: Vec<Key> = (1..=many).map(|number| put(number, MAX_OBJECT / 2)).collect();
        assert!(picture.read().bytes <= MAX_OBJECTS);
        assert_eq!(picture.object(&all[many - 1]), Known::TooLarge);
        assert_eq!(picture.rows().1.len(), many + 1);
        // What goes makes room again.
        all.iter().for_each(|key| picture.remove(key));
        picture.remove(&large);
        assert_eq!(picture.read().bytes, 0);
        assert_eq!(picture.object(&large), Known::Absent);
    }

    #[test]
    fn who_applied_an_object_is_found_without_reading_the_others() {
        let picture = Picture::default();
        let (here, there) = ("here".into(), "there".into());
        let kind = kind::exact("Kustomization").unwrap();
        let put = |name: &str, applied: &[&str]| {
            let entries: Vec<Value> = applied.iter().map(|id| json!({"id": id, "v": "v1"})).collect();
            let object = json!({
                "metadata": {"name": name, "namespace": "shop"}, "status": {"inventory": {"entries": entries}},
            });
            picture.put(&here, kind, &object);
        };
        let web = ObjectId::parse_inventory_id("shop_web_apps_Deployment").unwrap();
        let found = |cluster: &Arc<str>| {
            let keys = picture.may_have_applied(cluster, kind, &web).into_iter();
            keys.map(|key| key.name.to_string()).collect::<Vec<_>>()
        };
        for number in 0..100 {
            put(&format!("other-{number}"), &["shop_copy_apps_Deployment", ""]);
        }
        assert_eq!(found(&here), [""; 0]);
        put("apps", &["shop_a__ConfigMap", "shop_web_apps_Deployment"]);
        assert_eq!((found(&here), found(&there)), (vec!["apps".to_owned()], vec![]));
        let both = [ObjectId::default(), web.clone()];
        assert_eq!(picture.may_have_applied_any(&here, &both).len(), 1);
        assert_eq!(picture.may_have_applied_any(&here, &both[..1]), []);
        put("apps", &["shop_a__ConfigMap"]);
        assert_eq!(found(&here), [""; 0]);
    }
}
