//! The places of work: as many runs at once as there are slots. A run that only waits gives its slot back meanwhile.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// All slots of a queue.
pub(super) struct Slots {
    /// As many as keys are worked on at once.
    pub(super) usual: Arc<Semaphore>,
    /// As many again, for lanes that another one holds up.
    pub(super) spare: Arc<Semaphore>,
}

impl Slots {
    pub(super) fn new(concurrency: usize) -> Self {
        let semaphore = || Arc::new(Semaphore::new(concurrency));
        Self {
            usual: semaphore(),
            spare: semaphore(),
        }
    }
}

/// The slot of one run. Dropping it frees it.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Semaphore>,
    held: Mutex<Option<OwnedSemaphorePermit>>,
    /// Tells the queue that another key may be worked on.
    freed: Arc<Notify>,
}

impl Slot {
    /// A slot, if one is free.
    pub(super) fn take(slots: &Arc<Semaphore>, freed: &Arc<Notify>) -> Option<Self> {
        let held = Arc::clone(slots).try_acquire_owned().ok()?;
        Some(Self {
            slots: Arc::clone(slots),
            held: Mutex::new(Some(held)),
            freed: Arc::clone(freed),
        })
    }

    /// Gives the slot to another run, until [`Slot::resume`].
    pub fn pause(&self) {
        let held = self.held().take();
        if held.is_some() {
            drop(held);
            self.freed.notify_one();
        }
    }

    /// Waits for a slot. Runs that wait here go before keys that wait in the queue.
    pub async fn resume(&self) {
        if self.held().is_some() {
            return;
        }
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        *self.held() = slot.ok();
    }

    fn held(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
