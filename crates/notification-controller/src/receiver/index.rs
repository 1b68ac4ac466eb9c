//! Which Receiver a path belongs to, in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use controller_kit::ObjectKey;
use jiff::Timestamp;

use super::compile::Compiled;

/// Entry of a path.
#[derive(Debug, Clone)]
pub enum Entry {
    /// A Receiver that takes calls.
    Open(Arc<Compiled>),
    /// One that is suspended or not ready.
    Closed,
}

/// Paths to Receivers.
#[derive(Debug, Default)]
pub struct Index(RwLock<Paths>);

#[derive(Debug, Default)]
struct Paths {
    /// Those of generic-oidc hold no secret, so that someone can make a Receiver with the path of another: the older has it.
    entries: HashMap<String, BTreeMap<Owner, Entry>>,
    owners: HashMap<ObjectKey, (String, Owner)>,
}

type Owner = (Timestamp, ObjectKey);

impl Index {
    /// Finds what stands at a path.
    pub fn find(&self, path: &str) -> Option<Entry> {
        let paths = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let owners = paths.entries.get(path)?;
        owners.values().next().cloned()
    }

    /// Returns whether a Receiver takes calls, and by this generation of its spec.
    pub fn is_open(&self, key: &ObjectKey, uid: &str, generation: i64) -> bool {
        let paths = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let owned = paths.owners.get(key);
        let entry = owned.and_then(|(path, owner)| paths.entries.get(path)?.get(owner));
        matches!(entry, Some(Entry::Open(compiled)) if compiled.uid == uid && compiled.generation == generation)
    }

    /// Puts a Receiver at a path, and nowhere else.
    pub fn set(&self, key: &ObjectKey, created: Timestamp, path: &str, entry: Entry) {
        let mut paths = self.0.write().unwrap_or_else(PoisonError::into_inner);
        paths.remove(key);
        let owner = (created, key.clone());
        let owners = paths.entries.entry(path.to_owned()).or_default();
        owners.insert(owner.clone(), entry);
        if owners.len() > 1 {
            tracing::warn!(receiver = %key, "another Receiver has the same path; the older one gets the calls");
        }
        paths.owners.insert(key.clone(), (path.to_owned(), owner));
    }

    /// Takes a Receiver out.
    pub fn remove(&self, key: &ObjectKey) {
        let mut paths = self.0.write().unwrap_or_else(PoisonError::into_inner);
        paths.remove(key);
    }
}

impl Paths {
    fn remove(&mut self, key: &ObjectKey) {
        let Some((path, owner)) = self.owners.remove(key) else {
            return;
        };
        if let Some(owners) = self.entries.get_mut(&path) {
            owners.remove(&owner);
            if owners.is_empty() {
                self.entries.remove(&path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_stands_at_one_path() {
        let index = Index::default();
        let key = ObjectKey::new("apps", "web");
        index.set(&key, Timestamp::UNIX_EPOCH, "/hook/a", Entry::Closed);
        index.set(&key, Timestamp::UNIX_EPOCH, "/hook/b", Entry::Closed);
        assert!(index.find("/hook/a").is_none() && index.find("/hook/b").is_some());
        index.remove(&key);
        assert!(index.find("/hook/b").is_none());
        let paths = index.0.read().unwrap();
        assert!(paths.entries.is_empty() && paths.owners.is_empty());
    }

    #[test]
    fn a_receiver_is_open_by_the_spec_that_it_had() {
        let (index, key) = (Index::default(), ObjectKey::new("apps", "web"));
        assert!(!index.is_open(&key, "uid", 2));
        let compiled = Compiled {
            uid: "uid".to_owned(),
            generation: 2,
            ..Compiled::default()
        };
        let open = Entry::Open(Arc::new(compiled));
        index.set(&key, Timestamp::UNIX_EPOCH, "/hook/a", open);
        assert!(index.is_open(&key, "uid", 2));
        assert!(!index.is_open(&key, "uid", 3) && !index.is_open(&key, "another", 2));
        index.set(&key, Timestamp::UNIX_EPOCH, "/hook/a", Entry::Closed);
        assert!(!index.is_open(&key, "uid", 2));
    }

    #[test]
    fn nobody_takes_a_path_over() {
        let (index, open) = (Index::default(), Arc::new(Compiled::default()));
        let (older, newer) = (ObjectKey::new("c", "ab"), ObjectKey::new("bc", "a"));
        let second = Timestamp::from_second(1).unwrap();
        index.set(&newer, second, "/hook/a", Entry::Closed);
        index.set(&older, Timestamp::UNIX_EPOCH, "/hook/a", Entry::Open(open));
        assert!(matches!(index.find("/hook/a"), Some(Entry::Open(_))));
        index.remove(&older);
        assert!(matches!(index.find("/hook/a"), Some(Entry::Closed)));
    }
}
