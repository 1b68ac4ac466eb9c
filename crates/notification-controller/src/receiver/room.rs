//! How much of all bodies is kept at once: of all Receivers together, and of each, so that the callers of one do not keep
//! those of the others out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Room for bodies.
#[derive(Debug)]
pub struct Room {
    most: usize,
    most_of_one: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    of: HashMap<String, usize>,
}

/// Memory that one call holds until it is dropped.
#[derive(Debug)]
pub struct Share {
    room: Arc<Room>,
    receiver: String,
    bytes: usize,
}

/// A body, and the room that it takes; none if it was not kept, and is empty.
#[derive(Debug)]
pub struct Kept {
    /// The body.
    pub bytes: Vec<u8>,
    _share: Option<Share>,
}

impl Kept {
    /// Keeps a body in its room.
    pub fn new(bytes: Vec<u8>, share: Option<Share>) -> Self {
        Self { bytes, _share: share }
    }
}

impl Room {
    /// Has so many bytes for all, and so many for one Receiver.
    pub fn new(most: usize, most_of_one: usize) -> Self {
        Self {
            most,
            most_of_one,
            taken: Mutex::default(),
        }
    }

    /// The share of a call to a Receiver, known by its UID: nothing yet.
    pub fn share(self: &Arc<Self>, receiver: &str) -> Share {
        Share {
            room: Arc::clone(self),
            receiver: receiver.to_owned(),
            bytes: 0,
        }
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    /// Takes more; false if there is no room for it.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let mut taken = self.room.taken();
        let all = taken.all.saturating_add(bytes);
        let one = taken.of.get(&self.receiver).unwrap_or(&0).saturating_add(bytes);
        if all > self.room.most || one > self.room.most_of_one {
            return false;
        }
        taken.all = all;
        taken.of.insert(self.receiver.clone(), one);
        self.bytes += bytes;
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.room.taken();
        taken.all = taken.all.saturating_sub(self.bytes);
        let left = taken
            .of
            .get(&self.receiver)
            .unwrap_or(&0)
            .saturating_sub(self.bytes);
        if left == 0 {
            taken.of.remove(&self.receiver);
        } else {
            taken.of.insert(self.receiver.clone(), left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_leaves_room_for_the_others() {
        let room = Arc::new(Room::new(10, 6));
        let (mut first, mut second, mut other) = (room.share("a"), room.share("a"), room.share("b"));
        assert!(first.grow(2) && first.grow(2) && second.grow(2));
        assert!(!second.grow(1) && !first.grow(1));
        assert!(other.grow(4) && !other.grow(1));
        drop(first);
        assert!(second.grow(4) && !second.grow(1));
        drop((second, other));
        let taken = room.taken();
        assert!(taken.all == 0 && taken.of.is_empty());
    }
}
