//! Effects of an uninstall on the status: one that removes the release, or one that remediates a failure.

use api::helm::Snapshot;
use api::meta::condition_types::{RELEASED, REMEDIATED};
use controller_kit::conditions::Fact;
use controller_kit::events::Severity;

use super::super::events::{Event, with_log};
use super::super::history::{self, Snapshots as _, full_name, renewed, targets, versioned_chart};
use super::super::ledger::Ledger;
use crate::release::performed::{Failure, FailureKind, Performed};
use crate::release::reasons;

/// Helm may end an uninstall well although it could not write that.
const NO_STORAGE_UPDATE: &str = "uninstall completed with error: release not updated in Helm storage";

/// Records the removal of the release. An error if it is to be tried again.
pub(in super::super) fn of_uninstall(ledger: &mut Ledger<'_>, performed: &Performed) -> Result<(), Failure> {
    let (before, current) = observe(ledger, performed)?;
    let name = full_name(&current);
    match &performed.result {
        Err(failure) if failure.kind == FailureKind::NotFound => {
            let message = format!("Release {name} was not found, assuming it is uninstalled");
            ledger.state(Fact::does_not_hold(
                RELEASED,
                reasons::UNINSTALL_SUCCEEDED,
                message,
            ));
            return Ok(());
        }
        Err(failure) if failure.kind == FailureKind::AlreadyUninstalled && keeps_history(ledger) => {
            let message = format!("Release {name} was already uninstalled");
            ledger.state(Fact::does_not_hold(
                RELEASED,
                reasons::UNINSTALL_SUCCEEDED,
                message,
            ));
            return Ok(());
        }
        Err(failure) if failure.kind == FailureKind::Cancelled => return Err(failure.clone()),
        _ => {}
    }
    let is_stored = before.digest != current.digest || before.status == "uninstalled";
    let chart = versioned_chart(&current);
    if let Err(failure) = verdict(&before, performed, is_stored) {
        let message = format!("Helm uninstall failed for release {name} with chart {chart}: {failure}");
        failed(ledger, RELEASED, &message, &current, performed);
        return Err(failure);
    }
    ledger.status.inventory = None;
    let message = format!("Helm uninstall succeeded for release {name} with chart {chart}");
    let reason = reasons::UNINSTALL_SUCCEEDED;
    ledger.state(Fact::does_not_hold(RELEASED, reason, message.clone()));
    ledger
        .events
        .push(Event::of_snapshot(Severity::Info, reason, message, &current));
    Ok(())
}

/// Records the remedy of a failure. An error if the storage is as it was.
pub(super) fn of_remediation(ledger: &mut Ledger<'_>, performed: &Performed) -> Result<(), Failure> {
    let (before, current) = observe(ledger, performed)?;
    if let Err(failure) = &performed.result
        && failure.kind == FailureKind::Cancelled
    {
        return Err(failure.clone());
    }
    let is_stored = before.digest != current.digest;
    let (name, chart) = (full_name(&current), versioned_chart(&current));
    // Another process may have ended it.
    let gone = matches!(&performed.result, Err(failure) if failure.kind == FailureKind::NotFound);
    match verdict(&before, performed, is_stored) {
        Err(failure) if !gone => {
            let message =
                format!("Helm uninstall remediation for release {name} with chart {chart} failed: {failure}");
            failed(ledger, REMEDIATED, &message, &current, performed);
            if is_stored { Ok(()) } else { Err(failure) }
        }
        _ => {
            let message =
                format!("Helm uninstall remediation for release {name} with chart {chart} succeeded");
            let reason = reasons::UNINSTALL_SUCCEEDED;
            ledger.state(Fact::holds(REMEDIATED, reason, message.clone()));
            ledger
                .events
                .push(Event::of_snapshot(Severity::Info, reason, message, &current));
            Ok(())
        }
    }
}

/// Records what was written. Gives the newest snapshot as it was and as it is.
fn observe(ledger: &mut Ledger<'_>, performed: &Performed) -> Result<(Snapshot, Snapshot), Failure> {
    let snapshots = &mut ledger.status.history;
    let Some(before) = history::latest(snapshots).cloned() else {
        return Err(Failure::new("no latest release: required to uninstall"));
    };
    // Earlier ones may be superseded by it.
    for release in performed.written.values() {
        if let Some(snapshot) = snapshots.find_mut(release) {
            *snapshot = renewed(snapshot, release);
        }
    }
    let current = history::latest(snapshots)
        .cloned()
        .unwrap_or_else(|| before.clone());
    Ok((before, current))
}

fn verdict(before: &Snapshot, performed: &Performed, is_stored: bool) -> Result<(), Failure> {
    performed.result.clone()?;
    match performed.written.values().next_back() {
        Some(release) if !targets(before, release) => Err(Failure::new(format!(
            "release mismatch: uninstalled release {}/{}.v{} != current release {}",
            release.namespace,
            release.name,
            release.version,
            full_name(before),
        ))),
        _ if !is_stored => Err(Failure::new(NO_STORAGE_UPDATE)),
        _ => Ok(()),
    }
}

fn failed(
    ledger: &mut Ledger<'_>,
    condition: &str,
    message: &str,
    current: &Snapshot,
    performed: &Performed,
) {
    let reason = reasons::UNINSTALL_FAILED;
    ledger.status.failures = ledger.status.failures.saturating_add(1);
    ledger.state(Fact::does_not_hold(condition, reason, message));
    let message = with_log(message, performed);
    ledger
        .events
        .push(Event::of_snapshot(Severity::Error, reason, message, current));
}

fn keeps_history(ledger: &Ledger<'_>) -> bool {
    let uninstall = ledger.object.spec.uninstall.as_ref();
    uninstall.is_some_and(|uninstall| uninstall.keep_history)
}
