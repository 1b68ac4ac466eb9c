//! Memory that the process keeps of each Kustomization between two reconciles.
//!
//! Nothing here must survive a restart: what is forgotten is found out again by one run that changes nothing.

pub mod rivals;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use api::kustomize::ResourceInventory;
use artifact::Digest;
use cluster_access::targets::Place;
use controller_kit::ObjectKey;
use delivery_statement::Contents;
use jiff::SignedDuration;
use jiff::Timestamp;

use crate::good::Record;
use crate::reconcile::closure::Closure;
use crate::reconcile::plan::{Content, Plan, Trigger};
use crate::reconcile::report::Reports;
use reconcile_kit::fights::Fights;
pub use reconcile_kit::memory::Inputs;
use rivals::Rivals;
use tokio::task::AbortHandle;
use tokio_util::task::AbortOnDropHandle;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All applied, and healthy where health was asked for.
    Succeeded,
    /// Applied; health is being waited for.
    Waiting,
    /// An error, to be retried.
    Failed,
}

/// The newest run.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// Inputs of the run.
    pub inputs: Inputs,
    /// What it applied.
    pub content: Content,
    /// The request (`reconcile.fluxcd.io/requestedAt`) that it answers, if there is one.
    pub request: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// When it ended.
    pub at: Timestamp,
    /// The interval until the next one, with its jitter.
    pub interval: Duration,
}

/// The newest run whose objects were all applied: what makes the next one short.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Generation of the spec that it was built with.
    pub generation: i64,
    /// What it was.
    pub content: Content,
    /// Paths that the build looked at, and their contents.
    pub closure: Arc<Closure>,
    /// Digest of the variables that were substituted, if the spec refers to any.
    pub variables: Option<Digest>,
    /// Digest of the keys that decrypted, if the spec asks for decryption.
    pub keys: Option<Digest>,
    /// Digest of the policies that its images were held against.
    pub policies: u64,
    /// Digest of the built objects, as in the history.
    pub checksum: String,
    /// Where, and as whom.
    pub place: Place,
}

/// The state of a wait for health, as the decision sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    /// True if the answer is there.
    pub finished: bool,
    /// True if the wait is long enough to be reported in the status, and is not reported yet.
    pub untold: bool,
}

/// A wait for health that runs on its own.
#[derive(Debug)]
pub struct Wait {
    /// Tells it from earlier ones of the same object.
    pub number: u64,
    /// Stops the task.
    pub abort: AbortHandle,
    /// When the wait began.
    pub began: Timestamp,
    /// The applied run, recorded when the wait is over.
    pub run: Run,
    /// The answer and when it came, once it is there.
    pub answer: Option<(kube_health::Outcome, Timestamp)>,
    /// It takes long enough to tell of it.
    pub slow: bool,
    /// The status tells of it.
    pub told: bool,
    /// Object that the deletion waits for, as last looked up.
    pub present: Option<String>,
}

/// How far the end of a deleted object's managed objects is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Termination {
    /// They are deleted, and being waited for.
    Awaited,
    /// They are gone, or were waited for long enough.
    Over,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

/// Memory of one object.
#[derive(Debug, Default)]
pub struct Entry {
    /// The newest run.
    pub attempt: Option<Attempt>,
    /// The newest run that applied everything.
    pub applied: Option<Applied>,
    /// The wait that is on.
    pub wait: Option<Wait>,
    /// What is kept of the last revision that was healthy, once that is known.
    pub record: Option<Record>,
    /// What waits for the end of a Freeze.
    pub waits: Option<Inputs>,
    /// What its images do not meet, though they are delivered, as it was reported.
    pub warned: Vec<String>,
    /// Digest of the objects that could not be kept, which was reported.
    pub unkept: Option<String>,
    /// The inputs that are not healthy, and since when.
    pub unhealthy_since: Option<(Inputs, Timestamp)>,
    /// Managed objects were changed or deleted by someone else since the newest run began.
    pub drifted: bool,
    /// A source of variables, or a policy over its images, has changed since the newest run began.
    pub variables_touched: bool,
    /// The newest prune was refused; a person confirms it with this token.
    pub prune_refused: Option<String>,
    /// Objects that left its inventory and wait for others to adopt them.
    pub handing_over: Option<HandOver>,
    /// Objects of ours that another owner applies as well, and whether the status already says so.
    pub rivals: Rivals,
    /// Objects that others change again and again.
    pub fights: Fights,
    /// Since when the artifact that the source names is not there.
    pub missing_since: Option<Timestamp>,
    /// Since when it waits for another object.
    pub blocked_since: Option<Timestamp>,
    /// Waits for the end of namespaces and definitions by which the newest run failed.
    pub revival: Option<AbortOnDropHandle<()>>,
    /// The cause of the newest run's failure is gone.
    pub revived: bool,
    /// How many runs in a row failed like this.
    pub revivals: u8,
    /// The object is being deleted, and what it managed is being waited for.
    pub termination: Option<Termination>,
}

impl Entry {
    /// Returns what is said behind what Ready says anyway: who else has a hand in its objects.
    pub fn ready_suffix(&self, now: Timestamp) -> Option<String> {
        let parts = [self.rivals.ready_suffix(), self.fights.ready_suffix(now)];
        let said: String = parts.into_iter().flatten().collect();
        (!said.is_empty()).then_some(said)
    }
}

/// The entries of all objects.
pub type Memory = reconcile_kit::memory::Memory<Entry>;

/// Notes that an heir has changed; returns who waits for it.
pub fn heir_moved(memory: &Memory, heir: &ObjectKey) -> Vec<ObjectKey> {
    memory.change_where(|entry| {
        let waits = entry.handing_over.as_mut();
        let waits = waits.filter(|waits| waits.heirs.contains(heir));
        waits.map(|waits| waits.moved = true).is_some()
    })
}

/// Notes that a rival is gone; returns whose status has to say so.
pub fn rival_gone(memory: &Memory, rival: &ObjectKey) -> Vec<ObjectKey> {
    memory.change_where(|entry| {
        let before = entry.rivals.objects.len();
        entry.rivals.objects.retain(|_, other| other != rival);
        let has_changed = entry.rivals.objects.len() != before;
        entry.rivals.untold |= has_changed;
        has_changed
    })
}

/// Objects that wait for their heirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOver {
    /// Since when.
    pub since: Timestamp,
    /// For how long.
    pub patience: SignedDuration,
    /// Kustomizations that are expected to adopt the objects.
    pub heirs: BTreeSet<ObjectKey>,
    /// One of them has changed since it was looked at.
    pub moved: bool,
}

impl HandOver {
    /// When it ends at the latest.
    pub fn until(&self) -> Timestamp {
        self.since.checked_add(self.patience).unwrap_or(Timestamp::MAX)
    }
}

/// A run whose objects are applied: all that is left is to wait for health and to record it.
#[derive(Debug, Clone)]
pub struct Run {
    /// The plan that was carried out.
    pub plan: Plan,
    /// When it began.
    pub began: Timestamp,
    /// Digest of the built objects.
    pub checksum: String,
    /// Objects that are managed now.
    pub inventory: ResourceInventory,
    /// True if anything in the cluster was changed.
    pub changed: bool,
    /// Reports for the history.
    pub reports: Reports,
    /// Names and digests of the objects for a statement, if they were applied anew and statements are wanted.
    pub contents: Option<Contents>,
    /// The objects, to be kept if they become healthy.
    pub packed: Option<Arc<[u8]>>,
    /// Objects of a revision that was gone back to which stay as they are.
    pub stays: Vec<String>,
}

impl Run {
    /// No one asked for it, and it changed nothing.
    pub(super) fn quiet(&self) -> bool {
        !self.changed
            && matches!(
                self.plan.trigger,
                Trigger::Interval | Trigger::Startup | Trigger::Variables | Trigger::HandOver
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_heir_that_moves_is_told_to_those_who_wait_for_it() {
        let memory = Memory::default();
        let [old, other, heir] = ["old", "other", "heir"].map(|name| ObjectKey::new("ns", name));
        let waits = |heirs: &ObjectKey| HandOver {
            since: Timestamp::UNIX_EPOCH,
            patience: jiff::SignedDuration::ZERO,
            heirs: [heirs.clone()].into(),
            moved: false,
        };
        memory.with(&old, |entry| entry.handing_over = Some(waits(&heir)));
        memory.with(&other, |entry| entry.handing_over = Some(waits(&old)));
        assert_eq!(heir_moved(&memory, &heir), std::slice::from_ref(&old));
        let moved = |key| {
            memory.with(key, |entry| {
                entry.handing_over.as_ref().is_some_and(|waits| waits.moved)
            })
        };
        assert!(moved(&old) && !moved(&other));
    }
}
