//! Effects of a drift correction on the status.

use api::meta::condition_types::READY;
use controller_kit::conditions::Fact;
use controller_kit::events::Severity;

use super::super::events::Event;
use super::super::history::{self, full_name};
use super::super::ledger::Ledger;
use crate::release::performed::{FailureKind, Performed};
use crate::release::reasons;

/// Records it. What failed is tried again by the run that follows.
pub(in crate::release) fn record(ledger: &mut Ledger<'_>, performed: &Performed) {
    let Some(current) = history::latest(&ledger.status.history).cloned() else {
        return;
    };
    let name = full_name(&current);
    let corrected = performed.corrected.join("\n");
    let (severity, reason, message) = match &performed.result {
        Ok(()) if corrected.is_empty() => return,
        Ok(()) => {
            let message = format!("Cluster state of release {name} has been corrected:\n{corrected}");
            (Severity::Info, reasons::DRIFT_CORRECTED, message)
        }
        Err(failure) if failure.kind == FailureKind::Cancelled => return,
        Err(failure) => {
            let partially = if corrected.is_empty() { "" } else { "partially " };
            let mut message =
                format!("Failed to {partially}correct cluster state of release {name}:\n{failure}");
            if !corrected.is_empty() {
                message.push_str("\n\nSuccessful corrections:\n");
                message.push_str(&corrected);
            }
            let reason = reasons::DRIFT_CORRECTION_FAILED;
            ledger.state(Fact::does_not_hold(READY, reason, message.clone()));
            (Severity::Error, reason, message)
        }
    };
    ledger
        .events
        .push(Event::of_snapshot(severity, reason, message, &current));
}
