//! Cancels a run's work on other threads: on timeout, when the object is deleted, and at shutdown.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use crate::http;

/// Tells threads to end. Clones tell the same ones.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    interrupt: Arc<AtomicBool>,
    cancel: CancellationToken,
}

impl Stop {
    /// Ends the work.
    pub fn now(&self) {
        self.interrupt.store(true, Ordering::Relaxed);
        self.cancel.cancel();
    }

    /// Fails once the work is cancelled.
    pub fn check(&self) -> Result<(), http::TimedOut> {
        match self.interrupt.load(Ordering::Relaxed) {
            true => Err(http::TimedOut),
            false => Ok(()),
        }
    }

    /// For threads that look from time to time.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.interrupt
    }

    /// For tasks that wait.
    pub fn token(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Tells the threads to end when what is answered is dropped.
    pub fn when_dropped(&self) -> StopWhenDropped {
        StopWhenDropped(Some(self.clone()))
    }
}

/// See [`Stop::when_dropped`].
pub struct StopWhenDropped(Option<Stop>);

impl StopWhenDropped {
    /// The work has ended by itself.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        if let Some(stop) = &self.0 {
            stop.now();
        }
    }
}
