//! Memory of each object between its reconciles. All of it may be lost at any time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use controller_kit::ObjectKey;

/// Inputs of a run, as far as they are known before it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inputs {
    /// Generation of the object's spec.
    pub generation: i64,
    /// Revision of the source's artifact.
    pub revision: String,
    /// Digest of the source's artifact.
    pub digest: String,
}

/// The entries of all objects.
#[derive(Debug)]
pub struct Memory<E> {
    entries: Mutex<HashMap<ObjectKey, E>>,
}

impl<E> Default for Memory<E> {
    fn default() -> Self {
        Self {
            entries: Mutex::default(),
        }
    }
}

impl<E: Default> Memory<E> {
    /// Reads or changes one object's entry; made when it is new.
    pub fn with<T>(&self, key: &ObjectKey, f: impl FnOnce(&mut E) -> T) -> T {
        f(self.lock().entry(key.clone()).or_default())
    }

    /// Reads one object's entry, if there is one.
    pub fn peek<T>(&self, key: &ObjectKey, f: impl FnOnce(&E) -> T) -> Option<T> {
        self.lock().get(key).map(f)
    }

    /// Changes the entries for which `change` says so; returns whose they are.
    pub fn change_where(&self, mut change: impl FnMut(&mut E) -> bool) -> Vec<ObjectKey> {
        let mut entries = self.lock();
        let changed = entries
            .iter_mut()
            .filter_map(|(key, entry)| change(entry).then(|| key.clone()));
        changed.collect()
    }

    /// Drops all that is remembered of an object.
    pub fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, E>> {
        // A panic while the lock is held leaves at worst one entry half-written; the next run repairs it.
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
