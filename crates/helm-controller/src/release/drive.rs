//! The loop: observe the storage, decide, act, record; until nothing is left to do or nothing more may be done.
//!
//! Each kind of action is done once per run at most, and a run ends with a remedy: what comes after it is another run's, which
//! waits longer each time. What the status must tell if the process is killed in an action is saved before it, what the action
//! has written is in Helm's storage; the next run goes on from there. What is written after the last action is the caller's to
//! save.

use api::helm::{DriftDetectionMode, HelmRelease, HelmReleaseStatus, ReleaseAction};
use api::meta::condition_types::READY;
use api::meta::{Duration, reasons as common};
use controller_kit::conditions::{self, Fact};
use helm_release::Release;

use super::action::{Action, Kind};
use super::desired::Desired;
use super::drift::{Change, Drift};
use super::ledger::Ledger;
use super::next::{self, Next, Stall};
use super::perform::Perform;
use super::performed::{Failure, FailureKind, Performed};
use super::policy::{self, Remediation};
use super::state::{State, drift_mode, state};
use super::{outcome, stranger, verify};

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The release is as desired, or nothing can be done about it before the interval is over.
    Done,
    /// Another run is to follow soon, later each time.
    Requeue,
    /// Another run is to follow after that time.
    RetryAfter(Duration),
    /// No run is to follow until someone changes something.
    Stalled(Stall),
    /// It could not be tried. Another run is to follow, later each time.
    Failed(Failure),
    /// Something is to be done that must wait.
    Frozen,
    /// It was broken off.
    Cancelled,
}

impl Ended {
    /// Returns whether the object's generation has been dealt with: `status.observedGeneration` follows.
    pub fn observes_generation(&self) -> bool {
        matches!(self, Self::Done | Self::RetryAfter(_) | Self::Stalled(_))
    }
}

/// Brings a release into the desired state, as far as one run may. [`begin`](super::begin) goes before it.
pub async fn drive(
    world: &mut impl Perform,
    object: &HelmRelease,
    status: &mut HelmReleaseStatus,
    desired: &Desired,
) -> Ended {
    let mut run = Run {
        world,
        object,
        status,
        desired,
        done: Vec::new(),
        last: None,
        found: None,
    };
    loop {
        if run.world.is_cancelled() {
            return Ended::Cancelled;
        }
        match run.step().await {
            Ok(None) => {}
            Ok(Some(ended)) => return ended,
            Err(failure) if failure.kind == FailureKind::Cancelled => return Ended::Cancelled,
            Err(failure) => return Ended::Failed(failure),
        }
    }
}

/// One run.
struct Run<'a, W> {
    world: &'a mut W,
    object: &'a HelmRelease,
    status: &'a mut HelmReleaseStatus,
    desired: &'a Desired,
    /// The kinds of the actions that were done.
    done: Vec<Kind>,
    /// The newest record, if an action has just written it.
    last: Option<Release>,
    /// Change by someone else, until it is reverted.
    found: Option<String>,
}

impl<W: Perform> Run<'_, W> {
    /// One time around. Some when the run has ended.
    async fn step(&mut self) -> Result<Option<Ended>, Failure> {
        let last = self.newest().await?;
        let state = self.state(last.as_ref()).await?;
        self.notice(&state, last.as_ref());
        let finishes = state == State::Uninstalling;
        let (object, desired) = (self.object, self.desired);
        let (next, changes) = next::next(object, self.status, state, last.as_ref(), desired);
        self.write(|ledger| next::record(ledger, changes));
        let action = match next {
            Next::Run(action) => action,
            Next::RollBack(to) => self.verified_rollback(to).await?,
            Next::Done => {
                self.write(|ledger| {
                    ledger.at_rest();
                    outcome::settled(ledger);
                });
                return Ok(Some(Ended::Done));
            }
            Next::Stalled(stall) => {
                self.write(|ledger| stall.record(ledger));
                return Ok(Some(Ended::Stalled(stall)));
            }
        };
        if !self.world.permits(&action) {
            return Ok(Some(self.wait_with(&action)));
        }
        drop(last);
        debug_assert_eq!(finishes, action.kind() == Kind::Finish);
        if self.done.contains(&action.kind()) {
            return Ok(Some(self.rest_before()));
        }
        self.announce(object, &action).await?;
        self.act(action).await
    }

    /// Tells what someone else has done, if so: before it is undone.
    fn notice(&mut self, state: &State, last: Option<&Release>) {
        // What a run finds after its own actions is its own.
        let found = self
            .done
            .is_empty()
            .then(|| stranger::found(self.status, state, last));
        if let Some(found) = found.flatten() {
            self.world.publish(stranger::event(&found));
            self.found = Some(found);
        }
    }

    /// Helm's newest record.
    async fn newest(&mut self) -> Result<Option<Release>, Failure> {
        if let Some(last) = self.last.take() {
            return Ok(Some(last));
        }
        let read = self.world.last().await;
        read.map_err(|failure| {
            self.undetermined(failure.context("failed to retrieve last release from storage"))
        })
    }

    async fn state(&mut self, last: Option<&Release>) -> Result<State, Failure> {
        let found = state(self.object, self.status, last, self.desired);
        let (State::InSync, Some(last)) = (&found, last) else {
            return Ok(found);
        };
        if drift_mode(self.object) == DriftDetectionMode::Disabled {
            return Ok(found);
        }
        let drift = self.world.drift(last).await;
        let drift = drift
            .map_err(|failure| self.undetermined(failure.context("unable to determine cluster state")))?;
        if drift.iter().any(|drift: &Drift| drift.change.is_drift()) {
            return Ok(State::Drifted(drift));
        }
        debug_assert!(drift.iter().all(|drift| drift.change == Change::Excluded));
        Ok(found)
    }

    fn undetermined(&mut self, failure: Failure) -> Failure {
        if failure.kind != FailureKind::Cancelled {
            let message = format!("Could not determine release state: {failure}");
            self.write(|ledger| ledger.state(Fact::does_not_hold(READY, "StateError", message)));
        }
        failure.context("cannot determine release state")
    }

    /// A rollback, if the storage has the revision as it was left. If not, another upgrade is the best that can be done.
    async fn verified_rollback(&mut self, to: Box<api::helm::Snapshot>) -> Result<Action, Failure> {
        let stored = self.world.get(to.version).await;
        let stored =
            stored.map_err(|failure| failure.context("cannot verify previous release to roll back to"))?;
        let ours = stored.is_some_and(|stored| verify::is_intact(&to, &stored));
        Ok(if ours {
            Action::RollBack(to)
        } else {
            Action::Upgrade
        })
    }

    /// How the run ends if the next action is of a kind that was done already.
    fn rest_before(&mut self) -> Ended {
        if let Some(ended) = self.retry_later() {
            return ended;
        }
        let remediation = Remediation::active(self.object, self.status);
        if remediation.is_none_or(|remediation| !remediation.is_exhausted(self.status)) {
            self.write(|ledger| {
                ledger.reconciling_again();
            });
            return Ended::Requeue;
        }
        self.write(|ledger| {
            ledger.at_rest();
        });
        Ended::Done
    }

    /// How the run ends if the next action is not permitted. Drift is reported all the same.
    fn wait_with(&mut self, action: &Action) -> Ended {
        if !matches!(action, Action::CorrectDrift(_)) {
            return Ended::Frozen;
        }
        self.write(|ledger| {
            ledger.at_rest();
            outcome::settled(ledger);
        });
        Ended::Done
    }

    /// Says what is about to be done, since it may take long.
    async fn announce(&mut self, object: &HelmRelease, action: &Action) -> Result<(), Failure> {
        let timeout = policy::timeout(object, action);
        let message = format!("Running '{}' action with timeout of {timeout}", action.name());
        self.write(|ledger| {
            ledger.reconciling(common::PROGRESSING, message.clone());
            if action.kind() == Kind::Release {
                ledger.state(Fact::is_unknown(READY, common::PROGRESSING, message));
            }
            if matches!(action, Action::CorrectDrift(_)) {
                ledger.state(Fact::is_unknown(
                    READY,
                    common::PROGRESSING,
                    "correcting cluster drift",
                ));
            }
        });
        // Whoever finds a record that no one ended knows by it what was tried.
        match action {
            Action::Install => self.status.last_attempted_release_action = Some(ReleaseAction::Install),
            Action::Upgrade => self.status.last_attempted_release_action = Some(ReleaseAction::Upgrade),
            _ => {}
        }
        self.world.save(self.status).await
    }

    async fn act(&mut self, action: Action) -> Result<Option<Ended>, Failure> {
        let begun = self.world.now();
        let mut performed = self.world.perform(&action).await;
        if matches!(action, Action::Install | Action::Upgrade) {
            let took = self.world.now().duration_since(begun);
            let took = Duration::from(took.unsigned_abs());
            self.status.last_attempted_release_action_duration = Some(took);
        }
        let desired = self.desired;
        if let Err(failure) = &performed.result
            && failure.kind == FailureKind::Refused
        {
            // It is no attempt that counts: what is refused today may be signed tomorrow.
            return Err(failure.clone());
        }
        let recorded = self.write(|ledger| outcome::record(ledger, &action, &performed, desired));
        if is_cancelled(&performed) {
            return Ok(Some(Ended::Cancelled));
        }
        if action.kind() == Kind::Release
            && let Some(found) = self.found.take()
        {
            self.write(|ledger| outcome::explain(ledger, &found));
        }
        if let Err(failure) = recorded {
            return self.could_not(failure).map(Some);
        }
        if action.kind() == Kind::Remediate {
            return Ok(Some(self.rest_after_remedy(performed.result.is_ok())));
        }
        self.done.push(action.kind());
        if !matches!(action, Action::FinishUninstall) {
            self.last = performed.written.pop_last().map(|(_, release)| release);
        }
        Ok(None)
    }

    /// How the run ends if nothing came of an action.
    fn could_not(&mut self, failure: Failure) -> Result<Ended, Failure> {
        if let Some(ended) = self.retry_later() {
            return Ok(ended);
        }
        if conditions::is_ready(&self.status.conditions) {
            let message = failure.to_string();
            self.write(|ledger| ledger.state(Fact::does_not_hold(READY, "ReconcileError", message)));
        }
        Err(failure)
    }

    /// How the run ends after a remedy.
    fn rest_after_remedy(&mut self, remedied: bool) -> Ended {
        if let Some(ended) = self.retry_later() {
            return ended;
        }
        let remediation = Remediation::active(self.object, self.status);
        let goes_on = remediation.is_none_or(|remediation| {
            !remediation.is_exhausted(self.status) || remediation.uninstalls_after_upgrade()
        });
        // A remedy that failed is tried again too: what it was to undo is still there.
        if goes_on || !remedied {
            self.write(|ledger| {
                ledger.reconciling_again();
            });
            return Ended::Requeue;
        }
        self.write(|ledger| Stall::RetriesExceeded.record(ledger));
        Ended::Stalled(Stall::RetriesExceeded)
    }

    /// How the run ends if the strategy is to try again later.
    fn retry_later(&mut self) -> Option<Ended> {
        let interval = policy::active_retry(self.object, self.status, self.desired.retries_by_default)?;
        self.write(|ledger| {
            ledger.reconciling(
                common::PROGRESSING_WITH_RETRY,
                format!("retrying after {interval}"),
            );
        });
        Some(Ended::RetryAfter(interval))
    }

    /// Writes to the status, and publishes what is to be told.
    fn write<T>(&mut self, write: impl FnOnce(&mut Ledger<'_>) -> T) -> T {
        let mut ledger = Ledger::new(self.object, self.status, self.world.now());
        let written = write(&mut ledger);
        for event in ledger.events {
            self.world.publish(event);
        }
        written
    }
}

fn is_cancelled(performed: &Performed) -> bool {
    matches!(&performed.result, Err(failure) if failure.kind == FailureKind::Cancelled)
}

#[cfg(test)]
mod tests;
