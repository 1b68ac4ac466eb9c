//! The newest commits of branches that hold changes.
//!
//! A commit that was judged once is remembered by its hash, so that a branch that stands still is asked for and not fetched.
//! What is forgotten is fetched again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use change_policy::plan::Branch;
use git_client::ObjectId;

/// Entries; when there are more, all are forgotten.
const MAX_HEADS: usize = 10_000;

/// The owner (UID of an automation), the repository and the branch.
pub(in crate::automation) type Key = (String, String, String);

/// What is remembered. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Heads(Arc<Mutex<HashMap<Key, (ObjectId, Branch)>>>);

impl Heads {
    /// Forgets the branches of an automation.
    pub(crate) fn forget(&self, owner: &str) {
        self.locked().retain(|(of, _, _), _| of != owner);
    }

    pub(in crate::automation) fn get(&self, key: &Key) -> Option<(ObjectId, Branch)> {
        self.locked().get(key).cloned()
    }

    pub(in crate::automation) fn put(&self, key: Key, commit: ObjectId, branch: Branch) {
        let mut heads = self.locked();
        if heads.len() >= MAX_HEADS {
            heads.clear();
        }
        heads.insert(key, (commit, branch));
    }

    pub(in crate::automation) fn remove(&self, key: &Key) {
        self.locked().remove(key);
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, HashMap<Key, (ObjectId, Branch)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
