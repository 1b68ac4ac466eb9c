//! Deployments: replicas created, updated, available and ready, then the conditions; stalled at the progress deadline.

use serde_json::Value;

use crate::conditions::{self, Condition};
use crate::fields::{self, FieldError};
use crate::verdict::Verdict;

/// The controller writes no `Progressing` condition when the deadline is this, which is how "none" is spelled.
const NO_DEADLINE: i64 = i32::MAX as i64;

pub(crate) fn verdict(object: &Value) -> Result<Verdict, FieldError> {
    let conditions = conditions::read(object)?;
    if let Some(stalled) = conditions.iter().find(|c| deadline_exceeded(c)) {
        let deadline = match fields::integer_or(object, "spec.progressDeadlineSeconds", NO_DEADLINE) {
            NO_DEADLINE => "no progress within the deadline".to_owned(),
            seconds => format!("no progress within the deadline of {seconds}s"),
        };
        return Ok(Verdict::failed(match stalled.message {
            "" => deadline,
            message => format!("{deadline}: {message}"),
        }));
    }
    Ok(replicas(object).unwrap_or_else(|| rolled_out(object, &conditions)))
}

fn deadline_exceeded(condition: &Condition<'_>) -> bool {
    condition.kind == "Progressing" && condition.reason == "ProgressDeadlineExceeded"
}

/// The first count that is not what it should be.
fn replicas(object: &Value) -> Option<Verdict> {
    let count = |path| fields::integer_or(object, path, 0);
    let wanted = fields::integer_or(object, "spec.replicas", 1);
    let created = count("status.replicas");
    let updated = count("status.updatedReplicas");
    let available = count("status.availableReplicas");
    let ready = count("status.readyReplicas");
    let message = if wanted > created {
        format!("{created} of {wanted} replicas created")
    } else if wanted > updated {
        format!("{updated} of {wanted} replicas updated")
    } else if created > wanted {
        format!(
            "{} old replicas have not yet ended",
            created.saturating_sub(wanted)
        )
    } else if updated > available {
        format!("{available} of {updated} replicas available")
    } else if wanted > ready {
        format!("{ready} of {wanted} replicas ready")
    } else {
        return None;
    };
    Some(Verdict::in_progress(message))
}

/// The counts are right: the controller must have said so too, in its conditions.
fn rolled_out(object: &Value, conditions: &[Condition<'_>]) -> Verdict {
    let deadline = fields::integer_or(object, "spec.progressDeadlineSeconds", NO_DEADLINE);
    let complete = conditions
        .iter()
        .any(|c| c.kind == "Progressing" && c.status == "True" && c.reason == "NewReplicaSetAvailable");
    if deadline != NO_DEADLINE && !complete {
        return Verdict::in_progress("the new ReplicaSet is not yet available");
    }
    if !conditions
        .iter()
        .any(|c| c.kind == "Available" && c.status == "True")
    {
        return Verdict::in_progress("not yet available");
    }
    Verdict::current(format!(
        "{} replicas available",
        fields::integer_or(object, "status.availableReplicas", 0)
    ))
}
