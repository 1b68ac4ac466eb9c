//! Which action a state asks for, and what else it says about the object.

use std::collections::BTreeMap;

use api::helm::{DriftDetectionMode, HelmRelease, HelmReleaseStatus, RemediationStrategy, Snapshot};
use api::meta::condition_types::{READY, RELEASED, REMEDIATED};
use controller_kit::conditions::{self, Fact};
use controller_kit::events::Severity;
use helm_release::{Release, Status};

use super::action::Action;
use super::desired::Desired;
use super::drift::Drift;
use super::events::Event;
use super::history::{self, Snapshots as _, full_name};
use super::ledger::Ledger;
use super::policy::{self, Remediation};
use super::reasons::{self, released_message};
use super::requests;
use super::state::{self, State};
use super::summary::summarize;
use super::unlock::unlocked;

/// Next step that follows from a state.
#[derive(Debug)]
pub(super) enum Next {
    /// An action.
    Run(Action),
    /// A rollback to this revision, if the storage still has it as it was left; else an upgrade.
    RollBack(Box<Snapshot>),
    /// Nothing.
    Done,
    /// Nothing, until someone changes something.
    Stalled(Stall),
}

/// Why nothing more is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// It failed too often.
    RetriesExceeded,
    /// There is nothing to roll back to.
    MissingRollbackTarget,
    /// A rollback failed that a person asked for.
    RollbackFailed,
}

/// A change to the ledger that comes with a step.
#[derive(Debug)]
pub(super) enum Change {
    /// Sets a condition.
    State(Fact),
    /// Removes a condition.
    Remove(&'static str),
    /// Makes Ready of the other conditions.
    Summarize,
    /// Publishes an event.
    Publish(Event),
    /// Records that a forced release was requested, whether or not it follows.
    RecordForce,
    /// Takes this record into the history.
    Adopt(Box<Release>),
    /// Empties the history.
    ForgetHistory,
    /// Drops all but the newest snapshots.
    KeepNewest,
    /// Drops the snapshots behind the one that could be rolled back to.
    KeepPrevious {
        /// True if a snapshot with failed tests can be rolled back to.
        ignore_tests: bool,
    },
}

/// Writes changes down.
pub(super) fn record(ledger: &mut Ledger<'_>, changes: Vec<Change>) {
    for change in changes {
        match change {
            Change::State(fact) => ledger.state(fact),
            Change::Remove(type_) => ledger.remove(type_),
            Change::Summarize => summarize(ledger),
            Change::Publish(event) => ledger.events.push(event),
            Change::RecordForce => requests::record_force(ledger.object, ledger.status),
            Change::Adopt(release) => history::adopt(&mut ledger.status.history, &release),
            Change::ForgetHistory => ledger.status.history.clear(),
            Change::KeepNewest => ledger.status.history.truncate_to_newest(),
            Change::KeepPrevious { ignore_tests } => ledger.status.history.truncate_to_previous(ignore_tests),
        }
    }
}

/// Returns the step that a state asks for, and the changes that come with it. `last` is Helm's newest record.
pub(super) fn next(
    object: &HelmRelease,
    status: &HelmReleaseStatus,
    state: State,
    last: Option<&Release>,
    desired: &Desired,
) -> (Next, Vec<Change>) {
    let step = Step {
        object,
        status,
        desired,
        is_forced: requests::asks_for_force(object, status),
    };
    let (next, mut changes) = step.of_state(state, last);
    // Whatever follows: a release that is made for another reason must not be followed by a forced one.
    changes.insert(0, Change::RecordForce);
    (next, changes)
}

/// What a step depends on.
struct Step<'a> {
    object: &'a HelmRelease,
    status: &'a HelmReleaseStatus,
    desired: &'a Desired,
    /// True if a release is to be made whatever the state is.
    is_forced: bool,
}

impl Step<'_> {
    fn of_state(&self, state: State, last: Option<&Release>) -> (Next, Vec<Change>) {
        let alone = |next| (next, Vec::new());
        match state {
            State::InSync => self.in_sync(),
            State::Locked(_) => alone(match last {
                Some(pending) => Next::Run(Action::Unlock(Box::new(unlocked(pending)))),
                None => Next::Run(Action::Install),
            }),
            State::Uninstalling => {
                let adopted = last.map(|last| Change::Adopt(Box::new(last.clone())));
                (Next::Run(Action::FinishUninstall), Vec::from_iter(adopted))
            }
            State::Absent(_) => {
                alone(self.unless_exhausted(Remediation::of_install(self.object), Action::Install))
            }
            State::Unmanaged(_) => (Next::Run(Action::Upgrade), vec![Change::ForgetHistory]),
            State::OutOfSync(_) => {
                alone(self.unless_exhausted(Remediation::of_upgrade(self.object), Action::Upgrade))
            }
            State::Drifted(drift) => self.drifted(drift),
            State::Untested => (Next::Run(Action::Test), self.remediated_is_upgraded()),
            State::BrokenOff(Status::PendingRollback) | State::Failed(_) => self.failed(),
            // A crash is no failure of what is released.
            State::BrokenOff(_) => alone(Next::Run(Action::Upgrade)),
        }
    }

    fn unless_exhausted(&self, remediation: Remediation, action: Action) -> Next {
        if remediation.is_exhausted(self.status) && !self.is_forced {
            Next::Stalled(Stall::RetriesExceeded)
        } else {
            Next::Run(action)
        }
    }

    /// True if failures are retried without a remediation.
    fn retries(&self) -> bool {
        policy::active_retry(self.object, self.status, self.desired.retries_by_default).is_some()
    }

    /// Everything is as it should be; conditions that tell otherwise are of the past.
    fn in_sync(&self) -> (Next, Vec<Change>) {
        let mut changes = vec![if self.retries() {
            Change::KeepNewest
        } else {
            let remediation = Remediation::active(self.object, self.status);
            let ignore_tests = remediation.map_or_else(
                || policy::tests_may_fail(self.object),
                |remediation| remediation.ignores_test_failures(self.object),
            );
            Change::KeepPrevious { ignore_tests }
        }];
        if self.is_forced {
            return (Next::Run(Action::Upgrade), changes);
        }
        let remediated = self.remediated_is_upgraded();
        if remediated.is_empty() {
            changes.extend(self.released_after_all());
        } else {
            changes.extend(remediated);
        }
        if state::drift_mode(self.object) != DriftDetectionMode::Disabled {
            let message = "No drift detected against the cluster state";
            changes.push(Change::State(Fact::does_not_hold(
                reasons::DRIFTED,
                reasons::NO_DRIFT_DETECTED,
                message,
            )));
        }
        (Next::Done, changes)
    }

    /// Corrects a Released that tells of an earlier failure.
    fn released_after_all(&self) -> Vec<Change> {
        let conditions = &self.status.conditions;
        if conditions::is_ready(conditions) && conditions::is_true(conditions, RELEASED) {
            return Vec::new();
        }
        let before = conditions::get(conditions, RELEASED).map_or("", |condition| &condition.reason);
        let reason = match before {
            reasons::INSTALL_FAILED => reasons::INSTALL_SUCCEEDED,
            reasons::UPGRADE_FAILED => reasons::UPGRADE_SUCCEEDED,
            _ => return Vec::new(),
        };
        let Some(current) = history::latest(&self.status.history) else {
            return Vec::new();
        };
        let fact = Fact::holds(RELEASED, reason, released_message(reason, current));
        vec![Change::State(fact), Change::Summarize]
    }

    /// Clears the remediation if the release that was rolled back to is the desired one: it is then released.
    fn remediated_is_upgraded(&self) -> Vec<Change> {
        if !conditions::is_true(&self.status.conditions, REMEDIATED) {
            return Vec::new();
        }
        let Some(current) = history::latest(&self.status.history) else {
            return Vec::new();
        };
        let message = released_message(reasons::UPGRADE_SUCCEEDED, current);
        vec![
            Change::Remove(RELEASED),
            Change::State(Fact::holds(RELEASED, reasons::UPGRADE_SUCCEEDED, message)),
            Change::Remove(REMEDIATED),
        ]
    }

    /// Reports drift, and corrects it if that is wanted.
    fn drifted(&self, drift: Vec<Drift>) -> (Next, Vec<Change>) {
        let (event, fact) = drifted(self.status, &drift);
        let next = if state::drift_mode(self.object) == DriftDetectionMode::Enabled {
            Next::Run(Action::CorrectDrift(drift))
        } else {
            Next::Done
        };
        (next, vec![Change::Publish(event), Change::State(fact)])
    }

    /// Remedies a failure, or tries again.
    fn failed(&self) -> (Next, Vec<Change>) {
        let upgrade = Next::Run(Action::Upgrade);
        if self.retries() {
            return (upgrade, vec![Change::KeepNewest]);
        }
        let Some(remediation) = Remediation::active(self.object, self.status) else {
            return (upgrade, Vec::new());
        };
        // Without failures, what failed was something else.
        if remediation.failures(self.status) <= 0 || self.is_forced {
            return (upgrade, Vec::new());
        }
        let exhausted = remediation.is_exhausted(self.status);
        if exhausted && !remediation.remedies_last_failure {
            return (Next::Stalled(Stall::RetriesExceeded), Vec::new());
        }
        let ignore_tests = remediation.ignores_test_failures(self.object);
        let next = match remediation.strategy {
            RemediationStrategy::Uninstall => Next::Run(Action::UninstallRemediation),
            RemediationStrategy::Rollback => match self.status.history.previous(ignore_tests) {
                Some(previous) => Next::RollBack(Box::new(previous.clone())),
                // Not before every retry was used.
                None if !exhausted => upgrade,
                None => Next::Stalled(Stall::MissingRollbackTarget),
            },
        };
        (next, vec![Change::KeepPrevious { ignore_tests }])
    }
}

/// What is said of drift.
pub(super) fn drifted(status: &HelmReleaseStatus, drift: &[Drift]) -> (Event, Fact) {
    let lines: Vec<_> = drift.iter().map(ToString::to_string).collect();
    let name = history::latest(&status.history)
        .map(full_name)
        .unwrap_or_default();
    let message = format!(
        "Cluster state of release {name} has drifted from the desired state:\n{}",
        lines.join("\n")
    );
    let event = Event {
        severity: Severity::Error,
        reason: reasons::DRIFT_DETECTED,
        message: message.clone(),
        annotations: BTreeMap::new(),
    };
    let fact = Fact::holds(reasons::DRIFTED, reasons::DRIFT_DETECTED, message);
    (event, fact)
}

impl Stall {
    /// Writes it down.
    pub(super) fn record(self, ledger: &mut Ledger<'_>) {
        match self {
            Self::RetriesExceeded => {
                let action = ledger.status.last_attempted_release_action;
                let action = action.map(super::reasons::verb).unwrap_or_default();
                let failures = Remediation::active(ledger.object, ledger.status)
                    .map_or(0, |remediation| remediation.failures(ledger.status));
                ledger.stalled(
                    "RetriesExceeded",
                    format!("Failed to {action} after {failures} attempt(s)"),
                );
            }
            Self::MissingRollbackTarget => {
                let message = "Failed to perform remediation: missing target release for rollback: cannot remediate \
                               failed release";
                // No one looks at Stalled: Ready is what clients show.
                if let Some(ready) = conditions::get(&ledger.status.conditions, READY)
                    && !ready.message.contains(message)
                {
                    let fact = Fact::does_not_hold(
                        READY,
                        &ready.reason.clone(),
                        format!("{}\n\n{message}", ready.message),
                    );
                    ledger.state(fact);
                }
                ledger.stalled("MissingRollbackTarget", message);
            }
            Self::RollbackFailed => {
                let ready = conditions::get(&ledger.status.conditions, READY);
                let message = ready.map(|ready| ready.message.clone()).unwrap_or_default();
                ledger.stalled(reasons::ROLLBACK_FAILED, message);
            }
        }
    }
}

#[cfg(test)]
mod tests;
