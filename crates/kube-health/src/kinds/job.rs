//! Jobs, by Flux's rule (pkg/runtime/statusreaders): Current only when complete, or suspended.
//!
//! kstatus would call a Job Current as soon as it runs; people wait for migrations to end.

use serde_json::Value;

use crate::conditions;
use crate::fields::{self, FieldError};
use crate::verdict::Verdict;

pub(crate) fn verdict(object: &Value) -> Result<Verdict, FieldError> {
    if object.pointer("/spec/suspend").and_then(Value::as_bool) == Some(true) {
        return Ok(Verdict::current("is suspended"));
    }
    let parallelism = fields::integer_or(object, "spec.parallelism", 1);
    let completions = fields::integer_or(object, "spec.completions", parallelism);
    let active = fields::integer_or(object, "status.active", 0);
    let succeeded = fields::integer_or(object, "status.succeeded", 0);
    let failed = fields::integer_or(object, "status.failed", 0);
    for condition in conditions::read(object)?
        .iter()
        .filter(|condition| condition.status == "True")
    {
        match condition.kind {
            "Complete" => {
                return Ok(Verdict::current(format!(
                    "{succeeded} of {completions} pods succeeded"
                )));
            }
            "Failed" => {
                let why = condition.explained("the Job has failed");
                return Ok(Verdict::failed(format!("{failed} pods failed: {why}")));
            }
            _ => {}
        }
    }
    if fields::text_or(object, "status.startTime", "").is_empty() {
        return Ok(Verdict::in_progress(format!(
            "not yet started, 0 of {parallelism} pods active"
        )));
    }
    Ok(Verdict::in_progress(format!(
        "{succeeded} of {completions} pods succeeded, {active} active, {failed} failed"
    )))
}
