//! Decides what to do about a Kustomization: a pure function of the observed state.
//!
//! Everything that makes a reconcile run, wait or rest is decided here, and nowhere else. The steps after it carry the
//! [`Plan`] out and choose nothing.

use std::time::Duration;

use api::kustomize::{Kustomization, SourceKind};
use api::meta::reasons;
use artifact::client::SourceObject;
use jiff::{SignedDuration, Timestamp};
use reconcile_kit::checks::checks;
use reconcile_kit::dependencies::{Met, Unmet};

use super::observe::{Dependency, Observed, Source, source_namespace};
use super::plan::{Content, Plan, Trigger};
use super::rollback;
use super::{frozen, ignore};
use crate::flags::Policy;
use crate::memory::{Attempt, Inputs, Outcome, Waiting};

/// Next step of the reconcile.
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
    /// Something new is there, and a Freeze is in force: nothing, until it ends.
    Frozen(Inputs),
    /// The wait for health of exactly these inputs is on; its end wakes this object.
    AwaitHealth,
    /// The wait takes so long that the status should tell of it.
    TellOfWait,
    /// Another owner applies objects of ours, and the status does not say so yet.
    TellOfRivals,
    /// The wait for health ended: write what came of it.
    Conclude,
    /// Bring the cluster to what the source says.
    Run(Box<Plan>),
    /// Nothing to do before this time.
    Rest {
        /// When the interval, or the retry after a failure, is due.
        until: Timestamp,
    },
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
    if let Some(message) = rollback::problem(observed) {
        return Decision::Stalled {
            reason: reasons::RECONCILIATION_FAILED,
            message,
        };
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
    let inputs = Inputs {
        generation: object.metadata.generation.unwrap_or_default(),
        revision: artifact.revision.clone(),
        digest: artifact.digest.clone(),
    };
    let content = rollback::content(observed, &inputs);
    let plan = |trigger| {
        Box::new(Plan {
            trigger,
            inputs: inputs.clone(),
            content: content.clone(),
            source: source_object(object),
            url: artifact.url.clone(),
            origin_revision: artifact.origin_revision.clone(),
            guard: None,
            request: observed.requested_at.clone(),
        })
    };
    let urgent = urgent(observed, &inputs, &content);
    if let Some(freeze) = &observed.frozen.now {
        // What is under way goes on. Nothing new is applied: what it depends on may wait as well.
        return observed.waiting.as_ref().map_or_else(
            || frozen::decide(observed, freeze, (&inputs, &content, urgent), plan, now),
            wait,
        );
    }
    // What is gone back to was delivered with what it depends on.
    let waits_for = (content == Content::Source).then_some(&observed.dependencies);
    for dependency in waits_for.into_iter().flatten() {
        if let Some(decision) = unready(dependency, &artifact.revision, policy) {
            return decision;
        }
    }
    if let Some(trigger) = urgent {
        return Decision::Run(plan(trigger));
    }
    if observed.has_rivals_untold {
        return Decision::TellOfRivals;
    }
    match (&observed.waiting, &observed.attempt) {
        (Some(waiting), _) => wait(waiting),
        (None, Some(attempt)) if is_handed_over(observed, attempt, now) => {
            Decision::Run(plan(Trigger::HandOver))
        }
        (None, Some(attempt)) => due(object, attempt, now).map_or_else(
            |trigger| Decision::Run(plan(trigger)),
            |until| {
                let patience = observed.handing_over.map(|(_, patience)| patience);
                let sooner = [patience, observed.correct_at].into_iter().flatten().min();
                Decision::Rest {
                    until: sooner.map_or(until, |sooner| sooner.min(until)),
                }
            },
        ),
        // No wait and no attempt is a first run, which `urgent` has taken.
        (None, None) => Decision::Run(plan(Trigger::Startup)),
    }
}

fn wait(waiting: &Waiting) -> Decision {
    match waiting {
        Waiting { finished: true, .. } => Decision::Conclude,
        Waiting { untold: true, .. } => Decision::TellOfWait,
        Waiting { .. } => Decision::AwaitHealth,
    }
}

/// The source of a Kustomization, as the artifact service is asked for it.
pub fn source_object(object: &Kustomization) -> SourceObject {
    let source = &object.spec.source_ref;
    SourceObject::new(&source.kind.to_string(), source_namespace(object), &source.name)
}

fn blocked(reason: &'static str, message: String) -> Decision {
    Decision::Blocked { reason, message }
}

/// Refusals that last until the spec (or a flag) changes.
pub(super) fn refused(object: &Kustomization, policy: &Policy) -> Option<Decision> {
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
    if source.kind == SourceKind::ExternalArtifact && !policy.external_artifacts {
        let namespace = source_namespace(object);
        return Some(Decision::Stalled {
            reason: reasons::ACCESS_DENIED,
            message: format!(
                "can't access '{}/{namespace}/{}', ExternalArtifact feature gate is disabled",
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
    if let Some(message) = rollback::mistake(object) {
        return Some(Decision::Stalled {
            reason: reasons::RECONCILIATION_FAILED,
            message,
        });
    }
    let checks = checks(object).err()?;
    Some(invalid_expression(&checks.to_string()))
}

fn invalid_expression(problem: &str) -> Decision {
    Decision::Stalled {
        reason: reasons::INVALID_CEL_EXPRESSION,
        message: format!("Reconciliation failed terminally due to configuration error: {problem}"),
    }
}

/// The decision for a dependency that is not ready for a revision of our source, in Flux's words.
fn unready(dependency: &Dependency, revision: &str, policy: &Policy) -> Option<Decision> {
    let name = &dependency.name;
    let waits = |message: String| Some(blocked(reasons::DEPENDENCY_NOT_READY, message));
    match dependency.check(policy.additive_expressions) {
        Ok(Met::ByExpression) => None,
        Ok(Met::Ready) => {
            let detail = &dependency.found.as_ref()?.detail;
            // Two objects on one source move together: the first must have applied the revision that the second is about to.
            let is_behind = detail.same_source && detail.applied_revision.as_deref() != Some(revision);
            is_behind
                .then(|| waits(format!("dependency '{name}' revision is not up to date")))
                .flatten()
        }
        Err(Unmet::Missing) => waits(format!("dependency '{name}' not found")),
        Err(Unmet::NotYet(message)) => waits(message),
        Err(Unmet::Invalid(message)) => Some(invalid_expression(&message)),
    }
}

/// The trigger that starts a run at once, even while another revision is being waited for.
fn urgent(observed: &Observed, inputs: &Inputs, content: &Content) -> Option<Trigger> {
    let Some(attempt) = &observed.attempt else {
        return Some(Trigger::Startup);
    };
    if attempt.inputs.generation != inputs.generation {
        Some(Trigger::Spec)
    } else if attempt.inputs != *inputs {
        Some(Trigger::Revision)
    } else if attempt.content != *content {
        Some(Trigger::Rollback)
    } else if observed.waits.is_some() && observed.frozen.now.is_none() {
        Some(Trigger::Thaw)
    } else if is_requested(observed, attempt) {
        Some(Trigger::Requested)
    } else if observed.prune_confirmed {
        Some(Trigger::Confirmed)
    } else if observed.variables_touched {
        // After a failure too: what was touched may be what was missing.
        Some(Trigger::Variables)
    } else if observed.revived {
        Some(Trigger::Retry)
    } else if observed.drifted && attempt.outcome != Outcome::Failed {
        Some(Trigger::Drift)
    } else {
        None
    }
}

/// Returns whether a person asks for a run. The status records a request only when its run ends, and until then, while health is
/// waited for, that run is the answer.
pub(super) fn is_requested(observed: &Observed, attempt: &Attempt) -> bool {
    let asked = &observed.requested_at;
    asked.is_some() && *asked != observed.handled_at && *asked != attempt.request
}

/// Returns whether what waits for others may go on. After a failure the retry does it.
fn is_handed_over(observed: &Observed, attempt: &Attempt, now: Timestamp) -> bool {
    let due = |(moved, until): (bool, Timestamp)| moved || until <= now;
    attempt.outcome != Outcome::Failed && observed.handing_over.is_some_and(due)
}

/// Returns when the next run is due, or why it is due now.
pub(super) fn due(object: &Kustomization, attempt: &Attempt, now: Timestamp) -> Result<Timestamp, Trigger> {
    let (after, trigger) = match attempt.outcome {
        Outcome::Failed => (
            Duration::from(object.retry_interval()).min(attempt.interval),
            Trigger::Retry,
        ),
        Outcome::Succeeded | Outcome::Waiting => (attempt.interval, Trigger::Interval),
    };
    let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    let until = attempt.at.checked_add(after).unwrap_or(Timestamp::MAX);
    if until <= now { Err(trigger) } else { Ok(until) }
}

#[cfg(test)]
mod tests;
