use serde_json::json;

use super::super::testing::{desired, object, record, status_of};
use super::*;

fn found(last: &Release, status: &HelmReleaseStatus) -> State {
    state(&object(&json!({})), status, Some(last), &desired(&json!({})))
}

#[test]
fn the_newest_record_tells_the_state_if_it_is_ours() {
    let none = HelmReleaseStatus::default();
    assert!(matches!(
        state(&object(&json!({})), &none, None, &desired(&json!({}))),
        State::Absent(_)
    ));
    for (status, unknown, ours) in [
        (
            "deployed",
            State::Unmanaged("found existing release in storage".into()),
            State::InSync,
        ),
        (
            "failed",
            State::Unmanaged("found existing release in storage".into()),
            State::Failed(""),
        ),
        (
            "pending-install",
            State::Locked(Status::PendingInstall),
            State::Locked(Status::PendingInstall),
        ),
        (
            "pending-rollback",
            State::Locked(Status::PendingRollback),
            State::Locked(Status::PendingRollback),
        ),
        ("uninstalling", State::Uninstalling, State::Uninstalling),
        (
            "uninstalled",
            State::Absent("found uninstalled release in storage"),
            State::Absent("found uninstalled release in storage"),
        ),
        (
            "superseded",
            State::Unmanaged("found existing release in storage".into()),
            State::Unmanaged("found release with status 'superseded' in storage".into()),
        ),
    ] {
        let release = record(1, status);
        assert_eq!(found(&release, &none), unknown, "{status}");
        assert_eq!(found(&release, &status_of(&[&release])), ours, "{status}");
    }
}

#[test]
fn what_somebody_else_changed_is_not_ours() {
    let release = record(2, "deployed");
    let mut touched = release.clone();
    "touched".clone_into(&mut touched.info.description);
    let mut status = status_of(&[&release]);
    let stranger = State::Unmanaged("release not observed to be made for object".into());
    assert_eq!(found(&touched, &status), stranger);
    assert_eq!(found(&record(3, "deployed"), &status), stranger);
    // A controller of old made other digests: it is believed.
    status.history[0].api_version = None;
    assert_eq!(found(&touched, &status), State::InSync);
    let mut broken = status_of(&[&release]);
    "sha256:0".clone_into(&mut broken.history[0].digest);
    assert_eq!(
        found(&release, &broken),
        State::Unmanaged("release digest verification error".into())
    );
}

#[test]
fn another_chart_or_value_is_out_of_sync() {
    let release = record(1, "deployed");
    let status = status_of(&[&release]);
    let state = |desired: &Desired| state(&object(&json!({})), &status, Some(&release), desired);
    let mut chart = desired(&json!({}));
    "1.0.1".clone_into(&mut chart.chart_version);
    assert_eq!(state(&chart), State::OutOfSync("release chart changed"));
    assert_eq!(
        state(&desired(&json!({"a": 1}))),
        State::OutOfSync("release config values changed")
    );
}

#[test]
fn metadata_is_compared_for_a_new_generation_and_after_a_failure() {
    let release = record(1, "deployed");
    let object = object(&json!({"commonMetadata": {"labels": {"a": "b"}}}));
    let mut status = status_of(&[&release]);
    let state = |status: &HelmReleaseStatus| state(&object, status, Some(&release), &desired(&json!({})));
    let changed = State::OutOfSync("common metadata digest has changed");
    assert_eq!(state(&status), changed);
    status.observed_generation = Some(1);
    assert_eq!(state(&status), State::InSync);
    status.upgrade_failures = 1;
    assert_eq!(state(&status), changed);
    digests::observe(&object, &mut status);
    assert_eq!(state(&status), State::InSync);
}
