//! Pods: by phase; crash loops fail at once, and no node fails after a grace period.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::conditions;
use crate::fields::{self, FieldError};
use crate::verdict::Verdict;

/// How long a Pod may find no node before that counts as a failure (kstatus `ScheduleWindow`).
const SCHEDULE_WINDOW: SignedDuration = SignedDuration::from_secs(15);

pub(crate) fn verdict(object: &Value, now: Timestamp) -> Result<Verdict, FieldError> {
    let conditions = conditions::read(object)?;
    let phase = fields::text_or(object, "status.phase", "");
    Ok(match phase {
        "Succeeded" => Verdict::current("completed"),
        // kstatus's choice: it has come to its end, and whether that is bad is its owner's to say.
        "Failed" => Verdict::current("completed with a failure"),
        "Running" if conditions.iter().any(|c| c.kind == "Ready" && c.status == "True") => {
            Verdict::current("ready")
        }
        "Running" => running_but_not_ready(object)?,
        "Pending" => match unschedulable(object) {
            Some(message) => not_scheduled(object, message, now),
            None => Verdict::in_progress("pending"),
        },
        "" => Verdict::in_progress("not yet observed by a kubelet"),
        other => {
            return Err(FieldError::UnknownValue {
                path: "status.phase",
                value: other.to_owned(),
            });
        }
    })
}

/// Judges a Pod that is to run to its end, such as a hook of Helm: only its phase counts.
pub(crate) fn end(object: &Value) -> Verdict {
    let reason = fields::text_or(object, "status.reason", "");
    match fields::text_or(object, "status.phase", "") {
        "Succeeded" => Verdict::current("succeeded"),
        "Failed" if reason.is_empty() => Verdict::failed("failed"),
        "Failed" => Verdict::failed(format!("failed: {reason}")),
        "Running" => Verdict::in_progress("running"),
        "Pending" => match unschedulable(object) {
            Some(message) => Verdict::in_progress(format!("no node takes it: {message}")),
            None => Verdict::in_progress("pending"),
        },
        _ => Verdict::in_progress("not yet observed by a kubelet"),
    }
}

/// Returns the scheduler's message when it says that no node takes the Pod.
pub(crate) fn unschedulable(object: &Value) -> Option<&str> {
    let scheduled = conditions::find(object, "PodScheduled")?;
    (scheduled.status == "False" && scheduled.reason == "Unschedulable").then_some(scheduled.message)
}

fn not_scheduled(object: &Value, message: &str, now: Timestamp) -> Verdict {
    let message = format!("no node takes it: {message}");
    let created = fields::text_or(object, "metadata.creationTimestamp", "").parse::<Timestamp>();
    // A Pod without a readable time was created at the beginning of time, as in Go.
    let fails_at = created
        .unwrap_or(Timestamp::MIN)
        .saturating_add(SCHEDULE_WINDOW)
        .unwrap_or(Timestamp::MAX);
    let mut verdict = Verdict::in_progress(message);
    verdict.fails_at = Some(fails_at);
    verdict.at(now)
}

fn running_but_not_ready(object: &Value) -> Result<Verdict, FieldError> {
    let looping = crash_looping(object)?;
    Ok(if looping.is_empty() {
        Verdict::in_progress("running but not ready")
    } else {
        Verdict::failed(format!("containers in a crash loop: {}", looping.join(", ")))
    })
}

fn crash_looping(object: &Value) -> Result<Vec<&str>, FieldError> {
    let statuses = match fields::field(object, "status.containerStatuses")? {
        None => return Ok(Vec::new()),
        Some(statuses) => statuses.as_array(),
    };
    let statuses = statuses.ok_or_else(|| FieldError::wrong_type("status.containerStatuses", "a list"))?;
    let looping = |status: &&Value| {
        status.pointer("/state/waiting/reason").and_then(Value::as_str) == Some("CrashLoopBackOff")
    };
    Ok(statuses
        .iter()
        .filter(looping)
        .filter_map(|status| status.get("name")?.as_str())
        .collect())
}
