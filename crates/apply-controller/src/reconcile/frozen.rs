//! While a Freeze is in force: nothing is applied but the very objects that were delivered last.
//!
//! What those are stands in the record of the controller (`good.rs`), where no tenant can write. Without a record it is read off the
//! status. A revision that makes the same objects moves on; one that makes others waits, as do another spec and other variables.

use api::kustomize::Kustomization;
use artifact::Digest;
use change_window::freeze::InForce;
use controller_kit::queue::Outcome as Next;
use jiff::Timestamp;
use reconcile_kit::patience;

use super::decide::{Decision, due, is_requested};
use super::observe::Observed;
use super::pass::Pass;
use super::plan::{Content, Guard, Kept, Plan, Trigger};
use super::rollback;
use crate::good::Head;
use crate::memory::{Inputs, Outcome};

/// Returns a digest of the spec, without what only says when there is something to do.
pub(super) fn spec_digest(object: &Kustomization) -> String {
    let mut spec = serde_json::to_value(&object.spec).unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        for timing in ["suspend", "interval", "retryInterval", "timeout"] {
            fields.remove(timing);
        }
    }
    Digest::from_content(spec.to_string().as_bytes()).to_string()
}

/// Returns the digest of the objects that were delivered last. None if nothing was, if another spec was, or if something else was
/// begun since.
pub(super) fn delivered(observed: &Observed) -> Option<&str> {
    let object = &*observed.object;
    let status = object.status.as_ref()?;
    let newest = status.history.first()?;
    let last = rollback::last_good(status)?;
    // What was begun and failed is neither the one nor the other.
    if newest.digest != last.digest {
        return None;
    }
    match observed.record.delivered() {
        Some(head) => (is_of_spec(head, object) && head.checksum == last.digest).then_some(&*head.checksum),
        None => (status.observed_generation == object.metadata.generation).then_some(&*last.digest),
    }
}

pub(super) fn is_of_spec(head: &Head, object: &Kustomization) -> bool {
    head.spec == spec_digest(object)
}

/// Decides what may be done while a Freeze is in force. `urgent` is what would be done without it.
pub(super) fn decide(
    observed: &Observed,
    freeze: &InForce,
    (inputs, content, urgent): (&Inputs, &Content, Option<Trigger>),
    plan: impl Fn(Trigger) -> Box<Plan>,
    now: Timestamp,
) -> Decision {
    let rest = || Decision::Rest {
        until: wake(observed, freeze, now),
    };
    // What went back to the last healthy revision, or is about to, is as it should be.
    if *content != Content::Source {
        // A person who goes back changes what is delivered.
        if !rollback::is_under_way(observed) {
            return Decision::Frozen(inputs.clone());
        }
        return match urgent.or_else(|| overdue(observed, now)) {
            Some(Trigger::Rollback) => Decision::Run(plan(Trigger::Rollback)),
            Some(trigger) if freeze.corrects_drift => Decision::Run(plan(trigger)),
            _ => rest(),
        };
    }
    let Some(delivered) = delivered(observed) else {
        return Decision::Frozen(inputs.clone());
    };
    let waits = observed.waits.as_ref() == Some(inputs) && !observed.variables_touched;
    if !waits {
        let guard = Guard {
            delivered: delivered.to_owned(),
            corrects_drift: freeze.corrects_drift,
        };
        return match urgent.or_else(|| overdue(observed, now)) {
            Some(trigger) => Decision::Run(Box::new(Plan {
                guard: Some(guard),
                ..*plan(trigger)
            })),
            None => rest(),
        };
    }
    let head = observed.record.delivered().filter(|head| head.has_objects());
    let trigger = correction(observed).or_else(|| overdue(observed, now));
    match (head, trigger) {
        (Some(head), Some(trigger)) if freeze.corrects_drift => Decision::Run(Box::new(Plan {
            content: Content::Delivered(Kept::from(head)),
            ..*plan(trigger)
        })),
        _ => Decision::Frozen(inputs.clone()),
    }
}

/// Why what was delivered last is applied again.
fn correction(observed: &Observed) -> Option<Trigger> {
    let Some(attempt) = &observed.attempt else {
        return Some(Trigger::Startup);
    };
    if is_requested(observed, attempt) {
        Some(Trigger::Requested)
    } else if observed.drifted && attempt.outcome != Outcome::Failed {
        Some(Trigger::Drift)
    } else {
        None
    }
}

fn overdue(observed: &Observed, now: Timestamp) -> Option<Trigger> {
    let attempt = observed.attempt.as_ref()?;
    due(&observed.object, attempt, now).err()
}

/// When there is something to look at again.
fn wake(observed: &Observed, freeze: &InForce, now: Timestamp) -> Timestamp {
    let next = observed.attempt.as_ref();
    let next = next.and_then(|attempt| due(&observed.object, attempt, now).ok());
    let times = [next, freeze.until, observed.correct_at];
    times.into_iter().flatten().min().unwrap_or(Timestamp::MAX)
}

/// Says what waits, for what and until when.
pub(super) async fn report(mut pass: Pass<'_>, inputs: Inputs) -> Next {
    let Some(freeze) = pass.observed.frozen.now.clone() else {
        return Next::After(std::time::Duration::ZERO);
    };
    pass.remembered(|entry| entry.waits = Some(inputs.clone()));
    let corrects = freeze.corrects_drift && {
        let head = pass.observed.record.delivered();
        delivered(&pass.observed).is_some() && head.is_some_and(Head::has_objects)
    };
    let mut message = format!("{} waits {freeze}", what(&pass.observed, &inputs));
    if !corrects {
        message.push_str("; drift is not corrected meanwhile");
    }
    let reported = pass.recorder.frozen(message).await;
    let until = wake(&pass.observed, &freeze, Timestamp::now());
    reported.map_or(Next::Backoff, |()| Next::After(patience::until(until)))
}

/// What waits.
fn what(observed: &Observed, inputs: &Inputs) -> String {
    let status = observed.object.status.as_ref();
    let applied = status.and_then(|status| status.last_applied_revision.as_ref());
    let observed_generation = status.and_then(|status| status.observed_generation);
    if Some(&inputs.revision) != applied {
        format!("revision {}", inputs.revision)
    } else if Some(inputs.generation) != observed_generation {
        "the new spec".to_owned()
    } else {
        "a change".to_owned()
    }
}
