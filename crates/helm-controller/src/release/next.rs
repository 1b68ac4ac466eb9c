//! Which action a state asks for, and what else it says about the object.

use api::helm::{DriftDetectionMode, RemediationStrategy, Snapshot};
use api::meta::condition_types::{READY, RELEASED, REMEDIATED};
use controller_kit::conditions::Fact;
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
    /// Nothing, until somebody changes something.
    Stalled(Stall),
}

/// Why nothing more is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stall {
    /// It failed too often.
    RetriesExceeded,
    /// There is nothing to roll back to.
    MissingRollbackTarget,
}

/// Says what a state asks for. `last` is Helm's newest record.
pub(super) fn next(ledger: &mut Ledger<'_>, state: State, last: Option<&Release>, desired: &Desired) -> Next {
    // Once, before anything else: a release that is made for another reason must not be followed by a forced one.
    let forced = requests::takes_force(ledger.object, ledger.status);
    match state {
        State::InSync => in_sync(ledger, forced, desired),
        State::Locked(_) => match last {
            Some(pending) => Next::Run(Action::Unlock(Box::new(unlocked(pending)))),
            None => Next::Run(Action::Install),
        },
        State::Uninstalling => {
            if let Some(last) = last {
                history::adopt(&mut ledger.status.history, last);
            }
            Next::Run(Action::FinishUninstall)
        }
        State::Absent(_) => {
            let remediation = Remediation::of_install(ledger.object);
            unless_exhausted(ledger, remediation, forced, Action::Install)
        }
        State::Unmanaged(_) => {
            ledger.status.history.clear();
            Next::Run(Action::Upgrade)
        }
        State::OutOfSync(_) => {
            let remediation = Remediation::of_upgrade(ledger.object);
            unless_exhausted(ledger, remediation, forced, Action::Upgrade)
        }
        State::Drifted(drift) => drifted(ledger, drift),
        State::Untested => {
            remediated_is_upgraded(ledger);
            Next::Run(Action::Test)
        }
        State::BrokenOff(Status::PendingRollback) => failed(ledger, forced, desired),
        // A crash is no failure of what is released.
        State::BrokenOff(_) => Next::Run(Action::Upgrade),
        State::Failed(_) => failed(ledger, forced, desired),
    }
}

fn unless_exhausted(ledger: &Ledger<'_>, remediation: Remediation, forced: bool, action: Action) -> Next {
    if remediation.is_exhausted(ledger.status) && !forced {
        Next::Stalled(Stall::RetriesExceeded)
    } else {
        Next::Run(action)
    }
}

/// Everything is as it should be; conditions that tell otherwise are of the past.
fn in_sync(ledger: &mut Ledger<'_>, forced: bool, desired: &Desired) -> Next {
    if policy::active_retry(ledger.object, ledger.status, desired.retries_by_default).is_some() {
        ledger.status.history.truncate_to_newest();
    } else {
        let remediation = Remediation::active(ledger.object, ledger.status);
        let ignore_tests = remediation.map_or_else(
            || policy::tests_may_fail(ledger.object),
            |remediation| remediation.ignores_test_failures(ledger.object),
        );
        ledger.status.history.truncate_to_previous(ignore_tests);
    }
    if forced {
        return Next::Run(Action::Upgrade);
    }
    remediated_is_upgraded(ledger);
    if !ledger.is_ready() || !ledger.holds(RELEASED) {
        let reason = match ledger.reason(RELEASED) {
            reasons::INSTALL_FAILED => Some(reasons::INSTALL_SUCCEEDED),
            reasons::UPGRADE_FAILED => Some(reasons::UPGRADE_SUCCEEDED),
            _ => None,
        };
        if let (Some(reason), Some(current)) = (reason, history::latest(&ledger.status.history)) {
            let message = released_message(reason, current);
            ledger.state(Fact::holds(RELEASED, reason, message));
            summarize(ledger);
        }
    }
    if state::drift_mode(ledger.object) != DriftDetectionMode::Disabled {
        let message = "No drift detected against the cluster state";
        ledger.state(Fact::does_not_hold(
            reasons::DRIFTED,
            reasons::NO_DRIFT_DETECTED,
            message,
        ));
    }
    Next::Done
}

/// Clears the remediation if the release that was rolled back to is the desired one: it is then released.
fn remediated_is_upgraded(ledger: &mut Ledger<'_>) {
    if !ledger.holds(REMEDIATED) {
        return;
    }
    let Some(current) = history::latest(&ledger.status.history) else {
        return;
    };
    let message = released_message(reasons::UPGRADE_SUCCEEDED, current);
    ledger.remove(RELEASED);
    ledger.state(Fact::holds(RELEASED, reasons::UPGRADE_SUCCEEDED, message));
    ledger.remove(REMEDIATED);
}

/// Reports drift, and corrects it if that is wanted.
fn drifted(ledger: &mut Ledger<'_>, drift: Vec<Drift>) -> Next {
    let lines: Vec<_> = drift.iter().map(ToString::to_string).collect();
    let name = history::latest(&ledger.status.history)
        .map(full_name)
        .unwrap_or_default();
    let message = format!(
        "Cluster state of release {name} has drifted from the desired state:\n{}",
        lines.join("\n")
    );
    ledger.events.push(Event {
        severity: Severity::Error,
        reason: reasons::DRIFT_DETECTED,
        message: message.clone(),
        annotations: std::collections::BTreeMap::new(),
    });
    ledger.state(Fact::holds(reasons::DRIFTED, reasons::DRIFT_DETECTED, message));
    if state::drift_mode(ledger.object) == DriftDetectionMode::Enabled {
        return Next::Run(Action::CorrectDrift(drift));
    }
    Next::Done
}

/// Remedies a failure, or tries again.
pub(super) fn failed(ledger: &mut Ledger<'_>, forced: bool, desired: &Desired) -> Next {
    let object = ledger.object;
    if policy::active_retry(object, ledger.status, desired.retries_by_default).is_some() {
        ledger.status.history.truncate_to_newest();
        return Next::Run(Action::Upgrade);
    }
    let Some(remediation) = Remediation::active(object, ledger.status) else {
        return Next::Run(Action::Upgrade);
    };
    // Without failures, what failed was something else.
    if remediation.failures(ledger.status) <= 0 || forced {
        return Next::Run(Action::Upgrade);
    }
    let exhausted = remediation.is_exhausted(ledger.status);
    if exhausted && !remediation.remedies_last_failure {
        return Next::Stalled(Stall::RetriesExceeded);
    }
    let ignore_tests = remediation.ignores_test_failures(object);
    ledger.status.history.truncate_to_previous(ignore_tests);
    match remediation.strategy {
        RemediationStrategy::Uninstall => Next::Run(Action::UninstallRemediation),
        RemediationStrategy::Rollback => match ledger.status.history.previous(ignore_tests) {
            Some(previous) => Next::RollBack(Box::new(previous.clone())),
            // Not before every retry was used.
            None if !exhausted => Next::Run(Action::Upgrade),
            None => Next::Stalled(Stall::MissingRollbackTarget),
        },
    }
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
                // Nobody looks at Stalled: Ready is what clients show.
                if let Some(ready) = controller_kit::conditions::get(&ledger.status.conditions, READY)
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
        }
    }
}

#[cfg(test)]
mod tests;
