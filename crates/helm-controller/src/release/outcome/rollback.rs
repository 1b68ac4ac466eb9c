//! Effects of a rollback on the status.

use api::helm::Snapshot;
use api::meta::condition_types::REMEDIATED;
use controller_kit::conditions::Fact;
use controller_kit::events::Severity;

use super::super::desired::Desired;
use super::super::events::{self, Event, with_log};
use super::super::history::{self, Snapshots as _, full_name, renewed, versioned_chart};
use super::super::ledger::Ledger;
use crate::release::performed::{Failure, FailureKind, Performed};
use crate::release::reasons;

/// Records a rollback to that revision. An error if no revision was written.
pub(super) fn record(
    ledger: &mut Ledger<'_>,
    to: &Snapshot,
    performed: &Performed,
    desired: &Desired,
) -> Result<(), Failure> {
    observe(ledger, to, performed);
    let (name, chart) = (full_name(to), versioned_chart(to));
    let Err(failure) = &performed.result else {
        let message = format!("Helm rollback to previous release {name} with chart {chart} succeeded");
        ledger.state(Fact::holds(
            REMEDIATED,
            reasons::ROLLBACK_SUCCEEDED,
            message.clone(),
        ));
        publish(
            ledger,
            Severity::Info,
            reasons::ROLLBACK_SUCCEEDED,
            message,
            to,
            desired,
        );
        return Ok(());
    };
    if failure.kind == FailureKind::Cancelled {
        return Err(failure.clone());
    }
    let message = format!("Helm rollback to previous release {name} with chart {chart} failed: {failure}");
    ledger.status.failures = ledger.status.failures.saturating_add(1);
    ledger.state(Fact::does_not_hold(
        REMEDIATED,
        reasons::ROLLBACK_FAILED,
        message.clone(),
    ));
    let message = with_log(&message, performed);
    publish(
        ledger,
        Severity::Error,
        reasons::ROLLBACK_FAILED,
        message,
        to,
        desired,
    );
    if performed.written.is_empty() {
        return Err(failure.clone());
    }
    Ok(())
}

/// The revision that a rollback makes comes from the same artifact as the one that it brings back.
pub(in crate::release) fn observe(ledger: &mut Ledger<'_>, to: &Snapshot, performed: &Performed) {
    let snapshots = &mut ledger.status.history;
    for release in performed.written.values() {
        if let Some(snapshot) = snapshots.find_mut(release) {
            *snapshot = renewed(snapshot, release);
        } else {
            snapshots.insert(
                0,
                history::snapshot(release, Some("rollback"), to.oci_digest.as_deref()),
            );
        }
    }
    snapshots.sort_by_version();
}

fn publish(
    ledger: &mut Ledger<'_>,
    severity: Severity,
    reason: &'static str,
    message: String,
    to: &Snapshot,
    desired: &Desired,
) {
    let annotations = events::annotations(
        &to.chart_version,
        &desired.values_digest,
        to.app_version.as_deref(),
        to.oci_digest.as_deref(),
    );
    ledger.events.push(Event {
        severity,
        reason,
        message,
        annotations,
    });
}
