use api::helm::{HelmReleaseStatus, ReleaseAction};
use jiff::Timestamp;
use serde_json::json;

use super::super::testing::{desired, object, record as stored, status_of};
use super::*;

fn name(next: &Next) -> &'static str {
    match next {
        Next::Run(action) => action.name(),
        Next::RollBack(_) => "rollback",
        Next::Done => "done",
        Next::Stalled(Stall::RetriesExceeded) => "too often",
        Next::Stalled(Stall::MissingRollbackTarget) => "no target",
        Next::Stalled(Stall::RollbackFailed) => "failed by hand",
    }
}

fn decide(spec: &serde_json::Value, status: &mut HelmReleaseStatus, state: State) -> &'static str {
    let object = object(spec);
    let last = stored(3, "failed");
    let before = status.clone();
    let (next, changes) = next(&object, status, state, Some(&last), &desired(&json!({})));
    assert_eq!(*status, before, "the decision changes nothing");
    let mut ledger = Ledger::new(&object, status, Timestamp::UNIX_EPOCH);
    record(&mut ledger, changes);
    name(&next)
}

#[test]
fn a_failure_is_remedied_as_the_spec_says() {
    let failed = || {
        let mut status = status_of(&[&stored(3, "failed"), &stored(2, "superseded")]);
        status.last_attempted_release_action = Some(ReleaseAction::Upgrade);
        status.upgrade_failures = 1;
        status
    };
    for (upgrade, expected) in [
        (json!({}), "too often"),
        (json!({"remediation": {"retries": 1}}), "rollback"),
        (json!({"remediation": {"retries": -1}}), "rollback"),
        (json!({"remediation": {"remediateLastFailure": true}}), "rollback"),
        (
            json!({"remediation": {"retries": 1, "strategy": "uninstall"}}),
            "uninstall",
        ),
        (json!({"strategy": {"name": "RetryOnFailure"}}), "upgrade"),
    ] {
        let spec = json!({"upgrade": upgrade});
        assert_eq!(
            decide(&spec, &mut failed(), State::Failed("")),
            expected,
            "{spec}"
        );
        let mut afresh = failed();
        afresh.upgrade_failures = 0;
        assert_eq!(decide(&spec, &mut afresh, State::Failed("")), "upgrade", "{spec}");
        let mut lone = failed();
        lone.history.pop();
        let without = if expected == "rollback" {
            ["upgrade", "no target"]
        } else {
            [expected; 2]
        };
        assert!(
            without.contains(&decide(&spec, &mut lone, State::Failed(""))),
            "{spec}"
        );
    }
}

#[test]
fn a_crash_is_no_failure_and_a_broken_remedy_is_one() {
    let mut status = status_of(&[&stored(2, "superseded")]);
    status.last_attempted_release_action = Some(ReleaseAction::Upgrade);
    status.upgrade_failures = 1;
    let spec = json!({});
    assert_eq!(
        decide(&spec, &mut status, State::BrokenOff(Status::PendingUpgrade)),
        "upgrade"
    );
    assert_eq!(
        decide(&spec, &mut status, State::BrokenOff(Status::PendingRollback)),
        "too often"
    );
    assert_eq!(status.history.len(), 1);
    assert_eq!(
        decide(&spec, &mut status, State::Unmanaged(String::new())),
        "upgrade"
    );
    assert!(status.history.is_empty());
}

#[test]
fn each_state_has_its_next_step() {
    let deployed = || status_of(&[&stored(3, "deployed"), &stored(2, "superseded")]);
    let none = json!({});
    for (state, expected) in [
        (State::InSync, "done"),
        (State::Locked(Status::PendingUpgrade), "unlock"),
        (State::Uninstalling, "uninstall"),
        (State::Absent(""), "install"),
        (State::OutOfSync(""), "upgrade"),
        (State::Untested, "test"),
    ] {
        let told = format!("{state:?}");
        assert_eq!(decide(&none, &mut deployed(), state), expected, "{told}");
    }
    let mut exhausted = deployed();
    exhausted.install_failures = 1;
    exhausted.upgrade_failures = 1;
    for state in [State::Absent(""), State::OutOfSync("")] {
        assert_eq!(decide(&none, &mut exhausted.clone(), state), "too often");
    }
}

#[test]
fn drift_is_reported_and_corrected_if_the_spec_says_so() {
    use super::super::drift::Change as How;
    let drift = || {
        State::Drifted(vec![Drift {
            kind: "ConfigMap".to_owned(),
            namespace: Some("apps".to_owned()),
            name: "a".to_owned(),
            change: How::Removed,
        }])
    };
    for (mode, expected) in [("warn", "done"), ("enabled", "correct cluster drift")] {
        let mut status = status_of(&[&stored(3, "deployed")]);
        let spec = json!({"driftDetection": {"mode": mode}});
        assert_eq!(decide(&spec, &mut status, drift()), expected);
        let told = controller_kit::conditions::get(&status.conditions, reasons::DRIFTED).unwrap();
        assert!(
            told.message.contains("ConfigMap/apps/a removed"),
            "{}",
            told.message
        );
        let told = decide(&spec, &mut status, State::InSync);
        assert_eq!(told, "done");
        let drifted = controller_kit::conditions::is_true(&status.conditions, reasons::DRIFTED);
        assert!(!drifted, "a release in sync has not drifted");
    }
}
