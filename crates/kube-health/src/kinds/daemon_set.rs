//! DaemonSets: Pods scheduled, updated, available and ready on every node that should have one.

use serde_json::Value;

use crate::fields::{self, FieldError};
use crate::verdict::Verdict;

pub(crate) fn verdict(object: &Value) -> Result<Verdict, FieldError> {
    // Both are always set once the controller has been here; the common rules are lenient about them.
    if fields::integer(object, "metadata.generation")?.is_none() {
        return Ok(Verdict::in_progress("has no generation yet"));
    }
    if fields::integer(object, "status.observedGeneration")?.is_none() {
        return Ok(Verdict::in_progress("not yet observed by its controller"));
    }
    let count = |path| fields::integer_or(object, path, 0);
    let wanted = fields::integer_or(object, "status.desiredNumberScheduled", -1);
    if wanted == -1 {
        return Ok(Verdict::in_progress("the number of nodes is not yet known"));
    }
    for (path, verb) in [
        ("status.currentNumberScheduled", "scheduled"),
        ("status.updatedNumberScheduled", "updated"),
        ("status.numberAvailable", "available"),
        ("status.numberReady", "ready"),
    ] {
        let have = count(path);
        if wanted > have {
            return Ok(Verdict::in_progress(format!("{have} of {wanted} pods {verb}")));
        }
    }
    Ok(Verdict::current(format!("{wanted} pods available")))
}
