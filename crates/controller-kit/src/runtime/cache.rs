//! The newest known version of each object: the store, or the answer to a write that the watch has not seen yet.
//!
//! A reconcile that begins right after a status patch would else start from the old status, and compute its own
//! patch against it. Resource versions are compared as numbers: they are that in every API server, and
//! Kubernetes promises it since KEP-5504.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Resource, ResourceExt as _};

use super::strip;

type Answers<K> = Arc<Mutex<HashMap<ObjectRef<K>, Arc<K>>>>;

/// A store with the answers to our own writes laid over it. Clones are the same cache.
#[derive(Clone)]
pub struct Cache<K: Resource<DynamicType = ()> + Clone + 'static> {
    store: Store<K>,
    answers: Answers<K>,
}

impl<K: Resource<DynamicType = ()> + Clone + 'static> Cache<K> {
    /// Lays a cache over a store.
    pub fn new(store: Store<K>) -> Self {
        Self {
            store,
            answers: Arc::default(),
        }
    }

    /// The store below, for listing.
    pub fn store(&self) -> &Store<K> {
        &self.store
    }

    /// The newest known version; None if the object is not there, or is gone.
    pub fn get(&self, reference: &ObjectRef<K>) -> Option<Arc<K>> {
        let stored = self.store.get(reference);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(answer) = answers.get(reference) else {
            return stored;
        };
        match stored {
            Some(stored) if version(&*stored) < version(&**answer) => Some(Arc::clone(answer)),
            stored => {
                answers.remove(reference);
                stored
            }
        }
    }

    /// Remembers the answer to a write until the watch has caught up.
    pub fn remember(&self, mut answer: K) {
        strip(&mut answer);
        let reference = ObjectRef::from_obj(&answer);
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let older = answers
            .get(&reference)
            .is_none_or(|known| version(&**known) < version(&answer));
        if older {
            answers.insert(reference, Arc::new(answer));
        }
    }
}

fn version<K: Resource>(object: &K) -> u64 {
    object
        .resource_version()
        .and_then(|version| version.parse().ok())
        .unwrap_or(0)
}
