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

use api::helm::ReleaseAction;
use api::meta::condition_types::RELEASED;
use api::meta::{FALSE, TRUE};
use controller_kit::conditions::{self, Fact};

use super::action::Action;
use super::desired::Desired;
use super::ledger::Ledger;
use super::performed::{Failure, Performed};
use super::{digests, summary};

pub(super) use drift::record as corrected;
pub(super) use rollback::observe as gone_back;
pub(super) use uninstall::of_uninstall;

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

#[cfg(test)]
mod tests;
