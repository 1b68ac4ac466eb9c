//! Effects of an install or an upgrade on the status.

use api::helm::ReleaseAction;
use api::meta::condition_types::{RELEASED, REMEDIATED, TEST_SUCCESS};
use controller_kit::conditions::Fact;
use controller_kit::events::Severity;

use super::super::attempt::clear_failures;
use super::super::desired::Desired;
use super::super::events::{Event, with_log};
use super::super::history::{self, Snapshots as _, full_name, has_been_tested, renewed, versioned_chart};
use super::super::ledger::Ledger;
use super::super::policy::{self, Remediation};
use super::super::{digests, target};
use crate::release::performed::{Failure, FailureKind, Performed};
use crate::release::reasons::{self, released_message, verb};

/// Records it. An error if no revision was written.
pub(super) fn record(
    ledger: &mut Ledger<'_>,
    action: ReleaseAction,
    performed: &Performed,
    desired: &Desired,
) -> Result<(), Failure> {
    if action == ReleaseAction::Install {
        // Nothing from before an install can be rolled back to.
        ledger.status.history.clear();
    }
    ledger.remove(TEST_SUCCESS);
    ledger.remove(REMEDIATED);
    observe(ledger, action, performed);
    let Err(failure) = &performed.result else {
        succeeded(ledger, action, desired);
        return Ok(());
    };
    if failure.kind == FailureKind::Cancelled {
        // Not a failure of what was released: whatever comes next starts afresh.
        clear_failures(ledger.status);
        return Err(failure.clone());
    }
    failed(ledger, action, failure, performed, desired);
    if performed.written.is_empty() {
        return Err(failure.clone());
    }
    remediation(ledger, action).count_failure(ledger.status);
    Ok(())
}

/// The newest revision is ours now; of older ones, what became of them is known anew.
fn observe(ledger: &mut Ledger<'_>, action: ReleaseAction, performed: &Performed) {
    let oci_digest = ledger.status.last_attempted_revision_digest.clone();
    let snapshots = &mut ledger.status.history;
    let mut written = performed.written.values().rev();
    if let Some(newest) = written.next() {
        let snapshot = history::snapshot(newest, Some(verb(action)), oci_digest.as_deref());
        snapshots.insert(0, snapshot);
    }
    for older in written {
        if let Some(snapshot) = snapshots.find_mut(older) {
            *snapshot = renewed(snapshot, older);
        }
    }
    snapshots.sort_by_version();
}

fn succeeded(ledger: &mut Ledger<'_>, action: ReleaseAction, desired: &Desired) {
    let Some(current) = history::latest(&ledger.status.history).cloned() else {
        return;
    };
    let reason = match action {
        ReleaseAction::Install => reasons::INSTALL_SUCCEEDED,
        ReleaseAction::Upgrade => reasons::UPGRADE_SUCCEEDED,
    };
    let message = released_message(reason, &current);
    ledger.state(Fact::holds(RELEASED, reason, message.clone()));
    if policy::tests(ledger.object) && !has_been_tested(&current) {
        let (name, chart) = (full_name(&current), versioned_chart(&current));
        let message = format!("Helm release {name} with chart {chart} is awaiting tests");
        ledger.state(Fact::is_unknown(TEST_SUCCESS, reasons::AWAITING_TESTS, message));
    }
    if policy::retry(ledger.object, action, desired.retries_by_default).is_some() {
        clear_failures(ledger.status);
    }
    digests::observe(ledger.object, ledger.status);
    let event = Event::of_snapshot(Severity::Info, reason, message, &current);
    ledger.events.push(event);
}

fn failed(
    ledger: &mut Ledger<'_>,
    action: ReleaseAction,
    failure: &Failure,
    performed: &Performed,
    desired: &Desired,
) {
    let reason = match action {
        ReleaseAction::Install => reasons::INSTALL_FAILED,
        ReleaseAction::Upgrade => reasons::UPGRADE_FAILED,
    };
    let message = format!(
        "Helm {} failed for release {}/{} with chart {}@{}: {failure}",
        verb(action),
        target::release_namespace(ledger.object),
        target::full_release_name(ledger.object),
        desired.chart_name,
        desired.chart_version,
    );
    ledger.status.failures = ledger.status.failures.saturating_add(1);
    ledger.state(Fact::does_not_hold(RELEASED, reason, message.clone()));
    let message = with_log(&message, performed);
    ledger
        .events
        .push(Event::of_desired(Severity::Error, reason, message, desired));
}

fn remediation(ledger: &Ledger<'_>, action: ReleaseAction) -> Remediation {
    match action {
        ReleaseAction::Install => Remediation::of_install(ledger.object),
        ReleaseAction::Upgrade => Remediation::of_upgrade(ledger.object),
    }
}
