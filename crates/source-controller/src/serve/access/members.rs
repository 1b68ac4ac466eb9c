//! Which digests are below which root: what a caller that may read one artifact may ask for.
//!
//! A tree is walked when it is first asked about, and the digests are kept while there is room.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use artifact::{
    Digest,
    store::{Result, Store},
};

/// Digests that are kept, of all trees together: about 16 MiB.
const MOST_DIGESTS: usize = 256 * 1024;

/// The digests of trees.
#[derive(Debug, Default)]
pub(super) struct Members {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    trees: HashMap<Digest, Arc<HashSet<Digest>>>,
    digests: usize,
}

impl Members {
    /// The digests of all folders and files of the tree. Reads its folders, so call it where blocking is allowed.
    pub(super) fn members_of(&self, store: &Store, root: &Digest) -> Result<Arc<HashSet<Digest>>> {
        if let Some(members) = self.lock().trees.get(root) {
            return Ok(members.clone());
        }
        let members = Arc::new(walk(store, root)?);
        let mut known = self.lock();
        if known.digests + members.len() > MOST_DIGESTS {
            *known = Known::default();
        }
        if members.len() <= MOST_DIGESTS && known.trees.insert(*root, members.clone()).is_none() {
            known.digests += members.len();
        }
        Ok(members)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn walk(store: &Store, root: &Digest) -> Result<HashSet<Digest>> {
    let mut members = HashSet::from([*root]);
    let mut folders = vec![*root];
    while let Some(folder) = folders.pop() {
        for entry in store.directory(&folder)?.entries() {
            if members.insert(entry.digest) && entry.kind.is_directory() {
                folders.push(entry.digest);
            }
        }
    }
    Ok(members)
}
