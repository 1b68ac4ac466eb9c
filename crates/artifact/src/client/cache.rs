//! Blobs and folders that were fetched and verified, by digest; the least recently used ones leave first.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;

use crate::{digest::Digest, tree::Directory};

/// Approximate cost of an item beside its bytes: both maps and the allocations.
const OVERHEAD: usize = 160;
/// A bigger part of the cache is not given to one item.
const LARGEST_PART: usize = 4;

/// The cache. Whoever inserts has verified the digest.
#[derive(Debug)]
pub(super) struct Cache {
    capacity: usize,
    used: usize,
    clock: u64,
    items: HashMap<Key, Item>,
    /// Keys by the time of their last use.
    order: BTreeMap<u64, Key>,
}

/// A blob may have the bytes of a folder's text, so the digest alone is not enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Blob(Digest),
    Directory(Digest),
}

#[derive(Debug)]
struct Item {
    value: Value,
    weight: usize,
    used_at: u64,
}

#[derive(Debug, Clone)]
enum Value {
    Blob(Bytes),
    Directory(Arc<Directory>),
}

impl Cache {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            used: 0,
            clock: 0,
            items: HashMap::new(),
            order: BTreeMap::new(),
        }
    }

    /// Returns whether an item of this size would be kept at all.
    pub(super) fn accepts(&self, size: u64) -> bool {
        size + OVERHEAD as u64 <= (self.capacity / LARGEST_PART) as u64
    }

    pub(super) fn blob(&mut self, digest: &Digest) -> Option<Bytes> {
        match self.get(Key::Blob(*digest))? {
            Value::Blob(blob) => Some(blob),
            Value::Directory(_) => None,
        }
    }

    pub(super) fn directory(&mut self, digest: &Digest) -> Option<Arc<Directory>> {
        match self.get(Key::Directory(*digest))? {
            Value::Directory(directory) => Some(directory),
            Value::Blob(_) => None,
        }
    }

    /// The folder and all below it, each once. None if one of them is not here.
    pub(super) fn directories_below(&mut self, root: &Digest) -> Option<Vec<Arc<Directory>>> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut waiting = vec![*root];
        while let Some(digest) = waiting.pop() {
            if !seen.insert(digest) {
                continue;
            }
            let directory = self.directory(&digest)?;
            let below = directory
                .entries()
                .iter()
                .filter(|entry| entry.kind.is_directory());
            waiting.extend(below.map(|entry| entry.digest));
            found.push(directory);
        }
        Some(found)
    }

    pub(super) fn insert_blob(&mut self, digest: Digest, blob: Bytes) {
        let weight = blob.len();
        self.insert(Key::Blob(digest), Value::Blob(blob), weight);
    }

    pub(super) fn insert_directory(&mut self, digest: Digest, directory: Arc<Directory>) {
        let weight = directory
            .entries()
            .iter()
            .map(|entry| size_of_val(entry) + entry.name.len())
            .sum();
        self.insert(Key::Directory(digest), Value::Directory(directory), weight);
    }

    fn get(&mut self, key: Key) -> Option<Value> {
        let item = self.items.get_mut(&key)?;
        self.clock += 1;
        self.order.remove(&item.used_at);
        item.used_at = self.clock;
        self.order.insert(self.clock, key);
        Some(item.value.clone())
    }

    fn insert(&mut self, key: Key, value: Value, size: usize) {
        if !self.accepts(size as u64) || self.items.contains_key(&key) {
            return;
        }
        let weight = size + OVERHEAD;
        self.clock += 1;
        self.used += weight;
        self.items.insert(
            key,
            Item {
                value,
                weight,
                used_at: self.clock,
            },
        );
        self.order.insert(self.clock, key);
        while self.used > self.capacity {
            let Some((_, oldest)) = self.order.pop_first() else {
                break;
            };
            let item = self.items.remove(&oldest);
            self.used -= item.map_or(0, |item| item.weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(cache: &mut Cache, name: u8, size: usize) -> Digest {
        let digest = Digest::from_content(&[name]);
        cache.insert_blob(digest, vec![name; size].into());
        digest
    }

    #[test]
    fn the_least_recently_used_leave_first_and_memory_is_bounded() {
        let mut cache = Cache::new(10 * (840 + OVERHEAD));
        let digests: Vec<Digest> = (0..10).map(|name| put(&mut cache, name, 840)).collect();
        assert!(cache.blob(&digests[0]).is_some());
        put(&mut cache, 10, 840);
        assert!(cache.blob(&digests[0]).is_some(), "it was just used");
        assert!(cache.blob(&digests[1]).is_none(), "it was used longest ago");
        for name in 11..200 {
            put(&mut cache, name, usize::from(name) * 10);
            assert!(cache.used <= cache.capacity);
            assert_eq!(cache.items.len(), cache.order.len());
        }
    }

    #[test]
    fn an_item_that_would_push_out_most_others_is_not_kept() {
        let mut cache = Cache::new(4000);
        let small = put(&mut cache, 1, 100);
        let large = put(&mut cache, 2, 900);
        assert!(cache.blob(&small).is_some());
        assert!(cache.blob(&large).is_none());
        assert!(!cache.accepts(900) && cache.accepts(840));
    }

    #[test]
    fn a_blob_is_not_a_folder_of_the_same_digest() {
        let mut cache = Cache::new(4000);
        let empty = Digest::from_content(b"");
        cache.insert_blob(empty, Bytes::new());
        assert!(cache.directory(&empty).is_none());
        cache.insert_directory(empty, Arc::default());
        assert!(cache.directory(&empty).is_some() && cache.blob(&empty).is_some());
    }
}
