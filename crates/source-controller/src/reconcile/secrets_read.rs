//! Which objects have read which Secrets, so that one that failed by a Secret is looked at again when that is fixed.
//!
//! Written by the [`Reader`](remote_access::Reader), since only who reads knows: a chart reads the Secrets of its repository,
//! a ServiceAccount names others. Only names are kept.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use artifact::store;
use controller_kit::ObjectKey;
use remote_access::NoteSecret;

/// Record of which object read which Secrets. Clones are handles to the same record.
#[derive(Clone, Default)]
pub(crate) struct SecretsRead(Arc<Mutex<HashMap<ObjectKey, HashSet<store::ObjectKey>>>>);

/// Secrets that one object reads.
#[derive(Clone)]
pub(crate) struct Reading {
    all: SecretsRead,
    by: store::ObjectKey,
}

impl SecretsRead {
    /// Begins to note what an object reads; what it read before does not count any more.
    pub(crate) fn begin(&self, by: store::ObjectKey) -> Reading {
        self.forget(&by);
        Reading {
            all: self.clone(),
            by,
        }
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, by: &store::ObjectKey) {
        self.lock().retain(|_, readers| {
            readers.remove(by);
            !readers.is_empty()
        });
    }

    /// The objects of a kind that have read a Secret; without one, any Secret.
    pub(crate) fn readers(&self, secret: Option<&ObjectKey>, kind: &str) -> Vec<ObjectKey> {
        let all = self.lock();
        // The store spells kinds in its own way.
        let kind = store::ObjectKey::new(kind, "", "").kind;
        let of_kind = |readers: &HashSet<store::ObjectKey>| -> Vec<ObjectKey> {
            let of_kind = readers.iter().filter(|reader| reader.kind == kind);
            of_kind
                .map(|reader| ObjectKey::new(&reader.namespace, &reader.name))
                .collect()
        };
        match secret {
            Some(secret) => all.get(secret).map_or_else(Vec::new, of_kind),
            None => all.values().flat_map(of_kind).collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, HashSet<store::ObjectKey>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NoteSecret for Reading {
    fn note(&self, namespace: &str, name: &str) {
        let mut all = self.all.lock();
        let readers = all.entry(ObjectKey::new(namespace, name)).or_default();
        readers.insert(self.by.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_known_by_what_it_read_last() {
        let all = SecretsRead::default();
        let secret = |name| ObjectKey::new("apps", name);
        let git = store::ObjectKey::new("GitRepository", "apps", "web");
        all.begin(git.clone()).note("apps", "old");
        all.begin(git.clone()).note("apps", "new");
        assert!(all.readers(Some(&secret("old")), "GitRepository").is_empty());
        assert_eq!(
            all.readers(Some(&secret("new")), "GitRepository"),
            [ObjectKey::new("apps", "web")]
        );
        assert!(all.readers(None, "Bucket").is_empty());
        all.forget(&git);
        assert!(all.lock().is_empty());
    }
}
