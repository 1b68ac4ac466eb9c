//! Interface of the loop to the world: Helm's storage, comparison with the cluster, actions, and progress
//! reports.

use std::future::Future;

use api::helm::HelmReleaseStatus;
use helm_release::Release;
use jiff::Timestamp;

use super::action::Action;
use super::drift::Drift;
use super::events::Event;
use super::performed::{Failure, Performed};

/// The world around one release.
///
/// Whatever it reads and writes is about one name in one storage namespace. A process may be killed at any moment: what it
/// says was written must be.
pub trait Perform: Send {
    /// The newest record.
    fn last(&mut self) -> impl Future<Output = Result<Option<Release>, Failure>> + Send;

    /// The record of a revision.
    fn get(&mut self, version: i64) -> impl Future<Output = Result<Option<Release>, Failure>> + Send;

    /// Which objects differ from the manifest. An error only if nothing can be said; asked only where drift matters.
    fn drift(&mut self, release: &Release) -> impl Future<Output = Result<Vec<Drift>, Failure>> + Send;

    /// Does it, and waits for it.
    fn perform(&mut self, action: &Action) -> impl Future<Output = Performed> + Send;

    /// Writes the status while it goes on. What changes nothing need not be sent.
    fn save(&mut self, status: &HelmReleaseStatus) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Publishes an event, in the background.
    fn publish(&mut self, event: Event);

    /// Returns whether an action may be done now.
    fn permits(&self, action: &Action) -> bool {
        let _ = action;
        true
    }

    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns whether the run is to end: the process does, or a newer run waits.
    fn is_cancelled(&self) -> bool;
}
