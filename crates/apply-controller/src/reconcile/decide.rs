//! What to do about a Kustomization: a pure function of what was observed.
//!
//! Everything that makes a reconcile run, wait or rest is decided here, and nowhere else. The steps after it carry the
//! [`Plan`] out and choose nothing.

use api::kustomize::Kustomization;
use api::meta::{CustomHealthCheck, reasons};
use jiff::{SignedDuration, Timestamp};
use kube_health::{Check, CheckError, Checks};

use super::ignore;
use super::observe::{Dependency, Observed, Source};
use crate::memory::{Attempt, Inputs, Outcome, Waiting};

/// What the reconcile does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Being deleted: remove what is managed, then the finalizer.
    Finalize,
    /// Suspended: nothing, until it is resumed.
    Suspended,
    /// Cannot work until the spec changes.
    Stalled {
        /// Condition reason.
        reason: &'static str,
        /// Condition message.
        message: String,
    },
    /// Waits for another object; the watch on it wakes this one.
    Blocked {
        /// Condition reason.
        reason: &'static str,
        /// Condition message.
        message: String,
    },
    /// The wait for health of exactly these inputs is on; its end wakes this object.
    AwaitHealth,
    /// The wait takes so long that the status should tell of it.
    TellOfWait,
    /// The wait for health of these inputs ended: write what came of it.
    Conclude(Plan),
    /// Bring the cluster to what the source says.
    Run(Plan),
    /// Nothing to do before this time.
    Rest {
        /// When the interval, or the retry after a failure, is due.
        until: Timestamp,
    },
}

/// A run, fully determined.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Why it runs.
    pub trigger: Trigger,
    /// What it runs on.
    pub inputs: Inputs,
    /// Where the artifact can be downloaded.
    pub url: String,
    /// The revision at the origin of the source's artifact (an OCI artifact's Git commit), if the source says so.
    pub origin_revision: Option<String>,
}

/// Why a run happens, most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// First time that this process sees the object.
    Startup,
    /// The spec changed.
    Spec,
    /// The source has another artifact.
    Revision,
    /// A person asked for it (`reconcile.fluxcd.io/requestedAt`): nothing that is remembered is trusted.
    Requested,
    /// A ConfigMap or Secret that variables are taken from was touched.
    Variables,
    /// A person confirmed a prune that was refused.
    Confirmed,
    /// Objects that left the source waited for another Kustomization to take them over.
    HandOver,
    /// Somebody changed or deleted a managed object.
    Drift,
    /// The last run failed, and its retry is due.
    Retry,
    /// The interval passed.
    Interval,
}

/// What the decision depends on besides the object.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// References to sources in other namespaces are refused (`--no-cross-namespace-refs`).
    pub no_cross_namespace_refs: bool,
    /// A variable without value and default is an error (gate `StrictPostBuildSubstitutions`).
    pub strict_substitutions: bool,
    /// A dependency must be ready beside what its expression says (gate `AdditiveCELDependencyCheck`).
    pub additive_expressions: bool,
    /// Objects may be ServiceAccounts at cloud providers (gate `ObjectLevelWorkloadIdentity`).
    pub object_level_identity: bool,
}

/// Decides what to do about the object at `now`.
pub fn decide(observed: &Observed, policy: &Policy, now: Timestamp) -> Decision {
    let object = &*observed.object;
    if object.metadata.deletion_timestamp.is_some() {
        return Decision::Finalize;
    }
    if object.spec.suspend {
        return Decision::Suspended;
    }
    if let Some(decision) = refused(object, policy) {
        return decision;
    }
    let artifact = match &observed.source {
        Source::Artifact(artifact) => artifact,
        Source::Missing => {
            return blocked(
                reasons::ARTIFACT_FAILED,
                format!("Source '{}' not found", observed.source_name),
            );
        }
        // Not stalled: the owner of the source may change their mind, and the watch tells.
        Source::Denied(denied) => {
            return blocked(
                reasons::ACCESS_DENIED,
                format!("can't access '{}': {denied}", observed.source_name),
            );
        }
        Source::WithoutArtifact { why } => {
            let detail = why.as_ref().map(|w| format!(": {w}")).unwrap_or_default();
            return blocked(
                reasons::ARTIFACT_FAILED,
                format!("Source '{}' has no artifact yet{detail}", observed.source_name),
            );
        }
    };
    for dependency in &observed.dependencies {
        if let Some(decision) = unready(dependency, &artifact.revision, policy) {
            return decision;
        }
    }
    let inputs = Inputs {
        generation: object.metadata.generation.unwrap_or_default(),
        revision: artifact.revision.clone(),
        digest: artifact.digest.clone(),
    };
    let plan = |trigger| Plan {
        trigger,
        inputs: inputs.clone(),
        url: artifact.url.clone(),
        origin_revision: artifact.origin_revision.clone(),
    };
    let requested = observed.requested_at.is_some() && observed.requested_at != observed.handled_at;
    if let Some(trigger) = urgent(observed, &inputs, requested) {
        return Decision::Run(plan(trigger));
    }
    match (&observed.waiting, &observed.attempt) {
        (Some(Waiting { finished: true, .. }), _) => Decision::Conclude(plan(Trigger::Revision)),
        (Some(Waiting { untold: true, .. }), _) => Decision::TellOfWait,
        (Some(Waiting { .. }), _) => Decision::AwaitHealth,
        (None, Some(attempt)) if is_handed_over(observed, attempt, now) => {
            Decision::Run(plan(Trigger::HandOver))
        }
        (None, Some(attempt)) => due(object, attempt, now).map_or_else(
            |trigger| Decision::Run(plan(trigger)),
            |until| Decision::Rest { until },
        ),
        // No wait and no attempt is a first run, which `urgent` has taken.
        (None, None) => Decision::Run(plan(Trigger::Startup)),
    }
}

fn blocked(reason: &'static str, message: String) -> Decision {
    Decision::Blocked { reason, message }
}

/// What can only be answered by a change of the spec (or of a flag).
fn refused(object: &Kustomization, policy: &Policy) -> Option<Decision> {
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let source = &object.spec.source_ref;
    let foreign = source.namespace.as_deref().filter(|n| !n.is_empty() && *n != own);
    if let Some(namespace) = foreign.filter(|_| policy.no_cross_namespace_refs) {
        return Some(Decision::Stalled {
            reason: reasons::ACCESS_DENIED,
            message: format!(
                "can't access '{}/{namespace}/{}', cross-namespace references have been blocked",
                source.kind, source.name
            ),
        });
    }
    let decryption = object.spec.decryption.as_ref();
    let names_account = decryption.is_some_and(|decryption| decryption.service_account_name.is_some());
    if names_account && !policy.object_level_identity {
        return Some(Decision::Stalled {
            reason: reasons::FEATURE_GATE_DISABLED,
            message:
                "to use spec.decryption.serviceAccountName for decryption authentication please enable the \
                      ObjectLevelWorkloadIdentity feature gate in the controller"
                    .to_owned(),
        });
    }
    if let Err(error) = ignore::rules(object) {
        return Some(Decision::Stalled {
            reason: reasons::RECONCILIATION_FAILED,
            message: error.to_string(),
        });
    }
    let checks = checks(object).err()?;
    Some(invalid_expression(&checks.to_string()))
}

/// The health checks that the spec gives as expressions.
pub fn checks(object: &Kustomization) -> Result<Checks, CheckError> {
    fn check(check: &CustomHealthCheck) -> Check<'_> {
        Check {
            api_version: &check.api_version,
            kind: check.kind.as_deref(),
            in_progress: check.in_progress.as_deref(),
            failed: check.failed.as_deref(),
            current: &check.current,
        }
    }
    Checks::new(object.spec.health_check_exprs.iter().map(check))
}

fn invalid_expression(problem: &str) -> Decision {
    Decision::Stalled {
        reason: reasons::INVALID_CEL_EXPRESSION,
        message: format!("Reconciliation failed terminally due to configuration error: {problem}"),
    }
}

/// What follows from a dependency that is not ready for a revision of our source, as Flux words it.
fn unready(dependency: &Dependency, revision: &str, policy: &Policy) -> Option<Decision> {
    let Dependency { name, found } = dependency;
    let waits = |message: String| Some(blocked(reasons::DEPENDENCY_NOT_READY, message));
    let Some(found) = found else {
        return waits(format!("dependency '{name}' not found"));
    };
    match &found.expression {
        None => {}
        Some(Ok(true)) if policy.additive_expressions => {}
        Some(Ok(true)) => return None,
        Some(Ok(false)) => {
            return waits(format!(
                "dependency '{name}' is not ready according to readyExpr eval"
            ));
        }
        // Only another text can help.
        Some(Err(error @ cel_expression::Error::Parse { .. })) => {
            return Some(invalid_expression(&format!(
                "failed to evaluate dependency {name}: {error}"
            )));
        }
        Some(Err(error)) => return waits(format!("failed to evaluate dependency {name}: {error}")),
    }
    if !found.ready {
        return waits(format!("dependency '{name}' is not ready"));
    }
    // Two objects on one source move together: the first must have applied the revision that the second is about to.
    let behind = found.same_source && found.applied_revision.as_deref() != Some(revision);
    behind.then(|| {
        blocked(
            reasons::DEPENDENCY_NOT_READY,
            format!("dependency '{name}' revision is not up to date"),
        )
    })
}

/// What starts a run at once, even while another revision is being waited for.
fn urgent(observed: &Observed, inputs: &Inputs, requested: bool) -> Option<Trigger> {
    let Some(attempt) = &observed.attempt else {
        return Some(Trigger::Startup);
    };
    if attempt.inputs.generation != inputs.generation {
        Some(Trigger::Spec)
    } else if attempt.inputs != *inputs {
        Some(Trigger::Revision)
    } else if requested {
        Some(Trigger::Requested)
    } else if observed.prune_confirmed {
        Some(Trigger::Confirmed)
    } else if observed.variables_touched {
        // After a failure too: what was touched may be what was missing.
        Some(Trigger::Variables)
    } else if observed.drifted && attempt.outcome != Outcome::Failed {
        Some(Trigger::Drift)
    } else {
        None
    }
}

/// Whether what waits for others may go on. After a failure the retry does it.
fn is_handed_over(observed: &Observed, attempt: &Attempt, now: Timestamp) -> bool {
    let due = |(moved, until): (bool, Timestamp)| moved || until <= now;
    attempt.outcome != Outcome::Failed && observed.handing_over.is_some_and(due)
}

/// Returns when the next run is due, or why it is due now.
fn due(object: &Kustomization, attempt: &Attempt, now: Timestamp) -> Result<Timestamp, Trigger> {
    let (after, trigger) = match attempt.outcome {
        Outcome::Failed => (object.retry_interval().into(), Trigger::Retry),
        Outcome::Succeeded | Outcome::Waiting => (attempt.interval, Trigger::Interval),
    };
    let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    let until = attempt.at.checked_add(after).unwrap_or(Timestamp::MAX);
    if until <= now { Err(trigger) } else { Ok(until) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::observe::{DependencyState, SourceArtifact};
    use super::*;

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
            variables_touched: false,
            prune_confirmed: false,
            handing_over: None,
        }
    }

    fn attempt(outcome: Outcome, seconds_ago: i64) -> Attempt {
        let at = NOW - SignedDuration::from_secs(seconds_ago);
        Attempt {
            inputs: inputs(3, "r1"),
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
        assert_eq!(
            case(&|o| o.attempt = Some(attempt(Outcome::Succeeded, 600))),
            Some(Trigger::Interval)
        );
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
        // A failure is retried at its interval; what drifted meanwhile is mended by the retry.
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
        assert!(matches!(decided(&observed), Decision::Conclude(_)));
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
            Some(DependencyState {
                ready,
                same_source,
                applied_revision: Some(revision.to_owned()),
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
    fn every_kind_of_source_is_taken() {
        for kind in ["GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"] {
            let decision = decided(&observed(json!({"sourceRef": {"kind": kind, "name": "a"}})));
            assert!(
                !matches!(decision, Decision::Stalled { .. }),
                "{kind}: {decision:?}"
            );
        }
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
            let found = Some(DependencyState {
                ready,
                same_source: false,
                applied_revision: None,
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
}
