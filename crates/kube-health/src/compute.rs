//! Computes the verdict on an object: kstatus's rules, with Flux's rule for Jobs.

use jiff::Timestamp;
use serde_json::Value;

use crate::conditions::{self, Condition};
use crate::fields::{self, FieldError};
use crate::kinds;
use crate::verdict::{Rule, Status, Verdict};

/// The rules of kstatus, with Flux's rule for Jobs.
#[derive(Clone, Copy, Debug, Default)]
pub struct BuiltIn;

impl Rule for BuiltIn {
    fn verdict(&self, object: &Value, now: Timestamp) -> Verdict {
        compute_at(object, now)
    }
}

/// Judges an object at this moment; see [`compute_at`].
///
/// ```
/// use kube_health::verdict::{Status, compute};
/// let object = serde_json::json!({
///     "apiVersion": "v1", "kind": "PersistentVolumeClaim", "status": {"phase": "Pending"}
/// });
/// assert_eq!(compute(&object).status, Status::InProgress);
/// ```
pub fn compute(object: &Value) -> Verdict {
    compute_at(object, Timestamp::now())
}

/// Judges a whole object, status included, as it stands at `now`.
///
/// Never NotFound. Unknown when a field that matters has a type that it cannot have.
pub fn compute_at(object: &Value, now: Timestamp) -> Verdict {
    judge(object, now).unwrap_or_else(|error| Verdict::new(Status::Unknown, error.to_string()))
}

pub(super) fn judge(object: &Value, now: Timestamp) -> Result<Verdict, FieldError> {
    let (group, kind) = group_and_kind(object);
    // Flux reads Jobs with its own rule alone (pkg/runtime/statusreaders): not even deletion is looked at.
    if (group, kind) == ("batch", "Job") {
        return kinds::job::verdict(object);
    }
    if let Some(verdict) = common(object)? {
        return Ok(verdict);
    }
    if let Some(verdict) = kinds::verdict(group, kind, object, now)? {
        return Ok(verdict);
    }
    Ok(ready_condition(object)?.unwrap_or_else(|| Verdict::current("exists and reports no condition")))
}

/// An `apiVersion` with more than one slash is none, and takes the kind with it (apimachinery).
pub(super) fn group_and_kind(object: &Value) -> (&str, &str) {
    let kind = fields::text_or(object, "kind", "");
    match fields::text_or(object, "apiVersion", "").split_once('/') {
        Some((_, version)) if version.contains('/') => ("", ""),
        Some((group, _)) => (group, kind),
        None => ("", kind),
    }
}

/// Conventions for all objects: deletion, generation, and the two conditions that kstatus made standard.
pub(super) fn common(object: &Value) -> Result<Option<Verdict>, FieldError> {
    if fields::text(object, "metadata.deletionTimestamp")?.is_some_and(|time| !time.is_empty()) {
        return Ok(Some(Verdict::new(
            Status::Terminating,
            terminating_message(object),
        )));
    }
    if let Some(verdict) = generation_not_observed(object)? {
        return Ok(Some(verdict));
    }
    let conditions = conditions::read(object)?;
    Ok(conditions
        .iter()
        .filter(|condition| condition.status == "True")
        .find_map(|condition| match condition.kind {
            "Reconciling" => Some(Verdict::in_progress(with_trouble(
                condition.explained("reconciling"),
                &conditions,
            ))),
            "Stalled" => Some(Verdict::failed(with_trouble(
                condition.explained("stalled"),
                &conditions,
            ))),
            _ => None,
        }))
}

/// Adds the message of Ready to that of progress, if the last try failed (Flux's objects, and all that follow
/// them).
pub(super) fn with_trouble(told: String, conditions: &[Condition<'_>]) -> String {
    let ready = conditions.iter().find(|condition| condition.kind == "Ready");
    match ready {
        Some(ready) if ready.status == "False" && !told.contains(ready.message) => {
            format!("{told}; not ready: {}", ready.explained("it does not say why"))
        }
        _ => told,
    }
}

pub(super) fn terminating_message(object: &Value) -> String {
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    let names: Vec<&str> = finalizers
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .take(5)
        .collect();
    if names.is_empty() {
        "is being deleted".to_owned()
    } else {
        format!("is being deleted, held by finalizers {}", names.join(", "))
    }
}

/// Kinds without either field are not held up: many controllers write no `observedGeneration`.
pub(super) fn generation_not_observed(object: &Value) -> Result<Option<Verdict>, FieldError> {
    let Some(generation) = fields::integer(object, "metadata.generation")? else {
        return Ok(None);
    };
    let Some(observed) = fields::integer(object, "status.observedGeneration")? else {
        return Ok(None);
    };
    if observed == generation {
        return Ok(None);
    }
    let told = format!("generation {generation} is not yet observed, the last observed is {observed}");
    // Flux's objects observe a generation only when they succeed with it.
    let trouble = trouble_of(object, generation).filter(|_| observed < generation);
    Ok(Some(Verdict::in_progress(match trouble {
        Some(trouble) => format!("{told}; not ready: {trouble}"),
        None => told,
    })))
}

/// Returns the problem in a Ready condition about this generation.
pub(super) fn trouble_of(object: &Value, generation: i64) -> Option<String> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    let is_ready = |condition: &&Value| fields::text_or(condition, "type", "") == "Ready";
    let raw = conditions.iter().find(is_ready)?;
    let ready = conditions::find(object, "Ready").filter(|ready| ready.status == "False")?;
    (fields::integer_or(raw, "observedGeneration", 0) == generation)
        .then(|| ready.explained("it does not say why"))
}

/// The widespread `Ready` condition, for kinds without a rule. False counts as being under way: nothing in the
/// condition tells a failure from a start.
pub(super) fn ready_condition(object: &Value) -> Result<Option<Verdict>, FieldError> {
    let conditions = conditions::read(object)?;
    let ready = |condition: &Condition<'_>| match condition.status {
        "True" => Some(Verdict::current(condition.explained("ready"))),
        "False" | "Unknown" => Some(Verdict::in_progress(condition.explained("not ready"))),
        _ => None,
    };
    Ok(conditions
        .iter()
        .filter(|condition| condition.kind == "Ready")
        .find_map(ready))
}
