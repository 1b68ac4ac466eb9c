//! Decides what to do about a HelmRelease: a pure function of the observed state.
//!
//! Everything that makes a reconcile run, wait or rest is decided here. What becomes of the release in a run is decided in
//! `release`, from Helm's records.

use api::helm::{ChartArtifactKind, HelmRelease};
pub use api::meta::reasons::ARTIFACT_FAILED;
use api::meta::{ROLLBACK_REASON_ANNOTATION, ROLLBACK_TO_ANNOTATION, reasons};
use api::source::HelmChart;
use change_window::freeze::InForce;
use controller_kit::{ObjectKey, check_name};
use jiff::Timestamp;
use kube::ResourceExt as _;
use reconcile_kit::checks::checks;
use reconcile_kit::dependencies::{Dependency, Unmet};

use super::observe::{Observed, Template};
use crate::drift_rules;
use crate::flags::Policy;
use crate::memory::{Inputs, Outcome, Wish};
use crate::source::{Reference, Source, SourceArtifact};

/// Flux's reason of Ready while the source has nothing.
const SOURCE_NOT_READY: &str = "SourceNotReady";
/// Flux's words before what only another spec can help against.
const TERMINAL: &str = "Reconciliation failed terminally due to configuration error";

/// Next step of the reconcile.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Being deleted: uninstall, then remove the finalizer.
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
    /// Make or change the HelmChart. The watch on it goes on.
    ApplyChart(Box<HelmChart>),
    /// Delete the HelmChart of an earlier spec, if it is still there, and look again.
    RemoveChart(Option<ObjectKey>),
    /// Bring the release to what the spec, the chart and the values say.
    Run(Box<Plan>),
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
    /// Inputs of the run.
    pub inputs: Inputs,
    /// What the release is to be.
    pub goal: Goal,
    /// The Freeze that is in force.
    pub freeze: Option<InForce>,
}

/// What a release is to be.
#[derive(Debug, Clone, PartialEq)]
pub enum Goal {
    /// What the spec, the values and the chart in this artifact say.
    Source(SourceArtifact),
    /// One of its revisions.
    Back(Wish),
}

impl Goal {
    /// Returns the rollback that a person asks for.
    pub fn back(&self) -> Option<&Wish> {
        match self {
            Self::Source(_) => None,
            Self::Back(wish) => Some(wish),
        }
    }
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
    /// A person goes back to another revision, or does not any more.
    Rollback,
    /// The Freeze has ended for which something waited.
    Thaw,
    /// A person asked for it (`reconcile.fluxcd.io/requestedAt`).
    Requested,
    /// A ConfigMap or Secret that the spec refers to was touched.
    Inputs,
    /// Someone else wrote or deleted a record of the release.
    Released,
    /// Someone changed or deleted an object of the release.
    Drift,
    /// The last run failed, and its retry is due.
    Retry,
    /// The interval passed.
    Interval,
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
    match wish(object) {
        Ok(None) => {}
        Ok(Some(wish)) => return back(observed, wish, now),
        Err(message) => return stalled(reasons::RECONCILIATION_FAILED, message),
    }
    let Some(reference) = &observed.reference else {
        return stalled("InvalidChartReference", "invalid Chart reference".to_owned());
    };
    if let Some(decision) = refused(object, reference, policy) {
        return decision;
    }
    match &observed.template {
        Template::Current => {}
        Template::Apply(chart) => return Decision::ApplyChart(chart.clone()),
        Template::Remove(chart) => return Decision::RemoveChart(chart.clone()),
        Template::Taken { chart, by } => {
            let message = format!("HelmChart '{chart}' belongs to HelmRelease '{by}': rename one of them");
            return blocked(reasons::ARTIFACT_FAILED, message);
        }
    }
    let unready = || {
        observed
            .dependencies
            .iter()
            .find_map(|found| unready(found, policy))
    };
    // While a Freeze is in force nothing new is released: what it depends on may wait as well.
    if observed.frozen.now.is_none()
        && let Some(decision) = unready()
    {
        return decision;
    }
    let artifact = match &observed.source {
        Source::Artifact(artifact) => artifact,
        Source::Missing => {
            let message = format!("could not get Source object: {reference} not found");
            return blocked(reasons::ARTIFACT_FAILED, message);
        }
        // Not stalled: the owner of the source may change their mind, and the watch tells.
        Source::Denied(denied) => {
            return blocked(
                reasons::ACCESS_DENIED,
                format!("can't access '{reference}': {denied}"),
            );
        }
        Source::NotReady(why) => return blocked(SOURCE_NOT_READY, why.clone()),
    };
    let inputs = Inputs {
        generation: object.metadata.generation.unwrap_or_default(),
        revision: artifact.revision.clone(),
        digest: artifact.digest.clone(),
    };
    run(observed, inputs, Goal::Source(artifact.clone()), now)
}

fn run(observed: &Observed, inputs: Inputs, goal: Goal, now: Timestamp) -> Decision {
    match due(observed, &inputs, goal.back(), now) {
        Ok(until) => Decision::Rest { until },
        Err(trigger) => Decision::Run(Box::new(Plan {
            trigger,
            inputs,
            goal,
            freeze: observed.frozen.now.clone(),
        })),
    }
}

/// Characters of a person's words that are kept.
const MAX_WHY: usize = 600;

/// Returns the annotations with which a person goes back, as they are not part of the spec.
pub fn wishes(object: &HelmRelease) -> [Option<String>; 2] {
    [ROLLBACK_TO_ANNOTATION, ROLLBACK_REASON_ANNOTATION].map(|key| object.annotations().get(key).cloned())
}

/// Returns the rollback that a person asks for.
fn wish(object: &HelmRelease) -> Result<Option<Wish>, String> {
    let [to, why] = wishes(object);
    let Some(to) = to else {
        return Ok(None);
    };
    let number = to.parse().ok().filter(|number| *number > 0);
    let to = number.ok_or_else(|| {
        let to: String = to.chars().take(MAX_WHY).collect();
        format!("the annotation {ROLLBACK_TO_ANNOTATION} must be the number of a revision of the release, and not '{to}'")
    })?;
    let why = why.unwrap_or_else(|| "no reason was given".to_owned());
    Ok(Some(Wish {
        to,
        why: why.chars().take(MAX_WHY).collect(),
    }))
}

/// Goes back, whatever the source and the dependencies are like: the revision is in Helm's records.
fn back(observed: &Observed, wish: Wish, now: Timestamp) -> Decision {
    let inputs = Inputs {
        generation: observed.object.metadata.generation.unwrap_or_default(),
        revision: String::new(),
        digest: String::new(),
    };
    run(observed, inputs, Goal::Back(wish), now)
}

fn blocked(reason: &'static str, message: String) -> Decision {
    Decision::Blocked { reason, message }
}

fn stalled(reason: &'static str, message: String) -> Decision {
    Decision::Stalled { reason, message }
}

/// Refusals that last until the spec (or a flag) changes.
fn refused(object: &HelmRelease, reference: &Reference, policy: &Policy) -> Option<Decision> {
    if let Err(error) = checks(object) {
        return Some(invalid_expression(&error.to_string()));
    }
    if let Err(error) = drift_rules::rules_of(object) {
        return Some(stalled(reasons::RECONCILIATION_FAILED, error.to_string()));
    }
    // It becomes part of paths, where it could lead elsewhere.
    if let Err(problem) = check_name(&reference.key.namespace) {
        return Some(stalled("InvalidChartReference", problem));
    }
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    if policy.no_cross_namespace_refs && reference.key.namespace != own {
        let message = format!("can't access '{reference}', cross-namespace references have been blocked");
        return Some(stalled(reasons::ACCESS_DENIED, message));
    }
    if reference.kind == ChartArtifactKind::ExternalArtifact && !policy.external_artifacts {
        let message = format!("can't access '{reference}', ExternalArtifact feature gate is disabled");
        return Some(stalled(reasons::ACCESS_DENIED, message));
    }
    None
}

fn invalid_expression(problem: &str) -> Decision {
    stalled(reasons::INVALID_CEL_EXPRESSION, format!("{TERMINAL}: {problem}"))
}

/// The decision for a dependency that is not ready, in Flux's words.
fn unready(dependency: &Dependency, policy: &Policy) -> Option<Decision> {
    let name = &dependency.name;
    let waits = |message: String| Some(blocked(reasons::DEPENDENCY_NOT_READY, message));
    match dependency.check(policy.additive_expressions) {
        Ok(_) => None,
        Err(Unmet::Missing) => waits(format!("unable to get '{name}' dependency: it does not exist")),
        Err(Unmet::NotYet(message)) => waits(message),
        Err(Unmet::Invalid(message)) => Some(invalid_expression(&message)),
    }
}

/// Returns when the next run is due, or why it is due now.
fn due(
    observed: &Observed,
    inputs: &Inputs,
    back: Option<&Wish>,
    now: Timestamp,
) -> Result<Timestamp, Trigger> {
    let Some(attempt) = &observed.attempt else {
        return Err(Trigger::Startup);
    };
    let status = observed.object.status.as_ref();
    let handled = status.and_then(|status| status.last_handled_reconcile_at.as_ref());
    if attempt.inputs.generation != inputs.generation {
        Err(Trigger::Spec)
    } else if attempt.back.as_ref() != back {
        Err(Trigger::Rollback)
    } else if attempt.inputs != *inputs {
        Err(Trigger::Revision)
    } else if observed.waits && observed.frozen.now.is_none() {
        Err(Trigger::Thaw)
    } else if observed.requested_at.is_some() && observed.requested_at.as_ref() != handled {
        Err(Trigger::Requested)
    } else if observed.inputs_touched {
        Err(Trigger::Inputs)
    } else if observed.release_touched {
        Err(Trigger::Released)
    } else if observed.drifted && attempt.outcome == Outcome::Succeeded {
        Err(Trigger::Drift)
    } else if attempt.next <= now {
        Err(match attempt.outcome {
            Outcome::Succeeded => Trigger::Interval,
            Outcome::Failed | Outcome::Stalled => Trigger::Retry,
        })
    } else {
        Ok(observed
            .correct_at
            .map_or(attempt.next, |at| at.min(attempt.next)))
    }
}

#[cfg(test)]
mod tests;
