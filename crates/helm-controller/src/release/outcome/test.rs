//! Effects of a chart's tests on the status.

use api::helm::Snapshot;
use api::meta::condition_types::TEST_SUCCESS;
use controller_kit::conditions::Fact;
use controller_kit::events::Severity;

use super::super::events::Event;
use super::super::history::{self, full_name, has_been_tested, renewed, targets, tests_of, versioned_chart};
use super::super::ledger::Ledger;
use super::super::policy::Remediation;
use crate::release::performed::{Failure, FailureKind, Performed};
use crate::release::reasons;

/// Records it. An error if no test came to an end.
pub(super) fn record(ledger: &mut Ledger<'_>, performed: &Performed) -> Result<(), Failure> {
    if let Err(failure) = &performed.result
        && failure.kind == FailureKind::Cancelled
    {
        // A test that was broken off says nothing.
        return Err(failure.clone());
    }
    observe(ledger, performed);
    let Some(current) = history::latest(&ledger.status.history).cloned() else {
        return Err(Failure::new("no latest release: required for test"));
    };
    let result = performed
        .result
        .clone()
        .and_then(|()| tested_current(&current, performed));
    let Err(failure) = result else {
        succeeded(ledger, &current);
        return Ok(());
    };
    failed(ledger, &current, &failure);
    if has_been_tested(&current) {
        Ok(())
    } else {
        Err(failure)
    }
}

/// Results count for the newest revision only.
fn observe(ledger: &mut Ledger<'_>, performed: &Performed) {
    let filters = ledger
        .object
        .spec
        .test
        .as_ref()
        .map_or(&[][..], |test| &test.filters);
    let Some(current) = ledger.status.history.first_mut() else {
        return;
    };
    let mut written = performed.written.values();
    if let Some(release) = written.find(|release| targets(current, release)) {
        *current = Snapshot {
            test_hooks: Some(tests_of(release, filters)),
            ..renewed(current, release)
        };
    }
}

/// Helm tests what is newest in the storage. That may be someone else's.
fn tested_current(current: &Snapshot, performed: &Performed) -> Result<(), Failure> {
    match performed.written.values().next_back() {
        Some(release) if !targets(current, release) => Err(Failure::new(format!(
            "release mismatch: tested release {}/{}.v{} != current release {}",
            release.namespace,
            release.name,
            release.version,
            full_name(current),
        ))),
        _ => Ok(()),
    }
}

fn succeeded(ledger: &mut Ledger<'_>, current: &Snapshot) {
    let hooks = match current
        .test_hooks
        .as_ref()
        .map_or(0, std::collections::BTreeMap::len)
    {
        0 => "no test hooks".to_owned(),
        1 => "1 test hook completed successfully".to_owned(),
        count => format!("{count} test hooks completed successfully"),
    };
    let (name, chart) = (full_name(current), versioned_chart(current));
    let message = format!("Helm test succeeded for release {name} with chart {chart}: {hooks}");
    ledger.state(Fact::holds(
        TEST_SUCCESS,
        reasons::TEST_SUCCEEDED,
        message.clone(),
    ));
    let event = Event::of_snapshot(Severity::Info, reasons::TEST_SUCCEEDED, message, current);
    ledger.events.push(event);
}

fn failed(ledger: &mut Ledger<'_>, current: &Snapshot, failure: &Failure) {
    let (name, chart) = (full_name(current), versioned_chart(current));
    let message = format!("Helm test failed for release {name} with chart {chart}: {failure}");
    ledger.status.failures = ledger.status.failures.saturating_add(1);
    ledger.state(Fact::does_not_hold(
        TEST_SUCCESS,
        reasons::TEST_FAILED,
        message.clone(),
    ));
    let event = Event::of_snapshot(Severity::Error, reasons::TEST_FAILED, message, current);
    ledger.events.push(event);
    if !has_been_tested(current) {
        return;
    }
    if let Some(remediation) = Remediation::active(ledger.object, ledger.status)
        && !remediation.ignores_test_failures(ledger.object)
    {
        remediation.count_failure(ledger.status);
    }
}
