//! Go's maps with string keys: shared, and changed in place for all who hold them.
//!
//! Charts rely on `set` being seen through every reference, so cloning a [`Map`] clones the reference. Keys are kept
//! sorted: templates range over maps in that order, and so do the encoders.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use crate::{Type, Value};

use super::{Str, teardown};

/// A map with its type. Cloning shares the entries.
#[derive(Clone)]
pub struct Map {
    type_: Type,
    entries: Option<Rc<Entries>>,
}

struct Entries(RefCell<BTreeMap<Str, Value>>);

impl Map {
    /// Makes an empty `map[string]interface {}`.
    pub fn new() -> Self {
        Self::with_entries(Type::MAP_ANY, BTreeMap::new())
    }

    /// Makes a map of a type; the values must be of its element type.
    pub fn with_entries(type_: Type, entries: BTreeMap<Str, Value>) -> Self {
        Self {
            type_,
            entries: Some(Rc::new(Entries(RefCell::new(entries)))),
        }
    }

    /// Makes a nil map of a type: empty, and never to be written to.
    pub fn nil(type_: Type) -> Self {
        Self { type_, entries: None }
    }

    /// Returns the same entries seen as another type with the same elements, as Go converts `map[string]any` to a named
    /// type.
    pub fn with_type(&self, type_: Type) -> Self {
        Self {
            type_,
            entries: self.entries.clone(),
        }
    }

    /// Returns the type of the map.
    pub fn type_(&self) -> Type {
        self.type_
    }

    /// Returns whether this is the only reference to the entries.
    pub(crate) fn is_unshared(&self) -> bool {
        self.entries
            .as_ref()
            .is_some_and(|entries| Rc::strong_count(entries) == 1)
    }

    /// Returns whether it is a nil map.
    pub fn is_nil(&self) -> bool {
        self.entries.is_none()
    }

    /// Returns how many entries there are.
    pub fn len(&self) -> usize {
        self.borrow().map_or(0, |entries| entries.len())
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the value of a key.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.borrow()?.get(key.as_ref()).cloned()
    }

    /// Returns whether the key is there.
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> bool {
        self.borrow()
            .is_some_and(|entries| entries.contains_key(key.as_ref()))
    }

    /// Puts a value in; gives false where the map is nil, to which Go refuses to write (`assignment to entry in nil map`).
    ///
    /// A function that a template can call must tell [`crate::Context::mutated`] as well, lest a cycle leaks.
    #[must_use = "a nil map takes no entry"]
    pub fn insert(&self, key: impl Into<Str>, value: impl Into<Value>) -> bool {
        let Some(entries) = &self.entries else {
            return false;
        };
        // What was there is dropped after the borrow has ended: its own drop may come back here.
        let old = entries.0.borrow_mut().insert(key.into(), value.into());
        drop(old);
        true
    }

    /// Takes a key out.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Option<Value> {
        self.entries.as_ref()?.0.borrow_mut().remove(key.as_ref())
    }

    /// Takes all entries out.
    pub fn clear(&self) {
        if let Some(entries) = &self.entries {
            let old = std::mem::take(&mut *entries.0.borrow_mut());
            teardown::release(old.into_values());
        }
    }

    /// Returns the entries as they are now, sorted by key: what a loop sees while the map is changed below it.
    pub fn entries(&self) -> Vec<(Str, Value)> {
        self.borrow().map_or_else(Vec::new, |entries| {
            entries
                .iter()
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        })
    }

    /// Returns the keys, sorted.
    pub fn keys(&self) -> Vec<Str> {
        self.borrow()
            .map_or_else(Vec::new, |entries| entries.keys().cloned().collect())
    }

    /// Borrows the entries to read; nothing may be put in or taken out meanwhile. None for a nil map.
    pub fn borrow(&self) -> Option<Ref<'_, BTreeMap<Str, Value>>> {
        self.entries.as_ref().map(|entries| entries.0.borrow())
    }

    /// Returns whether both are the same map, not only equal.
    pub fn is_same(&self, other: &Map) -> bool {
        match (&self.entries, &other.entries) {
            (Some(one), Some(two)) => Rc::ptr_eq(one, two),
            (None, None) => true,
            _ => false,
        }
    }

    /// Returns a number that tells this map from all others that live: its address.
    pub fn address(&self) -> usize {
        self.entries
            .as_ref()
            .map_or(0, |entries| Rc::as_ptr(entries).addr())
    }
}

impl Default for Map {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Into<Str>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries
            .into_iter()
            .map(|(key, value)| (key.into(), value.into()))
            .collect();
        Self::with_entries(Type::MAP_ANY, entries)
    }
}

impl fmt::Debug for Map {
    /// Shows keys only one level deep: a map may hold itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.type_, self.keys())
    }
}

impl Drop for Entries {
    fn drop(&mut self) {
        teardown::release(std::mem::take(self.0.get_mut()).into_values());
    }
}
