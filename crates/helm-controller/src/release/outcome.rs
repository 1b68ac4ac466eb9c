//! Effects of an action on the status: history, counters, conditions, and the events to publish. One file per
//! action.
//!
//! Each function takes what was performed and gives an error if nothing came of it: the storage is as it was, and the action is
//! simply to be tried again.

mod drift;
mod release;
mod rollback;
mod test;
mod uninstall;
mod unlock;

use api::helm::{ReleaseAction, Snapshot};
use api::meta::condition_types::RELEASED;
use api::meta::{FALSE, TRUE};
use controller_kit::conditions::{self, Fact};

use super::desired::Desired;
use super::history::{full_name, versioned_chart};
use super::ledger::Ledger;
use super::next::Action;
use super::perform::{Failure, Performed};
use super::{digests, summary};

pub(super) use uninstall::of_uninstall;

/// Reasons and condition types that only a HelmRelease has.
pub(super) mod reasons {
    pub(in super::super) const INSTALL_SUCCEEDED: &str = "InstallSucceeded";
    pub(in super::super) const INSTALL_FAILED: &str = "InstallFailed";
    pub(in super::super) const UPGRADE_SUCCEEDED: &str = "UpgradeSucceeded";
    pub(in super::super) const UPGRADE_FAILED: &str = "UpgradeFailed";
    pub(in super::super) const TEST_SUCCEEDED: &str = "TestSucceeded";
    pub(in super::super) const TEST_FAILED: &str = "TestFailed";
    pub(in super::super) const ROLLBACK_SUCCEEDED: &str = "RollbackSucceeded";
    pub(in super::super) const ROLLBACK_FAILED: &str = "RollbackFailed";
    pub(in super::super) const UNINSTALL_SUCCEEDED: &str = "UninstallSucceeded";
    pub(in super::super) const UNINSTALL_FAILED: &str = "UninstallFailed";
    pub(in super::super) const PENDING_RELEASE: &str = "PendingRelease";
    pub(in super::super) const AWAITING_TESTS: &str = "AwaitingTests";
    pub(in super::super) const FOREIGN_CHANGE: &str = "ForeignReleaseChange";
    pub(in super::super) const DRIFTED: &str = "Drifted";
    pub(in super::super) const DRIFT_DETECTED: &str = "DriftDetected";
    pub(in super::super) const NO_DRIFT_DETECTED: &str = "NoDriftDetected";
    pub(in super::super) const DRIFT_CORRECTED: &str = "DriftCorrected";
    pub(in super::super) const DRIFT_CORRECTION_FAILED: &str = "DriftCorrectionFailed";
}

/// Records the outcome of an action, and makes Ready of it.
pub(super) fn record(
    ledger: &mut Ledger<'_>,
    action: &Action,
    performed: &Performed,
    desired: &Desired,
) -> Result<(), Failure> {
    if let Some(inventory) = &performed.inventory {
        ledger.status.inventory = Some(inventory.clone());
    }
    let result = match action {
        Action::Install => release::record(ledger, ReleaseAction::Install, performed, desired),
        Action::Upgrade => release::record(ledger, ReleaseAction::Upgrade, performed, desired),
        Action::RollBack(to) => rollback::record(ledger, to, performed, desired),
        // Ready goes on to tell why it was needed.
        Action::UninstallRemediation | Action::FinishUninstall => {
            return uninstall::of_remediation(ledger, performed);
        }
        Action::Uninstall => of_uninstall(ledger, performed),
        Action::Test => test::record(ledger, performed),
        Action::Unlock(release) => unlock::record(ledger, release, performed),
        Action::CorrectDrift(_) => {
            drift::record(ledger, performed);
            return Ok(());
        }
    };
    summary::summarize(ledger);
    result
}

/// Records that the release is as desired, so that what is rendered next is compared with it.
pub(super) fn settled(ledger: &mut Ledger<'_>) {
    summary::summarize(ledger);
    digests::observe(ledger.object, ledger.status);
}

/// Says with what was released why it was.
pub(super) fn explain(ledger: &mut Ledger<'_>, found: &str) {
    let released = conditions::get(&ledger.status.conditions, RELEASED);
    let Some(fact) = released.map(|released| Fact {
        type_: released.type_.clone(),
        status: if released.status == TRUE { TRUE } else { FALSE },
        reason: released.reason.clone(),
        message: format!("{} ({found})", released.message),
    }) else {
        return;
    };
    ledger.state(fact);
    summary::summarize(ledger);
}

/// That a revision was made.
pub(super) fn made(reason: &str, snapshot: &Snapshot) -> String {
    let action = match reason {
        reasons::INSTALL_SUCCEEDED => "install",
        _ => "upgrade",
    };
    format!(
        "Helm {action} succeeded for release {} with chart {}",
        full_name(snapshot),
        versioned_chart(snapshot)
    )
}

/// The action as a verb.
pub(super) fn verb(action: ReleaseAction) -> &'static str {
    match action {
        ReleaseAction::Install => "install",
        ReleaseAction::Upgrade => "upgrade",
    }
}
