//! What a Freeze lets through.

use change_window::freeze::InForce;

use super::rollbacks::{good, held};
use super::*;
use crate::good::Head;
use crate::reconcile::plan::{Guard, Kept};

/// An object that was delivered with r1 and is frozen, with or without its record.
pub(super) fn frozen(corrects_drift: bool, record: bool) -> Observed {
    let mut observed = observed(json!({}));
    let mut object = (*observed.object).clone();
    let at = "2026-01-01T00:00:00Z";
    object.status = serde_json::from_value(json!({
        "observedGeneration": 3, "lastAppliedRevision": "r1",
        "history": [{
            "digest": "sha256:1", "firstReconciled": at, "lastReconciled": at, "lastReconciledDuration": "1s",
            "lastReconciledStatus": "ReconciliationSucceeded", "totalReconciliations": 1,
        }],
    }))
    .unwrap();
    observed.frozen = Frozen {
        is_covered: true,
        now: Some(InForce {
            freeze: "ns/friday".into(),
            reason: "it is Friday".into(),
            until: Some(NOW + SignedDuration::from_secs(60)),
            corrects_drift,
            problem: None,
        }),
    };
    if record {
        observed.record.kept = vec![Head {
            spec: crate::reconcile::frozen::spec_digest(&object),
            revision: "r1".into(),
            origin_revision: None,
            checksum: "sha256:1".into(),
            size: Some(1),
        }];
    }
    observed.object = Arc::new(object);
    observed
}

pub(super) fn arrives(observed: &mut Observed) {
    observed.source = Source::Artifact(SourceArtifact {
        url: String::new(),
        digest: "sha256:r2".into(),
        revision: "r2".into(),
        origin_revision: None,
    });
}

fn guard(observed: &Observed) -> Option<(Trigger, Guard)> {
    match decided(observed) {
        Decision::Run(plan) => Some((plan.trigger, plan.guard?)),
        _ => None,
    }
}

#[test]
fn what_arrives_while_frozen_is_looked_at_and_waits() {
    for record in [true, false] {
        let mut observed = frozen(true, record);
        let until = NOW + SignedDuration::from_secs(60);
        assert_eq!(decided(&observed), Decision::Rest { until }, "until the end");
        arrives(&mut observed);
        let expected = Guard {
            delivered: "sha256:1".into(),
            corrects_drift: true,
        };
        assert_eq!(guard(&observed), Some((Trigger::Revision, expected.clone())));
        // It is new: from now on it waits, and what was delivered is applied against drift.
        observed.waits = Some(inputs(3, "r2"));
        assert_eq!(decided(&observed), Decision::Frozen(inputs(3, "r2")));
        observed.drifted = true;
        let content = Content::Delivered(Kept {
            revision: "r1".into(),
            origin_revision: None,
            checksum: "sha256:1".into(),
        });
        match (decided(&observed), record) {
            (Decision::Run(plan), true) => {
                assert_eq!((plan.trigger, &plan.content), (Trigger::Drift, &content));
                assert_eq!((plan.revision(), plan.attempted()), ("r1", "r1"));
            }
            (Decision::Frozen(_), false) => {}
            (other, _) => panic!("{other:?}"),
        }
        // Other variables may make of it what is delivered.
        observed.variables_touched = true;
        assert_eq!(guard(&observed), Some((Trigger::Revision, expected)));
        observed.frozen.now = None;
        observed.variables_touched = false;
        assert_eq!(trigger(&observed), Some(Trigger::Revision));
        observed.attempt.as_mut().unwrap().inputs = inputs(3, "r2");
        assert_eq!(trigger(&observed), Some(Trigger::Thaw));
    }
}

#[test]
fn a_freeze_may_leave_drift_alone() {
    let mut observed = frozen(false, true);
    observed.drifted = true;
    let expected = Guard {
        delivered: "sha256:1".into(),
        corrects_drift: false,
    };
    assert_eq!(guard(&observed), Some((Trigger::Drift, expected)));
    observed.waits = Some(inputs(3, "r1"));
    assert_eq!(decided(&observed), Decision::Frozen(inputs(3, "r1")));
}

#[test]
fn only_what_is_known_to_be_delivered_is_applied_while_frozen() {
    let waits = |change: &dyn Fn(&mut Kustomization, &mut Record)| {
        let mut observed = frozen(true, true);
        let mut object = (*observed.object).clone();
        change(&mut object, &mut observed.record);
        observed.object = Arc::new(object);
        observed.attempt = None;
        matches!(decided(&observed), Decision::Frozen(_))
    };
    assert!(!waits(&|_, _| {}));
    assert!(!waits(&|object, _| {
        object.metadata.generation = Some(5);
        object.spec.interval = api::meta::Duration::from(Duration::from_secs(1));
    }));
    assert!(waits(&|object, _| object.spec.prune = false), "another spec");
    assert!(waits(&|object, _| object.status = None), "nothing was delivered");
    assert!(
        waits(&|_, record| {
            record.kept[0].checksum = "sha256:2".into();
        }),
        "a forged history"
    );
    assert!(
        waits(&|object, _| {
            let history = &mut object.status.as_mut().unwrap().history;
            let mut failed = history[0].clone();
            failed.digest = "sha256:2".into();
            failed.last_reconciled_status = "HealthCheckFailed".into();
            history.insert(0, failed);
        }),
        "something else was begun"
    );
    assert!(
        waits(&|object, record| {
            record.kept.clear();
            object.metadata.generation = Some(4);
        }),
        "another spec, without a record"
    );
}

#[test]
fn a_wait_for_health_and_a_rollback_go_on_while_frozen() {
    let mut observed = frozen(true, true);
    arrives(&mut observed);
    observed.attempt = Some(attempt(Outcome::Waiting, 1));
    observed.waiting = Some(Waiting {
        finished: true,
        untold: false,
    });
    assert_eq!(decided(&observed), Decision::Conclude);
    let mut observed = held();
    observed.frozen = frozen(false, true).frozen;
    assert_eq!(trigger(&observed), Some(Trigger::Rollback));
    observed.attempt = Some(Attempt {
        content: good(),
        ..attempt(Outcome::Succeeded, 0)
    });
    observed.drifted = true;
    assert!(
        matches!(decided(&observed), Decision::Rest { .. }),
        "drift is left alone"
    );
}

#[test]
fn what_it_depends_on_does_not_matter_while_frozen() {
    let mut observed = frozen(true, true);
    observed.dependencies = vec![Dependency {
        name: "ns/db".into(),
        found: None,
    }];
    assert!(matches!(decided(&observed), Decision::Rest { .. }));
}
