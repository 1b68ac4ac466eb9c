//! Tables of what an action leaves in the status, without a loop and without a world.

use std::collections::BTreeMap;

use api::helm::HelmReleaseStatus;
use helm_release::Release;
use jiff::Timestamp;
use serde_json::json;

use super::super::action::Action;
use super::super::ledger::Ledger;
use super::super::performed::{Failure, FailureKind, Performed};
use super::super::testing::{desired, object, record as stored, status_of};
use super::*;

fn performed(written: &[Release], result: Result<(), Failure>) -> Performed {
    Performed {
        written: BTreeMap::from_iter(written.iter().map(|release| (release.version, release.clone()))),
        result,
        log: "helm said so".to_owned(),
        ..Performed::default()
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure {
        kind,
        ..Failure::new("it broke")
    }
}

/// What is left, as text: conditions, counters, versions in the history, reasons of events, and whether it is an error.
fn left(
    spec: &serde_json::Value,
    status: &mut HelmReleaseStatus,
    action: &Action,
    performed: &Performed,
) -> String {
    let object = object(spec);
    let mut ledger = Ledger::new(&object, status, Timestamp::UNIX_EPOCH);
    let result = record(&mut ledger, action, performed, &desired(&json!({})));
    let events: Vec<_> = ledger.events.iter().map(|event| event.reason).collect();
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| format!("{}={}/{}", condition.type_, condition.status, condition.reason))
        .collect();
    let versions: Vec<_> = status.history.iter().map(|snapshot| snapshot.version).collect();
    format!(
        "{} failures={},{},{} history={versions:?} events={events:?}{}",
        conditions.join(" "),
        status.failures,
        status.install_failures,
        status.upgrade_failures,
        if result.is_err() { " error" } else { "" }
    )
}

#[test]
fn each_action_leaves_conditions_counters_history_and_events() {
    let [old, new] = [stored(1, "superseded"), stored(2, "deployed")];
    let broken = stored(2, "failed");
    let back = stored(3, "deployed");
    let failed = || Err(failure(FailureKind::Failed));
    let cases = [
        (
            Action::Install,
            performed(&[stored(1, "deployed")], Ok(())),
            "Ready=True/InstallSucceeded Released=True/InstallSucceeded failures=0,0,0 history=[1] \
             events=[\"InstallSucceeded\"]",
        ),
        (
            Action::Install,
            performed(&[stored(1, "failed")], failed()),
            "Ready=False/InstallFailed Released=False/InstallFailed failures=1,1,0 history=[1] \
             events=[\"InstallFailed\"]",
        ),
        (
            Action::Upgrade,
            performed(&[old.clone(), new], Ok(())),
            "Ready=True/UpgradeSucceeded Released=True/UpgradeSucceeded failures=0,0,0 history=[2, 1] \
             events=[\"UpgradeSucceeded\"]",
        ),
        (
            Action::Upgrade,
            performed(&[broken], failed()),
            "Ready=False/UpgradeFailed Released=False/UpgradeFailed failures=1,0,1 history=[2, 1] \
             events=[\"UpgradeFailed\"]",
        ),
        // Nothing was written: the failure counts, a retry of the action does not.
        (
            Action::Upgrade,
            performed(&[], failed()),
            "Ready=False/UpgradeFailed Released=False/UpgradeFailed failures=1,0,0 history=[1] \
             events=[\"UpgradeFailed\"] error",
        ),
        // What was broken off is no failure.
        (
            Action::Upgrade,
            performed(&[], Err(failure(FailureKind::Cancelled))),
            " failures=0,0,0 history=[1] events=[] error",
        ),
        (
            Action::RollBack(Box::new(super::super::history::snapshot(&old, None, None))),
            performed(&[back], Ok(())),
            "Ready=False/RollbackSucceeded Remediated=True/RollbackSucceeded failures=0,0,0 history=[3, 1] \
             events=[\"RollbackSucceeded\"]",
        ),
        (
            Action::RollBack(Box::new(super::super::history::snapshot(&old, None, None))),
            performed(&[], failed()),
            "Ready=False/RollbackFailed Remediated=False/RollbackFailed failures=1,0,0 history=[1] \
             events=[\"RollbackFailed\"] error",
        ),
        (
            Action::CorrectDrift(Vec::new()),
            performed(&[], failed()),
            "Ready=False/DriftCorrectionFailed failures=0,0,0 history=[1] events=[\"DriftCorrectionFailed\"]",
        ),
    ];
    for (action, performed, expected) in cases {
        let mut status = status_of(&[&old]);
        assert_eq!(
            left(&json!({}), &mut status, &action, &performed),
            expected,
            "{} {:?}",
            action.name(),
            performed.result
        );
    }
}

#[test]
fn an_install_forgets_what_was_before_it() {
    let mut status = status_of(&[&stored(7, "deployed"), &stored(6, "superseded")]);
    let installed = performed(&[stored(1, "deployed")], Ok(()));
    left(&json!({}), &mut status, &Action::Install, &installed);
    let versions: Vec<_> = status.history.iter().map(|snapshot| snapshot.version).collect();
    assert_eq!(
        versions,
        [1],
        "a rollback must not go to a release that was uninstalled"
    );
}

#[test]
fn a_release_with_tests_is_ready_after_them() {
    let spec = json!({"test": {"enable": true}});
    let mut status = HelmReleaseStatus::default();
    let installed = performed(&[stored(1, "deployed")], Ok(()));
    let told = left(&spec, &mut status, &Action::Install, &installed);
    assert!(told.contains("TestSuccess=Unknown/AwaitingTests"), "{told}");
    assert!(told.contains("Ready=Unknown/AwaitingTests"), "{told}");
}
