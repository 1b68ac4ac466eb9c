//! Someone else changes an object each time it is corrected: both say what they want without end. It is corrected less often then.

use std::time::Duration;

use controller_kit::ObjectKey;
use jiff::Timestamp;
use kube_apply::Applied;
use manifest::ObjectId;
use reconcile_kit::{fights, patience};

use super::pass::Pass;
use super::plan::{Plan, Trigger};
use crate::context::Context;

/// Returns for how long the correction of an object is put off; None if it is made at once.
pub fn put_off(context: &Context, key: &ObjectKey, object: &ObjectId) -> Option<Duration> {
    let until = context
        .memory
        .with(key, |entry| entry.fights.wait(object, Timestamp::now()))?;
    Some(patience::until(until))
}

/// Takes in which objects a run has corrected.
pub(super) fn corrected(pass: &Pass<'_>, plan: &Plan, applied: &Applied) {
    if plan.trigger != Trigger::Drift {
        return;
    }
    let objects = fights::corrections(applied);
    let begun = pass.remembered(|entry| entry.fights.corrected(objects, Timestamp::now()));
    if !begun.is_empty() {
        pass.recorder.fights(plan, &begun);
    }
}
