//! Decisions about objects in all their states.

use std::sync::Arc;

use jiff::SignedDuration;
use reconcile_kit::dependencies::State;
use serde_json::{Value, json};

use reconcile_kit::freezes::Frozen;

use super::*;
use crate::memory::Attempt;
use crate::source;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn observed(spec: Value) -> Observed {
    let mut full = json!({
        "interval": "10m", "chartRef": {"kind": "OCIRepository", "name": "podinfo", "namespace": "sources"},
    });
    full.as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    let object: HelmRelease = serde_json::from_value(json!({
        "apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease",
        "metadata": {"name": "web", "namespace": "apps", "generation": 1}, "spec": full,
    }))
    .unwrap();
    Observed {
        reference: source::reference(&object),
        source: Source::Artifact(artifact("1.0.0@sha256:1")),
        template: Template::Current,
        dependencies: Vec::new(),
        requested_at: None,
        attempt: None,
        drifted: false,
        correct_at: None,
        inputs_touched: false,
        release_touched: false,
        frozen: Frozen::default(),
        waits: false,
        object: Arc::new(object),
    }
}

fn artifact(revision: &str) -> SourceArtifact {
    SourceArtifact {
        object: artifact::client::SourceObject::new("OCIRepository", "apps", "web"),
        kind: ChartArtifactKind::OCIRepository,
        url: "http://source/1.tgz".to_owned(),
        digest: "sha256:2".to_owned(),
        revision: revision.to_owned(),
    }
}

fn attempted(outcome: Outcome, next: i64) -> Observed {
    let inputs = Inputs {
        generation: 1,
        revision: "1.0.0@sha256:1".to_owned(),
        digest: "sha256:2".to_owned(),
    };
    Observed {
        attempt: Some(Attempt {
            inputs,
            outcome,
            next: NOW + SignedDuration::from_secs(next),
            back: None,
        }),
        ..observed(json!({}))
    }
}

fn decided(observed: &Observed) -> Decision {
    decide(observed, &Policy::default(), NOW)
}

fn trigger(observed: &Observed) -> Option<Trigger> {
    match decided(observed) {
        Decision::Run(plan) => Some(plan.trigger),
        _ => None,
    }
}

#[test]
fn a_release_that_is_as_it_should_be_rests_until_something_changes() {
    let rests = attempted(Outcome::Succeeded, 60);
    let until = NOW + SignedDuration::from_secs(60);
    assert_eq!(decided(&rests), Decision::Rest { until });
    // A correction that was put off is due before.
    let mut sooner = attempted(Outcome::Succeeded, 60);
    let at = NOW + SignedDuration::from_secs(5);
    sooner.correct_at = Some(at);
    assert_eq!(decided(&sooner), Decision::Rest { until: at });
    assert_eq!(trigger(&observed(json!({}))), Some(Trigger::Startup));
    let changed = |change: fn(&mut Observed)| {
        let mut observed = attempted(Outcome::Succeeded, 60);
        change(&mut observed);
        trigger(&observed)
    };
    let spec = changed(|o| Arc::make_mut(&mut o.object).metadata.generation = Some(2));
    assert_eq!(spec, Some(Trigger::Spec));
    let revision = changed(|o| o.source = Source::Artifact(artifact("1.0.1@sha256:3")));
    assert_eq!(revision, Some(Trigger::Revision));
    assert_eq!(
        changed(|o| o.requested_at = Some("now".to_owned())),
        Some(Trigger::Requested)
    );
    assert_eq!(changed(|o| o.inputs_touched = true), Some(Trigger::Inputs));
    assert_eq!(changed(|o| o.release_touched = true), Some(Trigger::Released));
    assert_eq!(changed(|o| o.drifted = true), Some(Trigger::Drift));
    assert_eq!(
        trigger(&attempted(Outcome::Succeeded, 0)),
        Some(Trigger::Interval)
    );
    assert_eq!(trigger(&attempted(Outcome::Failed, 0)), Some(Trigger::Retry));
    let mut failed = attempted(Outcome::Failed, 60);
    failed.drifted = true;
    assert_eq!(trigger(&failed), None);
}

#[test]
fn a_person_goes_back_whatever_the_source_is_like() {
    let mut observed = attempted(Outcome::Succeeded, 60);
    observed.source = Source::Missing;
    let annotate = |observed: &mut Observed, value: Option<&str>| {
        let annotations = value.map(|to| (ROLLBACK_TO_ANNOTATION.to_owned(), to.to_owned()));
        Arc::make_mut(&mut observed.object).metadata.annotations = Some(annotations.into_iter().collect());
    };
    annotate(&mut observed, Some("3"));
    let Decision::Run(plan) = decided(&observed) else {
        panic!("{:?}", decided(&observed))
    };
    let wish = Wish {
        to: 3,
        why: "no reason was given".to_owned(),
    };
    assert_eq!(
        (plan.trigger, plan.goal),
        (Trigger::Rollback, Goal::Back(wish.clone()))
    );
    let attempt = observed.attempt.as_mut().unwrap();
    (attempt.back, attempt.inputs) = (Some(wish), plan.inputs);
    assert!(matches!(decided(&observed), Decision::Rest { .. }));
    observed.source = Source::Artifact(artifact("1.0.0@sha256:1"));
    assert!(matches!(decided(&observed), Decision::Rest { .. }));
    annotate(&mut observed, None);
    assert_eq!(trigger(&observed), Some(Trigger::Rollback));
    for wrong in ["", "0", "-1", "v3", "99999999999999999999"] {
        annotate(&mut observed, Some(wrong));
        assert!(matches!(decided(&observed), Decision::Stalled { .. }), "{wrong}");
    }
}

#[test]
fn a_handled_request_is_no_request() {
    let mut observed = attempted(Outcome::Succeeded, 60);
    observed.requested_at = Some("now".to_owned());
    let object = Arc::make_mut(&mut observed.object);
    object.status = Some(api::helm::HelmReleaseStatus {
        last_handled_reconcile_at: Some("now".to_owned()),
        ..api::helm::HelmReleaseStatus::default()
    });
    assert_eq!(trigger(&observed), None);
}

#[test]
fn sources_and_dependencies_are_waited_for_in_fluxs_words() {
    let mut observed = observed(json!({}));
    let mut says = |source: Source| {
        observed.source = source;
        match decided(&observed) {
            Decision::Blocked { reason, message } => format!("{reason}: {message}"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        says(Source::Missing),
        "ArtifactFailed: could not get Source object: OCIRepository/sources/podinfo not found"
    );
    assert_eq!(
        says(Source::NotReady("not yet".to_owned())),
        "SourceNotReady: not yet"
    );
    let dependency = |found: Option<(bool, Option<bool>)>| Dependency {
        name: "apps/base".to_owned(),
        found: found.map(|(ready, expression)| State {
            detail: (),
            cycle: None,
            ready,
            expression: expression.map(Ok),
        }),
    };
    for (found, additive, expected) in [
        (
            None,
            false,
            Some("unable to get 'apps/base' dependency: it does not exist"),
        ),
        (
            Some((false, None)),
            false,
            Some("dependency 'apps/base' is not ready"),
        ),
        (Some((true, None)), false, None),
        (Some((false, Some(true))), false, None),
        (
            Some((false, Some(true))),
            true,
            Some("dependency 'apps/base' is not ready"),
        ),
        (
            Some((true, Some(false))),
            false,
            Some("dependency 'apps/base' is not ready according to readyExpr eval"),
        ),
    ] {
        let observed = Observed {
            dependencies: vec![dependency(found)],
            ..self::observed(json!({}))
        };
        let policy = Policy {
            additive_expressions: additive,
            ..Policy::default()
        };
        let message = match decide(&observed, &policy, NOW) {
            Decision::Blocked { reason, message } => {
                assert_eq!(reason, "DependencyNotReady");
                Some(message)
            }
            _ => None,
        };
        assert_eq!(message.as_deref(), expected, "{found:?} {additive}");
    }
}

#[test]
fn fences_and_mistakes_stall() {
    let stalls = |spec: Value, policy: Policy| match decide(&observed(spec), &policy, NOW) {
        Decision::Stalled { reason, message } => Some((reason, message)),
        _ => None,
    };
    let fenced = Policy {
        no_cross_namespace_refs: true,
        ..Policy::default()
    };
    let (reason, message) = stalls(json!({}), fenced).unwrap();
    assert_eq!(reason, "AccessDenied");
    assert_eq!(
        message,
        "can't access 'OCIRepository/sources/podinfo', cross-namespace references have been blocked"
    );
    let elsewhere = json!({"kind": "OCIRepository", "name": "a", "namespace": "../../secrets/a?"});
    let (reason, message) = stalls(json!({"chartRef": elsewhere}), Policy::default()).unwrap();
    assert_eq!(reason, "InvalidChartReference");
    assert!(message.starts_with("invalid resource name "), "{message}");
    let external = json!({"chartRef": {"kind": "ExternalArtifact", "name": "a"}});
    assert_eq!(
        stalls(external.clone(), Policy::default()).unwrap().0,
        "AccessDenied"
    );
    let open = Policy {
        external_artifacts: true,
        ..Policy::default()
    };
    assert_eq!(stalls(external, open), None);
    let check = json!({"healthCheckExprs": [{"apiVersion": "a/v1", "kind": "B", "current": "("}]});
    assert_eq!(
        stalls(check, Policy::default()).unwrap().0,
        "InvalidCELExpression"
    );
    let neither = json!({"chartRef": null});
    assert_eq!(
        stalls(neither, Policy::default()).unwrap().1,
        "invalid Chart reference"
    );
}

#[test]
fn deletion_goes_before_suspension_and_that_before_all_else() {
    let mut observed = observed(json!({"suspend": true, "chartRef": null}));
    assert_eq!(decided(&observed), Decision::Suspended);
    let object = Arc::make_mut(&mut observed.object);
    object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
    assert_eq!(decided(&observed), Decision::Finalize);
}
