use serde_json::json;

use super::super::testing::{World, object, record, status_of};
use super::*;

fn world(version: Option<i64>, status: &str) -> World {
    World {
        place: ("web".to_owned(), "apps".to_owned()),
        records: version
            .map(|version| (version, record(version, status)))
            .into_iter()
            .collect(),
        ..World::default()
    }
}

#[tokio::test]
async fn a_release_is_removed_and_forgotten() {
    let mut world = world(Some(1), "deployed");
    let mut status = status_of(&[&record(1, "deployed")]);
    status.storage_namespace = Some("apps".to_owned());
    uninstall(&mut world, &object(&json!({})), &mut status)
        .await
        .unwrap();
    assert!(world.records.is_empty() && status.history.is_empty());
    assert_eq!(status.storage_namespace, None);
    let message = "Helm uninstall succeeded for release apps/web.v1 with chart app@1.0.0";
    assert_eq!(world.events[0].message, message);
    assert_eq!(status.conditions[0].message, message);
}

#[tokio::test]
async fn what_is_gone_already_is_no_failure() {
    let mut status = status_of(&[&record(1, "deployed")]);
    let mut gone = world(None, "");
    uninstall(&mut gone, &object(&json!({})), &mut status)
        .await
        .unwrap();
    assert!(gone.events.is_empty());
    assert_eq!(
        status.conditions[0].message,
        "Release apps/web.v1 was not found, assuming it is uninstalled"
    );
    let mut kept = world(Some(1), "uninstalled");
    kept.keeps_history = true;
    let mut status = status_of(&[&record(1, "deployed")]);
    let keeps = object(&json!({"uninstall": {"keepHistory": true}}));
    uninstall(&mut kept, &keeps, &mut status).await.unwrap();
    assert_eq!(
        status.conditions[0].message,
        "Release apps/web.v1 was already uninstalled"
    );
}

#[tokio::test]
async fn a_failure_leaves_the_release_known() {
    let mut world = world(Some(1), "deployed");
    world
        .script
        .insert("uninstall".to_owned(), ["early".to_owned()].into());
    let mut status = status_of(&[&record(1, "deployed")]);
    uninstall(&mut world, &object(&json!({})), &mut status)
        .await
        .unwrap_err();
    assert_eq!(status.history.len(), 1);
    assert_eq!(status.conditions[0].reason, "UninstallFailed");
}

#[tokio::test]
async fn a_first_install_that_a_crash_broke_off_is_removed_and_nothing_else() {
    let mut status = HelmReleaseStatus::default();
    let mut stranger = world(Some(1), "deployed");
    uninstall(&mut stranger, &object(&json!({})), &mut status)
        .await
        .unwrap();
    assert_eq!(stranger.records.len(), 1, "nothing says that it is ours");
    status.last_attempted_release_action = Some(ReleaseAction::Install);
    let mut left = world(Some(1), "pending-install");
    uninstall(&mut left, &object(&json!({})), &mut status)
        .await
        .unwrap();
    assert!(left.records.is_empty());
}
