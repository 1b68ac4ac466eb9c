//! Effects of unlocking a pending release on the status.

use api::meta::condition_types::RELEASED;
use controller_kit::conditions::Fact;
use controller_kit::events::Severity;
use helm_release::{Release, Status};

use super::super::events::Event;
use super::super::history::{self, Snapshots as _, full_name, versioned_chart};
use super::super::ledger::Ledger;
use super::super::unlock;
use crate::release::performed::{Failure, Performed};
use crate::release::reasons;

/// Records it. `release` is the record as it was to be written.
pub(super) fn record(
    ledger: &mut Ledger<'_>,
    release: &Release,
    performed: &Performed,
) -> Result<(), Failure> {
    let mut current = history::snapshot(release, None, None);
    for written in performed.written.values() {
        if let Some(snapshot) = ledger.status.history.find_mut(written) {
            let (action, oci_digest) = (snapshot.action.take(), snapshot.oci_digest.take());
            *snapshot = history::snapshot(written, action.as_deref(), oci_digest.as_deref());
        }
    }
    if let Some(known) = ledger.status.history.find_mut(release) {
        current.oci_digest.clone_from(&known.oci_digest);
    }
    let pending = unlock::broken_off(release).unwrap_or(Status::Unknown);
    let (name, chart) = (full_name(&current), versioned_chart(&current));
    let (severity, message) = match &performed.result {
        Ok(()) => (
            Severity::Info,
            format!("Unlocked Helm release {name} with chart {chart} in {pending} state"),
        ),
        Err(failure) => {
            ledger.status.failures = ledger.status.failures.saturating_add(1);
            (
                Severity::Error,
                format!(
                    "Unlock of Helm release {name} with chart {chart} in {pending} state failed: {failure}"
                ),
            )
        }
    };
    let reason = reasons::PENDING_RELEASE;
    ledger.state(Fact::does_not_hold(RELEASED, reason, message.clone()));
    ledger
        .events
        .push(Event::of_snapshot(severity, reason, message, &current));
    performed.result.clone()
}
