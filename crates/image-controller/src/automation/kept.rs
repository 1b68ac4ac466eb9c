//! Commits that stay on the disk between two runs of an automation.
//!
//! After its own push an automation knows the new commit already: the next run asks only where the branch is, and fetches
//! nothing as long as no one else pushed. What is kept belongs to one automation and is used only after the server, asked
//! with that automation's credentials, has named the same commit. Each is bounded, so that no tenant's repository takes the
//! place of all others, and so are all together: the oldest goes first.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use git_client::{Checkout, ObjectId};

/// Bytes of all that is kept: packs on the disk and what is known of their objects.
const MAX_BYTES: u64 = 256 << 20;
/// Bytes of one; a larger one is fetched for each run.
const MAX_BYTES_OF_ONE: u64 = 64 << 20;
/// Memory for each object of a pack, and for each blob that is known.
const BYTES_PER_OBJECT: u64 = 80;
/// Packs of one commit that is kept; each is looked through for an object.
const MAX_ADVANCES: usize = 64;

/// A commit, and what is known of its files.
pub(super) struct Kept {
    pub(super) checkout: Box<Checkout>,
    /// Files in which there is no marker.
    pub(super) plain: HashSet<ObjectId>,
}

impl Kept {
    fn size(&self) -> u64 {
        let pack = &self.checkout.pack;
        let objects = pack.objects() + self.plain.len();
        pack.bytes() + objects as u64 * BYTES_PER_OBJECT
    }
}

/// What an automation works on, as far as it decides which commit it is.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    /// The UID of the automation.
    owner: String,
    url: String,
    branch: String,
    /// The folders that are fetched of it.
    part: Vec<String>,
}

impl Place {
    /// Returns None for an object that no API server has made.
    pub(super) fn new(uid: Option<&str>, url: &str, branch: &str, part: &[String]) -> Option<Self> {
        Some(Self {
            owner: uid?.to_owned(),
            url: url.to_owned(),
            branch: branch.to_owned(),
            part: part.to_vec(),
        })
    }
}

/// All that is kept. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Shelf<Kept>>>);

impl Store {
    /// Takes out what is kept for a place.
    pub(super) fn take(&self, place: &Place) -> Option<Kept> {
        self.locked().take(place)
    }

    /// Keeps a commit, and drops older ones if all together are too large.
    pub(super) fn put(&self, place: Place, kept: Kept) {
        let size = match kept.checkout.pack.advances() {
            0..=MAX_ADVANCES => kept.size(),
            _ => u64::MAX,
        };
        self.locked().put(place, kept, size);
    }

    /// Drops what is kept for an automation that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.locked().forget(uid);
    }

    fn locked(&self) -> MutexGuard<'_, Shelf<Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One thing for each place, bounded. Pure.
struct Shelf<T> {
    kept: HashMap<Place, Slot<T>>,
    turn: u64,
}

struct Slot<T> {
    thing: T,
    /// In bytes.
    size: u64,
    /// When it was put there.
    turn: u64,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self {
            kept: HashMap::new(),
            turn: 0,
        }
    }
}

impl<T> Shelf<T> {
    fn take(&mut self, place: &Place) -> Option<T> {
        self.kept.remove(place).map(|slot| slot.thing)
    }

    fn put(&mut self, place: Place, thing: T, size: u64) {
        // Another branch of the same automation is not needed any more.
        self.forget(&place.owner);
        if size > MAX_BYTES_OF_ONE {
            return;
        }
        self.turn += 1;
        let turn = self.turn;
        self.kept.insert(place, Slot { thing, size, turn });
        while self.kept.values().map(|slot| slot.size).sum::<u64>() > MAX_BYTES {
            let oldest = self.kept.iter().min_by_key(|(_, slot)| slot.turn);
            let Some(oldest) = oldest.map(|(place, _)| place.clone()) else {
                return;
            };
            self.kept.remove(&oldest);
        }
    }

    fn forget(&mut self, owner: &str) {
        self.kept.retain(|place, _| place.owner != owner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn place(owner: &str, branch: &str) -> Place {
        Place::new(Some(owner), "https://h/r", branch, &[]).unwrap()
    }

    #[test]
    fn one_place_of_an_automation_is_kept_and_taken_once() {
        let mut shelf = Shelf::default();
        shelf.put(place("a", "main"), 1, MIB);
        shelf.put(place("b", "main"), 2, MIB);
        shelf.put(place("a", "dev"), 3, MIB);
        assert_eq!(
            shelf.take(&place("a", "main")),
            None,
            "the automation went on to another branch"
        );
        assert_eq!(shelf.take(&place("a", "dev")), Some(3));
        assert_eq!(shelf.take(&place("a", "dev")), None);
        shelf.forget("b");
        assert_eq!(shelf.take(&place("b", "main")), None);
        let part = ["apps".to_owned()];
        let part = Place::new(Some("c"), "https://h/r", "main", &part).unwrap();
        shelf.put(part, 4, MIB);
        assert_eq!(shelf.take(&place("c", "main")), None, "a part is not all");
        assert!(Place::new(None, "https://h/r", "main", &[]).is_none());
    }

    #[test]
    fn nobody_gets_what_another_automation_keeps() {
        let mut shelf = Shelf::default();
        shelf.put(place("victim", "main"), 1, MIB);
        assert_eq!(
            shelf.take(&place("thief", "main")),
            None,
            "the same repository and branch"
        );
        assert_eq!(shelf.take(&place("victim", "main")), Some(1));
    }

    #[test]
    fn the_oldest_goes_when_all_are_too_large_and_a_large_one_is_never_kept() {
        let mut shelf = Shelf::default();
        for owner in ["a", "b", "c", "d"] {
            shelf.put(place(owner, "main"), owner, MAX_BYTES_OF_ONE);
        }
        shelf.put(place("a", "main"), "again", MAX_BYTES_OF_ONE);
        shelf.put(place("e", "main"), "e", 1);
        assert_eq!(
            shelf.take(&place("b", "main")),
            None,
            "the one that was put there first"
        );
        for (owner, thing) in [("a", "again"), ("c", "c"), ("d", "d"), ("e", "e")] {
            assert_eq!(shelf.take(&place(owner, "main")), Some(thing));
        }
        shelf.put(place("f", "main"), "f", MIB);
        shelf.put(place("f", "main"), "larger", MAX_BYTES_OF_ONE + 1);
        assert_eq!(
            shelf.take(&place("f", "main")),
            None,
            "neither the large one nor what it replaces"
        );
    }
}
