//! Revisions that are held, by themselves and by hand.

use super::freezes::{arrives, frozen};
use super::*;
use crate::good::{Head, Held};
use crate::reconcile::plan::Kept;

/// An object whose newest revision, r1, was not healthy; r0 was.
pub(super) fn held() -> Observed {
    let mut observed = observed(json!({"wait": true}));
    let mut object = (*observed.object).clone();
    object.metadata.annotations = Some(
        [(
            api::kustomize::ROLLBACK_ANNOTATION.into(),
            rollback::LAST_KNOWN_GOOD.into(),
        )]
        .into(),
    );
    observed.object = Arc::new(object);
    observed.attempt = Some(attempt(Outcome::Failed, 0));
    observed.record = Record {
        kept: vec![Head {
            spec: String::new(),
            revision: "r0".into(),
            origin_revision: None,
            checksum: "sha256:0".into(),
            size: Some(1),
        }],
        held: Some(Held {
            generation: 3,
            revision: "r1".into(),
            digest: "sha256:r1".into(),
            why: "no".into(),
            since: NOW,
            instead: "sha256:0".into(),
            by_hand: false,
        }),
    };
    observed
}

pub(super) fn good() -> Content {
    Content::Good(Kept {
        revision: "r0".into(),
        origin_revision: None,
        checksum: "sha256:0".into(),
    })
}

fn annotated(observed: &mut Observed, key: &str, value: &str) {
    let mut object = (*observed.object).clone();
    let annotations = object.metadata.annotations.get_or_insert_default();
    annotations.insert(key.into(), value.into());
    observed.object = Arc::new(object);
}

#[test]
fn what_is_held_is_rolled_back_and_stays_so() {
    let mut observed = held();
    let Decision::Run(plan) = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert_eq!((plan.trigger, &plan.content), (Trigger::Rollback, &good()));
    assert_eq!((plan.revision(), &*plan.inputs.revision), ("r0", "r1"));
    // Applied: against drift and at the interval it is applied again.
    observed.attempt = Some(Attempt {
        content: good(),
        ..attempt(Outcome::Succeeded, 0)
    });
    assert!(matches!(decided(&observed), Decision::Rest { .. }));
    observed.drifted = true;
    let Decision::Run(plan) = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert_eq!((plan.trigger, plan.content), (Trigger::Drift, good()));
}

/// An object at r1 of which r0 is kept, too.
fn with_earlier() -> Observed {
    let mut observed = held();
    let spec = crate::reconcile::frozen::spec_digest(&observed.object);
    let head = |number: u8| Head {
        spec: spec.clone(),
        revision: format!("r{number}"),
        origin_revision: None,
        checksum: format!("sha256:{number}"),
        size: Some(1),
    };
    observed.record = Record {
        kept: vec![head(1), head(0)],
        held: None,
    };
    observed.attempt = Some(attempt(Outcome::Succeeded, 0));
    observed
}

#[test]
fn a_person_goes_back_until_they_say_otherwise() {
    let mut observed = with_earlier();
    assert!(matches!(decided(&observed), Decision::Rest { .. }));
    annotated(&mut observed, api::meta::ROLLBACK_TO_ANNOTATION, "r0");
    let Decision::Run(plan) = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert_eq!((plan.trigger, &plan.content), (Trigger::Rollback, &good()));
    observed.record.held = Some(Held {
        by_hand: true,
        ..held().record.held.unwrap()
    });
    observed.attempt = Some(Attempt {
        content: good(),
        ..attempt(Outcome::Succeeded, 0)
    });
    assert!(matches!(decided(&observed), Decision::Rest { .. }));
    arrives(&mut observed);
    let Decision::Run(plan) = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert_eq!((plan.trigger, &plan.content), (Trigger::Revision, &good()));
    // Without the annotation, the hold that it made is none.
    let mut object = (*observed.object).clone();
    let annotations = object.metadata.annotations.as_mut().unwrap();
    annotations.remove(api::meta::ROLLBACK_TO_ANNOTATION);
    observed.object = Arc::new(object);
    let Decision::Run(plan) = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert_eq!(plan.content, Content::Source);
}

#[test]
fn a_revision_is_known_by_the_objects_that_it_made() {
    let mut observed = with_earlier();
    let mut object = (*observed.object).clone();
    // Nothing of it changed with r00, so the record has the first revision that made it, and the history the last.
    object.status = serde_json::from_value(json!({"history": [{
        "digest": "sha256:0", "firstReconciled": NOW, "lastReconciled": NOW, "lastReconciledDuration": "1s",
        "lastReconciledStatus": "ReconciliationSucceeded", "totalReconciliations": 1, "metadata": {"revision": "r00"},
    }]}))
    .unwrap();
    observed.object = Arc::new(object);
    for (asked, shown) in [("r0", "r0"), ("r00", "r00"), ("sha256:0", "r0")] {
        annotated(&mut observed, api::meta::ROLLBACK_TO_ANNOTATION, asked);
        let Decision::Run(plan) = decided(&observed) else {
            panic!("{:?}", decided(&observed))
        };
        let Content::Good(kept) = &plan.content else {
            panic!("{:?}", plan.content)
        };
        assert_eq!((&*kept.checksum, plan.revision()), ("sha256:0", shown));
    }
}

#[test]
fn only_what_is_kept_of_this_spec_is_gone_back_to() {
    let message = |change: &dyn Fn(&mut Observed)| {
        let mut observed = with_earlier();
        annotated(&mut observed, api::meta::ROLLBACK_TO_ANNOTATION, "r0");
        change(&mut observed);
        match decided(&observed) {
            Decision::Stalled { message, .. } => message,
            other => panic!("{other:?}"),
        }
    };
    let gone = message(&|observed| drop(observed.record.kept.pop()));
    assert!(
        gone.ends_with("asks for revision r0, which is not kept. Kept are: r1"),
        "{gone}"
    );
    let without = message(&|observed| observed.record.kept[1].size = None);
    assert!(without.contains("r0, which is not kept"), "{without}");
    let elsewhere = message(&|observed| observed.record.kept[1].spec = String::new());
    assert!(elsewhere.contains("r0, which another spec made"), "{elsewhere}");
    let none = message(&|observed| observed.record = Record::default());
    assert!(
        none.ends_with("No revision is kept yet; the annotation windlass.dev/rollback keeps those to come"),
        "{none}"
    );
}

#[test]
fn going_back_by_hand_waits_for_the_end_of_a_freeze() {
    let mut observed = with_earlier();
    observed.frozen = frozen(true, true).frozen;
    annotated(&mut observed, api::meta::ROLLBACK_TO_ANNOTATION, "r0");
    assert_eq!(decided(&observed), Decision::Frozen(inputs(3, "r1")));
    // What had gone back before stays so, and is corrected.
    observed.record.held = Some(Held {
        by_hand: true,
        ..held().record.held.unwrap()
    });
    observed.attempt = None;
    let Decision::Run(plan) = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert_eq!(plan.content, good());
}

#[test]
fn what_it_depends_on_does_not_keep_it_from_going_back() {
    let mut observed = held();
    observed.dependencies = vec![Dependency {
        name: "ns/db".into(),
        found: None,
    }];
    assert_eq!(trigger(&observed), Some(Trigger::Rollback));
    observed.record.held = None;
    assert!(matches!(decided(&observed), Decision::Blocked { .. }));
}

#[test]
fn whatever_is_new_ends_a_hold() {
    let of_source = |observed: &Observed| match decided(observed) {
        Decision::Run(plan) => (plan.content == Content::Source).then_some(plan.trigger),
        _ => None,
    };
    let applied = |observed: &mut Observed| {
        observed.attempt = Some(Attempt {
            content: good(),
            ..attempt(Outcome::Succeeded, 0)
        });
    };
    let mut newer = held();
    applied(&mut newer);
    let artifact = SourceArtifact {
        url: String::new(),
        digest: "sha256:r2".into(),
        revision: "r2".into(),
        origin_revision: None,
    };
    newer.source = Source::Artifact(artifact);
    assert_eq!(of_source(&newer), Some(Trigger::Revision));
    let mut released = held();
    applied(&mut released);
    annotated(&mut released, "windlass.dev/released-revision", "r1");
    assert_eq!(of_source(&released), Some(Trigger::Rollback));
    annotated(&mut released, "windlass.dev/released-revision", "r0");
    assert_eq!(of_source(&released), None);
    let mut touched = held();
    applied(&mut touched);
    touched.variables_touched = true;
    assert_eq!(of_source(&touched), Some(Trigger::Rollback));
    let mut unwanted = held();
    applied(&mut unwanted);
    unwanted.object = Arc::new(object(json!({})));
    assert_eq!(of_source(&unwanted), Some(Trigger::Rollback));
}

#[test]
fn annotations_that_mean_nothing_stall() {
    let mut observed = held();
    annotated(&mut observed, "windlass.dev/rollback-after", "soon");
    let Decision::Stalled { message, .. } = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert!(message.contains("windlass.dev/rollback-after"), "{message}");
    annotated(&mut observed, "windlass.dev/rollback-after", "10m");
    assert!(matches!(decided(&observed), Decision::Run(_)));
    annotated(&mut observed, api::kustomize::ROLLBACK_ANNOTATION, "always");
    let Decision::Stalled { message, .. } = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    assert!(message.contains("'last-known-good'"), "{message}");
}
