//! Which events of a watch concern someone: pure bookkeeping of fingerprints.

use std::collections::{HashMap, HashSet};

use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher::Event;
use kube::{Resource, ResourceExt as _};

use super::request::requested_at;

/// Fields of an object whose change triggers a reconciliation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcileTrigger {
    uid: Option<String>,
    generation: Option<i64>,
    deleting: bool,
    requested_at: Option<String>,
}

impl ReconcileTrigger {
    /// Reads the trigger off an object.
    pub fn from_object<K: Resource>(object: &K) -> Self {
        Self {
            uid: object.uid(),
            generation: object.meta().generation,
            deleting: object.meta().deletion_timestamp.is_some(),
            requested_at: requested_at(object).map(str::to_owned),
        }
    }
}

/// Remembers the fingerprint of every object.
pub(super) struct Changes<K: Resource<DynamicType = ()> + 'static, F, P> {
    fingerprint: P,
    known: HashMap<ObjectRef<K>, Option<F>>,
    /// Objects seen so far in the initial list.
    listed: HashSet<ObjectRef<K>>,
    touched: Vec<ObjectRef<K>>,
}

impl<K, F, P> Changes<K, F, P>
where
    K: Resource<DynamicType = ()> + Clone + 'static,
    F: PartialEq,
    P: Fn(&K) -> Option<F>,
{
    pub(super) fn new(fingerprint: P) -> Self {
        Self {
            fingerprint,
            known: HashMap::new(),
            listed: HashSet::new(),
            touched: Vec::new(),
        }
    }

    /// The objects that an event concerns.
    ///
    /// What an initial list brings comes when the list is whole, because the store shows it only then. A list
    /// that follows a broken watch brings what changed meanwhile, and what is gone.
    pub(super) fn touched(&mut self, event: &Event<K>) -> Vec<ObjectRef<K>> {
        match event {
            Event::Apply(object) => {
                self.note(object);
                std::mem::take(&mut self.touched)
            }
            Event::Delete(object) => {
                let reference = ObjectRef::from_obj(object);
                let known = self.known.remove(&reference).flatten();
                known.map(|_| reference).into_iter().collect()
            }
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(object) => {
                self.listed.insert(ObjectRef::from_obj(object));
                self.note(object);
                Vec::new()
            }
            Event::InitDone => {
                self.drop_unlisted();
                std::mem::take(&mut self.touched)
            }
        }
    }

    fn note(&mut self, object: &K) {
        let reference = ObjectRef::from_obj(object);
        let new = (self.fingerprint)(object);
        let old = self.known.get(&reference);
        // Something that never had a fingerprint and has none now concerns no one.
        let concerns = match old {
            Some(old) => *old != new,
            None => new.is_some(),
        };
        if concerns && !self.touched.contains(&reference) {
            self.touched.push(reference.clone());
        }
        self.known.insert(reference, new);
    }

    fn drop_unlisted(&mut self) {
        let listed = std::mem::take(&mut self.listed);
        let gone = self.known.extract_if(|reference, _| !listed.contains(reference));
        let gone = gone.filter_map(|(reference, fingerprint)| fingerprint.map(|_| reference));
        self.touched.extend(gone);
    }
}
