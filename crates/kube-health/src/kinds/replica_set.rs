//! ReplicaSets: replicas labelled, available and ready.

use serde_json::Value;

use crate::conditions;
use crate::fields::{self, FieldError};
use crate::verdict::Verdict;

pub(crate) fn verdict(object: &Value) -> Result<Verdict, FieldError> {
    let conditions = conditions::read(object)?;
    if let Some(failure) = conditions
        .iter()
        .find(|c| c.kind == "ReplicaFailure" && c.status == "True")
    {
        // Not Failed: the controller tries again, and quota or a missing ServiceAccount may come right.
        return Ok(Verdict::in_progress(
            failure.explained("replicas cannot be created"),
        ));
    }
    let count = |path| fields::integer_or(object, path, 0);
    let wanted = fields::integer_or(object, "spec.replicas", 1);
    let created = count("status.replicas");
    let labelled = count("status.fullyLabeledReplicas");
    let available = count("status.availableReplicas");
    let ready = count("status.readyReplicas");
    let message = if wanted > labelled {
        format!("{labelled} of {wanted} replicas created with all labels")
    } else if wanted > available {
        format!("{available} of {wanted} replicas available")
    } else if wanted > ready {
        format!("{ready} of {wanted} replicas ready")
    } else if created > wanted {
        format!(
            "{} replicas too many have not yet ended",
            created.saturating_sub(wanted)
        )
    } else {
        return Ok(Verdict::current(format!("{available} replicas available")));
    };
    Ok(Verdict::in_progress(message))
}
