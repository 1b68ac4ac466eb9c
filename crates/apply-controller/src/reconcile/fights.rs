//! Someone else changes an object each time it is corrected: both say what they want without end. It is corrected less often then.

use std::time::Duration;

use controller_kit::ObjectKey;
use jiff::Timestamp;
use kube_apply::{Action, Applied, Change, SetBy};
use manifest::ObjectId;
use reconcile_kit::patience;

use super::pass::Pass;
use super::plan::{Plan, Trigger};
use crate::context::Context;

/// Characters of a path that are shown.
const MAX_PATH: usize = 200;

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
    let objects = applied
        .changed()
        .map(|change| (change.id.clone(), what_was_done(change)));
    let begun = pass.remembered(|entry| entry.fights.corrected(objects, Timestamp::now()));
    if !begun.is_empty() {
        pass.recorder.fights(plan, &begun);
    }
}

/// What others had done to an object, as far as it is known.
fn what_was_done(change: &Change) -> String {
    let known = change.fields.fields.iter();
    let mut known = known.filter_map(|field| Some((field, field.set_by.as_ref()?)));
    match (known.next(), change.fields.fields.first()) {
        (Some((field, SetBy { manager, .. })), _) => format!("{}, set by {manager}", path(&field.path)),
        (None, Some(field)) => path(&field.path),
        (None, None) if change.action == Action::Created => "deleted".to_owned(),
        (None, None) => "changed".to_owned(),
    }
}

fn path(path: &str) -> String {
    path.chars().take(MAX_PATH).collect()
}
