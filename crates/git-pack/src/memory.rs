//! Limits the memory that Git objects take, across all packs of the process.
//!
//! Small objects need no permission. A reader that needs more takes the single turn, and returns it together with the
//! memory. However many packs are read at the same time, the total is therefore bounded by the limits of one pack, plus a small
//! amount for each reader. No reader waits for the network while it holds the turn.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::error::Error;

/// Bytes that each reader may hold without waiting.
const FREE: u64 = 8 << 20;
/// How often one who waits looks whether it was cancelled.
const LOOK: Duration = Duration::from_millis(50);

/// The turn for large objects. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Memory(Arc<Turn>);

#[derive(Debug, Default)]
struct Turn {
    taken: Mutex<bool>,
    free: Condvar,
}

/// Memory that one reader holds.
#[derive(Debug)]
pub(crate) struct Share {
    turn: Arc<Turn>,
    taken: bool,
}

impl Memory {
    pub(crate) fn share(&self) -> Share {
        Share {
            turn: self.0.clone(),
            taken: false,
        }
    }
}

impl Share {
    /// Returns when the reader may hold so many bytes at once. Call it before they are allocated.
    pub(crate) fn hold(&mut self, bytes: u64, cancelled: &AtomicBool) -> Result<(), Error> {
        if bytes <= FREE || self.taken {
            return Ok(());
        }
        let mut taken = self.turn.taken.lock().unwrap_or_else(PoisonError::into_inner);
        while *taken {
            if cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            let woken = self.turn.free.wait_timeout(taken, LOOK);
            taken = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken = true;
        self.taken = true;
        Ok(())
    }

    /// Says that nothing large is held any more.
    pub(crate) fn release(&mut self) {
        if std::mem::take(&mut self.taken) {
            *self.turn.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
            self.turn.free.notify_one();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_large_is_held_by_one_at_a_time() {
        let memory = Memory::default();
        let (mut one, mut other) = (memory.share(), memory.share());
        let go_on = AtomicBool::new(false);
        one.hold(FREE + 1, &go_on).expect("nobody else has it");
        one.hold(10 * FREE, &go_on).expect("it has the turn");
        other.hold(FREE, &go_on).expect("small ones are free");
        let refused = other.hold(FREE + 1, &AtomicBool::new(true));
        assert!(matches!(refused, Err(Error::Cancelled)), "{refused:?}");
        let waiting =
            std::thread::spawn(move || other.hold(FREE + 1, &AtomicBool::new(false)).map(|()| other));
        drop(one);
        let other = waiting.join().expect("no panic").expect("its turn");
        assert!(memory.share().hold(FREE + 1, &AtomicBool::new(true)).is_err());
        drop(other);
        assert!(memory.share().hold(FREE + 1, &AtomicBool::new(true)).is_ok());
    }
}
