//! A stack that is large enough for the deepest expression that the limits let through, and a place to work at.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Only what is used is ever backed by memory. Debug builds need most: some 20 KiB for each level.
const SIZE: usize = 256 << 20;
/// Expressions that are worked on at once in this process: whoever writes many does not take all processors.
const PLACES: usize = 2;

/// How many are worked on.
static BUSY: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

/// Runs `work` there. None when it panicked. Other tasks of the caller's runtime go on meanwhile.
pub(crate) fn run<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    let aside = || {
        let _place = Place::wait();
        thread::scope(|scope| {
            let builder = thread::Builder::new().name("cel".to_owned()).stack_size(SIZE);
            builder.spawn_scoped(scope, work).ok()?.join().ok()
        })
    };
    match Handle::try_current().map(|handle| handle.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => block_in_place(aside),
        _ => aside(),
    }
}

/// One of the places; free again when it is dropped.
struct Place;

impl Place {
    fn wait() -> Self {
        let busy = BUSY.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = FREED.wait_while(busy, |busy| *busy >= PLACES);
        *waited.unwrap_or_else(PoisonError::into_inner) += 1;
        Self
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        *BUSY.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        FREED.notify_one();
    }
}
