mod freezes;
mod rollbacks;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use reconcile_kit::dependencies::State;
use reconcile_kit::freezes::Frozen;

use super::super::observe::{Lineage, SourceArtifact};
use super::*;
use crate::good::Record;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn object(spec: Value) -> Kustomization {
    let mut object = json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "app", "namespace": "ns", "generation": 3},
        "spec": {"interval": "10m", "retryInterval": "1m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "src"}},
    });
    object["spec"]
        .as_object_mut()
        .unwrap()
        .extend(spec.as_object().unwrap().clone());
    serde_json::from_value(object).unwrap()
}

fn inputs(generation: i64, revision: &str) -> Inputs {
    Inputs {
        generation,
        revision: revision.into(),
        digest: format!("sha256:{revision}"),
    }
}

fn observed(spec: Value) -> Observed {
    let artifact = SourceArtifact {
        url: "http://host/path".into(),
        digest: "sha256:r1".into(),
        revision: "r1".into(),
        origin_revision: None,
    };
    Observed {
        object: Arc::new(object(spec)),
        source_name: "GitRepository/ns/src".into(),
        source: Source::Artifact(artifact),
        dependencies: Vec::new(),
        requested_at: None,
        handled_at: None,
        attempt: Some(attempt(Outcome::Succeeded, 0)),
        waiting: None,
        drifted: false,
        correct_at: None,
        variables_touched: false,
        revived: false,
        has_rivals_untold: false,
        prune_confirmed: false,
        record: Record::default(),
        handing_over: None,
        frozen: Frozen::default(),
        waits: None,
    }
}

fn attempt(outcome: Outcome, seconds_ago: i64) -> Attempt {
    let at = NOW - SignedDuration::from_secs(seconds_ago);
    Attempt {
        inputs: inputs(3, "r1"),
        content: Content::Source,
        request: None,
        outcome,
        at,
        interval: Duration::from_secs(600),
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
fn what_did_not_change_rests_until_the_interval() {
    let until = NOW + SignedDuration::from_secs(600);
    assert_eq!(decided(&observed(json!({}))), Decision::Rest { until });
}

#[test]
fn each_change_starts_a_run_and_says_why() {
    let case = |change: &dyn Fn(&mut Observed)| {
        let mut observed = observed(json!({}));
        change(&mut observed);
        trigger(&observed)
    };
    assert_eq!(case(&|o| o.attempt = None), Some(Trigger::Startup));
    assert_eq!(
        case(&|o| o.attempt.as_mut().unwrap().inputs.generation = 2),
        Some(Trigger::Spec)
    );
    assert_eq!(
        case(&|o| o.attempt.as_mut().unwrap().inputs = inputs(3, "r0")),
        Some(Trigger::Revision)
    );
    assert_eq!(
        case(&|o| o.requested_at = Some("now".into())),
        Some(Trigger::Requested)
    );
    assert_eq!(case(&|o| o.drifted = true), Some(Trigger::Drift));
    assert_eq!(case(&|o| o.variables_touched = true), Some(Trigger::Variables));
    let failed_and_confirmed = |o: &mut Observed| {
        o.attempt = Some(attempt(Outcome::Failed, 1));
        o.prune_confirmed = true;
    };
    assert_eq!(case(&failed_and_confirmed), Some(Trigger::Confirmed));
    let failed_and_touched = |o: &mut Observed| {
        o.attempt = Some(attempt(Outcome::Failed, 1));
        o.variables_touched = true;
    };
    assert_eq!(case(&failed_and_touched), Some(Trigger::Variables));
    assert_eq!(
        case(&|o| o.attempt = Some(attempt(Outcome::Failed, 60))),
        Some(Trigger::Retry)
    );
    let failed_and_revived = |o: &mut Observed| {
        o.attempt = Some(attempt(Outcome::Failed, 1));
        o.revived = true;
    };
    assert_eq!(case(&failed_and_revived), Some(Trigger::Retry));
    assert_eq!(
        case(&|o| o.attempt = Some(attempt(Outcome::Succeeded, 600))),
        Some(Trigger::Interval)
    );
}

#[test]
fn a_request_is_answered_once_while_health_is_waited_for() {
    let mut observed = observed(json!({}));
    observed.requested_at = Some("now".into());
    observed.attempt = Some(attempt(Outcome::Waiting, 1));
    observed.waiting = Some(Waiting {
        finished: false,
        untold: false,
    });
    let Decision::Run(plan) = decided(&observed) else {
        panic!("a request that came during the wait starts a run");
    };
    assert_eq!(plan.trigger, Trigger::Requested);
    assert_eq!(plan.request.as_deref(), Some("now"));
    observed.attempt.as_mut().unwrap().request = plan.request;
    assert_eq!(decided(&observed), Decision::AwaitHealth);
    observed.requested_at = Some("later".into());
    assert_eq!(trigger(&observed), Some(Trigger::Requested));
}

#[test]
fn what_waits_for_an_heir_goes_on_when_that_moved_or_takes_too_long() {
    let later = NOW + SignedDuration::from_secs(1);
    for (moved, until, outcome, expected) in [
        (true, later, Outcome::Succeeded, Some(Trigger::HandOver)),
        (false, NOW, Outcome::Succeeded, Some(Trigger::HandOver)),
        (false, later, Outcome::Succeeded, None),
        (true, later, Outcome::Failed, None),
    ] {
        let mut observed = observed(json!({}));
        observed.attempt = Some(attempt(outcome, 1));
        observed.handing_over = Some((moved, until));
        assert_eq!(trigger(&observed), expected, "{moved} {outcome:?}");
    }
}

#[test]
fn a_correction_that_was_put_off_is_not_forgotten() {
    let mut observed = observed(json!({}));
    let until = NOW + SignedDuration::from_secs(5);
    observed.correct_at = Some(until);
    assert_eq!(decided(&observed), Decision::Rest { until });
}

#[test]
fn what_needs_no_run_rests() {
    let rests = |change: &dyn Fn(&mut Observed)| {
        let mut observed = observed(json!({}));
        change(&mut observed);
        matches!(decided(&observed), Decision::Rest { .. })
    };
    assert!(rests(&|o| {
        o.requested_at = Some("then".into());
        o.handled_at = Some("then".into());
    }));
    // A failure is retried at its interval; what drifted meanwhile is fixed by the retry.
    assert!(rests(&|o| {
        o.attempt = Some(attempt(Outcome::Failed, 59));
        o.drifted = true;
    }));
}

#[test]
fn a_source_whose_owner_does_not_list_us_is_waited_for_and_nothing_is_applied() {
    let mut observed = observed(json!({}));
    observed.attempt = None;
    observed.source =
        Source::Denied(controller_kit::access_from::check(Some("ops"), "ns", "sources").unwrap_err());
    let Decision::Blocked { reason, message } = decided(&observed) else {
        panic!("not blocked")
    };
    assert_eq!(reason, reasons::ACCESS_DENIED);
    assert!(
        message.contains("'GitRepository/ns/src'") && message.contains("windlass.dev/access-from"),
        "{message}"
    );
}

#[test]
fn a_wait_is_left_alone_until_it_ends_or_the_inputs_change() {
    let mut observed = observed(json!({}));
    observed.attempt = Some(attempt(Outcome::Waiting, 6000));
    observed.waiting = Some(Waiting {
        finished: false,
        untold: false,
    });
    assert_eq!(decided(&observed), Decision::AwaitHealth);
    observed.waiting = Some(Waiting {
        finished: false,
        untold: true,
    });
    assert_eq!(decided(&observed), Decision::TellOfWait);
    observed.waiting = Some(Waiting {
        finished: true,
        untold: true,
    });
    assert!(matches!(decided(&observed), Decision::Conclude));
    observed.attempt.as_mut().unwrap().inputs = inputs(3, "r0");
    assert_eq!(trigger(&observed), Some(Trigger::Revision));
}

#[test]
fn deletion_goes_before_suspension_and_suspension_before_all_else() {
    let mut observed = observed(json!({"suspend": true}));
    observed.source = Source::Missing;
    assert_eq!(decided(&observed), Decision::Suspended);
    let mut object = (*observed.object).clone();
    object.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(NOW));
    observed.object = Arc::new(object);
    assert_eq!(decided(&observed), Decision::Finalize);
}

#[test]
fn a_source_that_is_not_there_or_has_nothing_blocks() {
    let message = |source: Source| {
        let mut observed = observed(json!({}));
        observed.source = source;
        match decided(&observed) {
            Decision::Blocked { reason, message } => {
                assert_eq!(reason, "ArtifactFailed");
                message
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        message(Source::Missing),
        "Source 'GitRepository/ns/src' not found"
    );
    let why = Some("auth failed".to_owned());
    assert_eq!(
        message(Source::WithoutArtifact { why }),
        "Source 'GitRepository/ns/src' has no artifact yet: auth failed"
    );
    assert_eq!(
        message(Source::WithoutArtifact { why: None }),
        "Source 'GitRepository/ns/src' has no artifact yet"
    );
}

#[test]
fn a_dependency_must_be_there_ready_and_as_far_as_we_are() {
    let state = |ready, same_source, revision: &str| {
        Some(State {
            cycle: None,
            ready,
            detail: Lineage {
                same_source,
                applied_revision: Some(revision.to_owned()),
            },
            expression: None,
        })
    };
    for (found, message) in [
        (None, Some("dependency 'ns/base' not found")),
        (
            state(false, true, "r1"),
            Some("dependency 'ns/base' is not ready"),
        ),
        (
            state(true, true, "r0"),
            Some("dependency 'ns/base' revision is not up to date"),
        ),
        (state(true, false, "r0"), None),
        (state(true, true, "r1"), None),
    ] {
        let mut observed = observed(json!({}));
        observed.dependencies = vec![Dependency {
            name: "ns/base".into(),
            found,
        }];
        match (decided(&observed), message) {
            (Decision::Blocked { reason, message }, Some(expected)) => {
                assert_eq!((reason, message.as_str()), ("DependencyNotReady", expected));
            }
            (Decision::Rest { .. }, None) => {}
            (other, _) => panic!("{other:?}"),
        }
    }
}

#[test]
fn what_is_tried_again_sooner_than_the_spec_says_is() {
    for (seconds, expected) in [(29, None), (30, Some(Trigger::Retry))] {
        let mut observed = observed(json!({"retryInterval": "1h"}));
        observed.attempt = Some(Attempt {
            interval: Duration::from_secs(30),
            ..attempt(Outcome::Failed, seconds)
        });
        assert_eq!(trigger(&observed), expected, "{seconds}");
    }
}

#[test]
fn every_kind_of_source_is_taken() {
    for kind in ["GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"] {
        let policy = Policy {
            external_artifacts: true,
            ..Policy::default()
        };
        let observed = observed(json!({"sourceRef": {"kind": kind, "name": "a"}}));
        let decision = decide(&observed, &policy, NOW);
        assert!(
            !matches!(decision, Decision::Stalled { .. }),
            "{kind}: {decision:?}"
        );
    }
}

#[test]
fn an_external_artifact_is_refused_without_its_feature_gate() {
    let decision = decided(&observed(
        json!({"sourceRef": {"kind": "ExternalArtifact", "name": "a"}}),
    ));
    let Decision::Stalled { reason, message } = decision else {
        panic!("{decision:?}");
    };
    assert_eq!(reason, "AccessDenied");
    assert_eq!(
        message,
        "can't access 'ExternalArtifact/ns/a', ExternalArtifact feature gate is disabled"
    );
}

#[test]
fn an_expression_takes_the_place_of_the_usual_check_or_is_added_to_it() {
    let parse_error = cel_expression::Expression::parse("(").map(|_| true);
    let missing = cel_expression::Error::Evaluate {
        expression: "dep.a".to_owned(),
        problem: "no such key: a".to_owned(),
    };
    let of = |expression, ready, additive_expressions| {
        let mut observed = observed(json!({}));
        let found = Some(State {
            cycle: None,
            ready,
            detail: Lineage {
                same_source: false,
                applied_revision: None,
            },
            expression: Some(expression),
        });
        let name = "ns/base".to_owned();
        observed.dependencies = vec![Dependency { name, found }];
        let policy = Policy {
            additive_expressions,
            ..Policy::default()
        };
        match decide(&observed, &policy, NOW) {
            Decision::Blocked { message, .. } | Decision::Stalled { message, .. } => message,
            _ => "goes on".to_owned(),
        }
    };
    assert_eq!(of(Ok(true), false, false), "goes on");
    assert_eq!(of(Ok(true), false, true), "dependency 'ns/base' is not ready");
    assert_eq!(of(Ok(true), true, true), "goes on");
    let refused = "dependency 'ns/base' is not ready according to readyExpr eval";
    assert_eq!(of(Ok(false), true, false), refused);
    let waits = "failed to evaluate dependency ns/base: failed to evaluate the CEL expression 'dep.a': no such key: a";
    assert_eq!(of(Err(missing), true, false), waits);
    let stalled = of(parse_error, true, false);
    assert!(
        stalled.starts_with("Reconciliation failed terminally due to configuration error: "),
        "{stalled}"
    );
}

#[test]
fn an_account_may_decrypt_when_the_gate_is_open() {
    let spec = json!({"decryption": {"provider": "sops", "serviceAccountName": "a"}});
    let policy = Policy {
        object_level_identity: true,
        ..Policy::default()
    };
    let rest = decide(&observed(spec), &policy, NOW);
    assert!(matches!(rest, Decision::Rest { .. }), "{rest:?}");
}

#[test]
fn what_cannot_be_done_is_named_and_nothing_runs() {
    for (spec, field) in [
        (
            json!({"decryption": {"provider": "sops", "serviceAccountName": "a"}}),
            "to use spec.decryption.serviceAccountName for decryption authentication please enable the \
             ObjectLevelWorkloadIdentity feature gate in the controller",
        ),
        (
            json!({"healthCheckExprs": [{"apiVersion": "a/v1", "kind": "A", "current": "("}]}),
            "Reconciliation failed terminally due to configuration error: failed to create custom status evaluator \
             for healthchecks[0]: failed to parse the expression Current: failed to parse the CEL expression '('",
        ),
    ] {
        match decided(&observed(spec)) {
            Decision::Stalled { message, .. } => assert!(message.contains(field), "{message}"),
            other => panic!("{field}: {other:?}"),
        }
    }
}

#[test]
fn ignore_rules_that_cannot_be_read_are_refused_in_fluxs_words() {
    let spec = json!({"ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "("}}]});
    match decided(&observed(spec)) {
        Decision::Stalled { reason, message } => {
            assert_eq!(reason, "ReconciliationFailed");
            let expected =
                "failed to create ignore rule selector: invalid kind regex: error parsing regexp: ";
            assert!(message.starts_with(expected), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let spec = json!({"ignore": [{"paths": ["/spec/replicas"], "target": {"kind": "Deploy.*"}}]});
    assert!(matches!(decided(&observed(spec)), Decision::Rest { .. }));
}

#[test]
fn sources_of_other_namespaces_can_be_locked_out() {
    let observed =
        observed(json!({"sourceRef": {"kind": "GitRepository", "name": "a", "namespace": "other"}}));
    assert!(matches!(decided(&observed), Decision::Rest { .. }));
    let policy = Policy {
        no_cross_namespace_refs: true,
        ..Policy::default()
    };
    match decide(&observed, &policy, NOW) {
        Decision::Stalled { reason, message } => {
            assert_eq!(reason, "AccessDenied");
            assert!(
                message.starts_with("can't access 'GitRepository/other/a'"),
                "{message}"
            );
        }
        other => panic!("{other:?}"),
    }
}
