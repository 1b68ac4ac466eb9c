//! Changes collected while a release is driven: conditions, the rest of the status, and events to send.

use api::helm::{HelmRelease, HelmReleaseStatus};
use api::meta::condition_types::{READY, RECONCILING};
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;

use super::events::Event;

/// The status of one object, open for writing.
pub(super) struct Ledger<'a> {
    /// The object; its own status is not looked at.
    pub(super) object: &'a HelmRelease,
    /// The status to write.
    pub(super) status: &'a mut HelmReleaseStatus,
    /// Events to publish.
    pub(super) events: Vec<Event>,
    /// When it is written.
    pub(super) now: Timestamp,
}

impl<'a> Ledger<'a> {
    pub(super) fn new(object: &'a HelmRelease, status: &'a mut HelmReleaseStatus, now: Timestamp) -> Self {
        Self {
            object,
            status,
            events: Vec::new(),
            now,
        }
    }

    /// Sets a condition.
    pub(super) fn state(&mut self, fact: Fact) {
        let generation = self.generation();
        conditions::set(&mut self.status.conditions, fact, generation, self.now);
    }

    /// Removes a condition.
    pub(super) fn remove(&mut self, type_: &str) {
        conditions::remove(&mut self.status.conditions, type_);
    }

    /// Says that work is under way.
    pub(super) fn reconciling(&mut self, reason: &str, message: impl Into<String>) {
        let generation = self.generation();
        conditions::reconciling(&mut self.status.conditions, reason, message, generation, self.now);
    }

    /// Says that work is under way again soon, because of what Ready says.
    pub(super) fn reconciling_again(&mut self) {
        let ready = conditions::get(&self.status.conditions, READY);
        let message = ready.map(|ready| ready.message.clone()).unwrap_or_default();
        self.reconciling(api::meta::reasons::PROGRESSING_WITH_RETRY, message);
    }

    /// Says that nothing is done until someone changes something.
    pub(super) fn stalled(&mut self, reason: &str, message: impl Into<String>) {
        let generation = self.generation();
        conditions::stalled(&mut self.status.conditions, reason, message, generation, self.now);
    }

    /// Says that nothing is under way.
    pub(super) fn at_rest(&mut self) {
        self.remove(RECONCILING);
    }

    pub(super) fn generation(&self) -> i64 {
        self.object.metadata.generation.unwrap_or_default()
    }
}
