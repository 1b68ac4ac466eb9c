//! Watched facts about the objects that Alerts cover: labels, readiness, dependencies. Small.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use crate::alert::engine::Facts;

/// Further objects are not remembered; of them it is asked when it matters.
const MOST_OBJECTS: usize = 50_000;

/// Known facts about an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its condition Ready.
    pub ready: Ready,
    /// The revision that its status is about.
    pub revision: Option<String>,
    /// Objects that it depends on, by `Kind/namespace/name`.
    pub parents: Vec<String>,
}

/// A condition Ready.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ready {
    /// It is.
    True,
    /// It is not.
    False {
        /// The condition's reason.
        reason: String,
        /// The condition's message.
        message: String,
    },
    /// No one says.
    #[default]
    Unknown,
}

/// All objects that are watched, by `Kind/namespace/name`.
#[derive(Debug, Default)]
pub struct Objects(RwLock<HashMap<String, Known>>);

impl Objects {
    /// Takes what is known now, and returns what was.
    pub fn set(&self, object: &str, known: Known) -> Option<Known> {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if objects.len() >= MOST_OBJECTS && !objects.contains_key(object) {
            return None;
        }
        objects.insert(object.to_owned(), known)
    }

    /// Forgets an object.
    pub fn remove(&self, object: &str) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(object);
    }

    /// Forgets the objects of a kind that are not listed.
    pub fn keep(&self, kind: &str, listed: &HashSet<String>) {
        let mut objects = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let is_of_kind = |object: &String| object.split('/').next() == Some(kind);
        objects.retain(|object, _| !is_of_kind(object) || listed.contains(object));
    }

    /// Its labels, if it is known.
    pub fn labels(&self, object: &str) -> Option<BTreeMap<String, String>> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(object).map(|known| known.labels.clone())
    }

    /// The revision that its status is about, if that is known.
    pub fn revision(&self, object: &str) -> Option<String> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects.get(object)?.revision.clone()
    }
}

impl Facts for Objects {
    fn is_failing(&self, object: &str) -> Option<bool> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match objects.get(object)?.ready {
            Ready::True => Some(false),
            Ready::False { .. } => Some(true),
            Ready::Unknown => None,
        }
    }

    fn parents(&self, object: &str) -> Vec<String> {
        let objects = self.0.read().unwrap_or_else(PoisonError::into_inner);
        objects
            .get(object)
            .map(|known| known.parents.clone())
            .unwrap_or_default()
    }
}
