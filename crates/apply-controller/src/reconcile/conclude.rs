//! Concludes a run: remembers and records how it ended.

use std::sync::Arc;
use std::time::Duration;

use controller_kit::ObjectKey;
use controller_kit::queue::Outcome as Next;
use jiff::Timestamp;

use super::ended::Failed;
use super::observe::Observed;
use super::plan::Plan;
use super::record::Recorder;
use super::status::Health;
use crate::context::Context;
use crate::memory::{self, Attempt, Run};

/// Records a success, and when the next run is due.
pub(super) async fn conclude_success(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    run: Run,
    health: Health,
) -> Next {
    let interval = context.base.jittered(observed.object.spec.interval.into());
    let rivals = context.memory.with(key, |entry| entry.rivals.ready_suffix());
    if recorder
        .succeeded(&run, health, rivals, observed.object.spec.interval.into())
        .await
        .is_err()
    {
        return unrecorded(context, key);
    }
    remember(context, key, run.plan, memory::Outcome::Succeeded, interval);
    context.memory.with(key, |entry| entry.revivals = 0);
    // What waits for its heirs is looked at again before that.
    let waits = context.memory.with(key, |entry| entry.handing_over.clone());
    Next::After(waits.map_or(interval, |waits| match waits.moved {
        true => Duration::ZERO,
        false => reconcile_kit::patience::until(waits.until()).min(interval),
    }))
}

/// Records a failure, and when it is tried again.
pub(super) async fn conclude_failure(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    plan: &Plan,
    failed: Failed,
    began: Timestamp,
) -> Next {
    let mut retry: Duration = observed.object.retry_interval().into();
    if failed.error.is_artifact_missing() {
        retry = retry.min(MISSING_ARTIFACT_RETRY);
    }
    remember(context, key, plan.clone(), memory::Outcome::Failed, retry);
    match recorder.failed_run(plan, &failed, began).await {
        Ok(()) => {
            super::revive::when_possible(context, key, &observed.object, failed.cut_off);
            Next::After(retry)
        }
        Err(_) => unrecorded(context, key),
    }
}

/// The status says something else than what is true: its inventory may still name what was pruned, its Ready that a run is
/// under way. What is remembered must not stand in for a run that puts it right.
pub(super) fn unrecorded(context: &Context, key: &ObjectKey) -> Next {
    context.memory.with(key, |entry| {
        entry.attempt = None;
        entry.applied = None;
    });
    Next::Backoff
}

pub(super) fn remember(
    context: &Context,
    key: &ObjectKey,
    plan: Plan,
    outcome: memory::Outcome,
    interval: Duration,
) {
    let attempt = Attempt {
        inputs: plan.inputs,
        request: plan.request,
        outcome,
        at: Timestamp::now(),
        interval,
    };
    context.memory.with(key, |entry| entry.attempt = Some(attempt));
}

/// When an artifact that is not there is asked for again: the status of its source may be as before when it is there again,
/// so that nothing wakes us.
pub(super) const MISSING_ARTIFACT_RETRY: Duration = Duration::from_secs(30);
