//! Where the loop goes on and Flux's does not: see docs/compatibility/flux.md.

use std::collections::VecDeque;

use helm_release::Status;
use serde_json::{Value, json};

use super::super::*;
use crate::release::performed::Failure;
use crate::release::testing::{World, desired, object, record};
use crate::release::{begin, history};

struct Scene {
    world: World,
    object: HelmRelease,
    status: HelmReleaseStatus,
    desired: Desired,
}

impl Scene {
    fn new(spec: &Value) -> Self {
        let world = World {
            place: ("web".to_owned(), "apps".to_owned()),
            ..World::default()
        };
        Self {
            world,
            object: object(spec),
            status: HelmReleaseStatus::default(),
            desired: desired(&json!({})),
        }
    }

    /// Actions end so, each of the last kind named first.
    fn script(&mut self, endings: &[(&str, &str)]) {
        self.world.script.clear();
        for (action, how) in endings {
            let queue = self.world.script.entry((*action).to_owned()).or_default();
            VecDeque::push_back(queue, (*how).to_owned());
        }
    }

    async fn run(&mut self) -> Ended {
        self.world.performed.clear();
        self.world.events.clear();
        begin(&self.object, &mut self.status, &self.desired);
        let ended = drive(&mut self.world, &self.object, &mut self.status, &self.desired).await;
        if ended.observes_generation() {
            self.status.observed_generation = self.object.metadata.generation;
        }
        ended
    }

    fn newer_chart(&mut self) {
        "2.0.0".clone_into(&mut self.desired.chart_version);
        "2.0.0".clone_into(&mut self.world.chart.version);
    }

    fn ready(&self) -> (&str, &str, &str) {
        let ready = conditions::get(&self.status.conditions, READY).unwrap();
        (&ready.status, &ready.reason, &ready.message)
    }

    fn performed(&self) -> Vec<&str> {
        self.world.performed.iter().map(String::as_str).collect()
    }
}

#[tokio::test]
async fn an_upgrade_with_nothing_to_roll_back_to_uses_its_retries_and_says_why_it_ends() {
    let mut scene = Scene::new(&json!({"upgrade": {"remediation": {"retries": 1}}}));
    scene.script(&[("install", "failed")]);
    assert_eq!(scene.run().await, Ended::Stalled(Stall::RetriesExceeded));
    scene.newer_chart();
    scene.script(&[("upgrade", "failed")]);
    assert_eq!(scene.run().await, Ended::Requeue);
    assert_eq!(scene.performed(), ["upgrade failed"]);
    scene.script(&[("upgrade", "failed")]);
    assert_eq!(scene.run().await, Ended::Stalled(Stall::MissingRollbackTarget));
    assert_eq!(
        scene.performed(),
        ["upgrade failed"],
        "the one retry that was asked for"
    );
    let (status, reason, message) = scene.ready();
    assert_eq!((status, reason), ("False", "UpgradeFailed"));
    assert!(
        message.contains(": boom\n\nFailed to perform remediation: missing target"),
        "{message}"
    );
    let before = message.to_owned();
    assert_eq!(scene.run().await, Ended::Stalled(Stall::MissingRollbackTarget));
    assert_eq!(scene.ready().2, before);
}

#[tokio::test]
async fn a_remedy_that_fails_is_tried_again() {
    let mut scene = Scene::new(&json!({"upgrade": {"remediation": {"remediateLastFailure": true}}}));
    scene.run().await;
    scene.newer_chart();
    scene.script(&[("upgrade", "failed"), ("rollback", "failed")]);
    assert_eq!(scene.run().await, Ended::Requeue);
    assert_eq!(scene.ready().1, "RollbackFailed");
    assert_eq!(scene.run().await, Ended::Stalled(Stall::RetriesExceeded));
    assert_eq!(scene.performed(), ["rollback ok"]);
    assert_eq!(scene.ready().1, "RollbackSucceeded");
    assert_eq!(scene.world.records[&4].manifest, "# app@1.0.0\n");
    let version = history::latest(&scene.status.history).unwrap();
    assert_eq!(
        (version.version, version.action.as_deref()),
        (4, Some("rollback"))
    );
}

#[tokio::test]
async fn an_uninstall_that_was_not_ended_is_ended_and_then_it_is_installed() {
    for known in [false, true] {
        let mut scene = Scene::new(&json!({}));
        if known {
            scene.run().await;
        }
        scene.world.records.insert(1, record(1, "uninstalling"));
        assert_eq!(scene.run().await, Ended::Done, "{known}");
        assert_eq!(scene.performed(), ["uninstall ok", "install ok"]);
        assert_eq!(
            scene.ready(),
            (
                "True",
                "InstallSucceeded",
                "Helm install succeeded for release apps/web.v1 with chart app@1.0.0",
            )
        );
        assert!(conditions::get(&scene.status.conditions, "Remediated").is_none());
    }
}

#[tokio::test]
async fn an_uninstall_that_cannot_be_ended_is_tried_again_later() {
    let mut scene = Scene::new(&json!({}));
    scene.world.records.insert(1, record(1, "uninstalling"));
    scene.script(&[("uninstall", "failed")]);
    let ended = scene.run().await;
    assert!(matches!(ended, Ended::Requeue | Ended::Failed(_)), "{ended:?}");
    assert_eq!(scene.performed(), ["uninstall failed"]);
}

#[tokio::test]
async fn an_upgrade_that_a_crash_broke_off_is_made_again_and_can_still_be_rolled_back() {
    let mut scene = Scene::new(&json!({"upgrade": {"remediation": {"retries": 1}}}));
    scene.run().await;
    scene.newer_chart();
    let pending = scene.world.release("pending-upgrade", "begun");
    scene.world.records.insert(2, pending);
    scene.script(&[("upgrade", "failed")]);
    assert_eq!(scene.run().await, Ended::Requeue);
    assert_eq!(scene.performed(), ["upgrade failed", "rollback ok"]);
    assert_eq!(
        scene.world.records[&2].info.description,
        "Release unlocked from stale 'pending-upgrade' state"
    );
    assert_eq!(scene.world.records[&4].manifest, "# app@1.0.0\n");
    assert_eq!(scene.run().await, Ended::Done);
}

#[tokio::test]
async fn a_rollback_that_a_crash_broke_off_is_made_again() {
    let mut scene = Scene::new(&json!({"upgrade": {"remediation": {"remediateLastFailure": true}}}));
    scene.run().await;
    scene.newer_chart();
    scene.script(&[("upgrade", "failed"), ("rollback", "early")]);
    assert!(matches!(scene.run().await, Ended::Failed(_)));
    let pending = scene.world.release("pending-rollback", "begun");
    scene.world.records.insert(3, pending);
    assert_eq!(scene.run().await, Ended::Stalled(Stall::RetriesExceeded));
    assert_eq!(scene.performed(), ["rollback ok"]);
    assert_eq!(scene.world.records[&4].info.status, Status::Deployed);
}

#[tokio::test]
async fn a_rollback_that_a_crash_broke_off_at_its_end_is_made_again() {
    let mut scene = Scene::new(&json!({"upgrade": {"remediation": {"remediateLastFailure": true}}}));
    scene.run().await;
    scene.newer_chart();
    scene.script(&[("upgrade", "failed"), ("rollback", "early")]);
    assert!(matches!(scene.run().await, Ended::Failed(_)));
    let pending = scene.world.release("pending-rollback", "begun");
    scene.world.records.insert(3, pending);
    let target = scene.world.records.get_mut(&1).unwrap();
    target.info.status = Status::Superseded;
    assert_eq!(scene.run().await, Ended::Stalled(Stall::RetriesExceeded));
    assert_eq!(scene.performed(), ["rollback ok"]);
    assert_eq!(scene.world.records[&4].manifest, "# app@1.0.0\n");
}

#[tokio::test]
async fn post_renderers_that_were_rolled_back_are_not_taken_for_released() {
    let mut scene = Scene::new(&json!({"upgrade": {"remediation": {"remediateLastFailure": true}}}));
    scene.run().await;
    let rendered = json!({
        "postRenderers": [{"kustomize": {"images": [{"name": "a", "newName": "b"}]}}],
        "upgrade": {"remediation": {"remediateLastFailure": true}},
    });
    scene.object.spec = object(&rendered).spec;
    scene.object.metadata.generation = Some(2);
    scene.script(&[("upgrade", "failed")]);
    for _ in 0..2 {
        assert_eq!(scene.run().await, Ended::Stalled(Stall::RetriesExceeded));
        assert_eq!(
            scene.ready(),
            (
                "False",
                "RollbackSucceeded",
                "Helm rollback to previous release apps/web.v1 with chart app@1.0.0 succeeded",
            )
        );
    }
}

#[tokio::test]
async fn post_renderers_that_fail_before_anything_is_written_are_tried_again() {
    let mut scene = Scene::new(&json!({}));
    scene.run().await;
    scene.object.spec = object(&json!({"postRenderers": [{"kustomize": {"images": [{"name": "a"}]}}]})).spec;
    scene.object.metadata.generation = Some(2);
    scene.script(&[("upgrade", "early")]);
    assert_eq!(scene.run().await, Ended::Failed(Failure::new("early")));
    assert_eq!(scene.run().await, Ended::Done);
    assert_eq!(scene.performed(), ["upgrade ok"]);
    assert_eq!(scene.run().await, Ended::Done);
    assert_eq!(scene.performed(), Vec::<&str>::new());
}

#[tokio::test]
async fn drift_that_cannot_be_corrected_is_what_ready_says() {
    let mut scene = Scene::new(&json!({"driftDetection": {"mode": "enabled"}}));
    scene.run().await;
    scene.script(&[("drift", "removed"), ("drift", "removed"), ("correct", "failed")]);
    assert_eq!(scene.run().await, Ended::Requeue);
    let message = "Failed to correct cluster state of release apps/web.v1:\nboom";
    assert_eq!(scene.ready(), ("False", "DriftCorrectionFailed", message));
    assert_eq!(scene.run().await, Ended::Done);
    assert_eq!(scene.ready().0, "True");
}

#[tokio::test]
async fn an_action_that_was_broken_off_is_no_failure() {
    let mut scene = Scene::new(&json!({}));
    scene.run().await;
    scene.newer_chart();
    scene.script(&[("upgrade", "cancelled")]);
    scene.world.cancels = Some("upgrade");
    assert_eq!(scene.run().await, Ended::Cancelled);
    assert_eq!((scene.status.failures, scene.status.upgrade_failures), (0, 0));
    assert!(scene.world.events.is_empty());
    assert_eq!(scene.status.history[0].status, "failed");
    scene.world.revive();
    assert_eq!(scene.run().await, Ended::Done);
    assert_eq!(scene.performed(), ["upgrade ok"]);
}

#[tokio::test]
async fn an_install_costs_one_read_and_one_write_and_rest_costs_one_read() {
    let mut scene = Scene::new(&json!({}));
    scene.run().await;
    assert_eq!((scene.world.reads, scene.world.saves), (1, 1));
    scene.run().await;
    assert_eq!((scene.world.reads, scene.world.saves), (2, 1));
}

#[tokio::test]
async fn what_is_saved_before_an_action_tells_what_is_tried() {
    let mut scene = Scene::new(&json!({"upgrade": {"timeout": "90s"}}));
    scene.run().await;
    scene.newer_chart();
    scene.run().await;
    let saved = &scene.world.saved;
    assert_eq!(saved.last_attempted_release_action, Some(ReleaseAction::Upgrade));
    for type_ in ["Ready", "Reconciling"] {
        let condition = conditions::get(&saved.conditions, type_).unwrap();
        assert_eq!(
            condition.message,
            "Running 'upgrade' action with timeout of 1m30s"
        );
    }
}

#[tokio::test]
async fn a_failure_is_told_with_what_helm_logged() {
    let mut performed = Performed::failed(Failure::new("context deadline exceeded"));
    "2026-01-01T00:00:00Z: a line".clone_into(&mut performed.log);
    let mut scene = Scene::new(&json!({}));
    let mut ledger = Ledger::new(&scene.object, &mut scene.status, scene.world.now());
    outcome::record(&mut ledger, &Action::Install, &performed, &scene.desired).unwrap_err();
    let message = "Helm install failed for release apps/web with chart app@1.0.0: context deadline exceeded";
    assert_eq!(
        ledger.events[0].message,
        format!("{message}\n\nLast Helm logs:\n\n2026-01-01T00:00:00Z: a line")
    );
    assert_eq!(scene.ready().2, message);
}

#[tokio::test]
async fn a_test_that_was_broken_off_is_run_again() {
    let mut scene = Scene::new(&json!({"test": {"enable": true}}));
    scene.world.tests = vec!["t".to_owned()];
    scene.script(&[("test", "cancelled")]);
    scene.world.cancels = Some("test");
    assert_eq!(scene.run().await, Ended::Cancelled);
    scene.world.revive();
    assert_eq!(scene.run().await, Ended::Done);
    assert_eq!(scene.performed(), ["test ok"]);
    assert_eq!(scene.ready().1, "TestSucceeded");
}
