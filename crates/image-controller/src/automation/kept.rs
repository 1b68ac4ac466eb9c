//! Commits that stay on the disk between two runs of an automation.
//!
//! After its own push an automation knows the new commit already: the next run asks only where the branch is, and fetches
//! nothing as long as no one else pushed. What is kept belongs to one automation and is used only after the server, asked
//! with that automation's credentials, has named the same commit. Each is bounded, so that no tenant's repository takes the
//! place of all others, and so are all together: the oldest goes first.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

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
}

impl Place {
    /// Returns None for an object that no API server has made.
    pub(super) fn new(uid: Option<&str>, url: &str, branch: &str) -> Option<Self> {
        Some(Self {
            owner: uid?.to_owned(),
            url: url.to_owned(),
            branch: branch.to_owned(),
        })
    }
}

/// All that is kept. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Store(Arc<Mutex<Shelf>>);

#[derive(Default)]
struct Shelf {
    /// With the number of the turn in which it was put there.
    kept: HashMap<Place, (u64, Kept)>,
    turn: u64,
}

impl Store {
    /// Takes out what is kept for a place.
    pub(super) fn take(&self, place: &Place) -> Option<Kept> {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.kept.remove(place).map(|(_, kept)| kept)
    }

    /// Keeps a commit, and drops older ones if all together are too large.
    pub(super) fn put(&self, place: Place, kept: Kept) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another branch of the same automation is not needed any more.
        shelf.kept.retain(|other, _| other.owner != place.owner);
        if kept.checkout.pack.advances() > MAX_ADVANCES || kept.size() > MAX_BYTES_OF_ONE {
            return;
        }
        shelf.turn += 1;
        let turn = shelf.turn;
        shelf.kept.insert(place, (turn, kept));
        while shelf.kept.values().map(|(_, kept)| kept.size()).sum::<u64>() > MAX_BYTES {
            let oldest = shelf.kept.iter().min_by_key(|(_, (turn, _))| *turn);
            let Some(oldest) = oldest.map(|(place, _)| place.clone()) else {
                return;
            };
            shelf.kept.remove(&oldest);
        }
    }

    /// Drops what is kept for an automation that is gone.
    pub(super) fn forget(&self, uid: &str) {
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.kept.retain(|place, _| place.owner != uid);
    }
}
