//! Concludes a run: remembers and records how it ended.

use std::time::Duration;

use api::meta::reasons;
use controller_kit::ObjectKey;
use controller_kit::queue::Outcome as Next;
use jiff::Timestamp;
use reconcile_kit::patience;

use super::ended::Failed;
use super::pass::Pass;
use super::plan::{Content, Plan};
use super::statement::{End, statement};
use super::status::Health;
use super::{frozen, rollback};
use crate::context::Context;
use crate::memory::{self, Attempt, Run};

/// Records a success, and when the next run is due.
pub(super) async fn conclude_success(mut pass: Pass<'_>, mut run: Run, health: Health) -> Next {
    let asked: Duration = pass.object().spec.interval.into();
    let interval = pass.context.base.jittered(asked);
    let reason = match &run.plan.content {
        Content::Source => Some(reasons::RECONCILIATION_SUCCEEDED),
        Content::Good(_) => Some(reasons::ROLLED_BACK),
        Content::Delivered(_) => None,
    };
    if let Some(reason) = reason {
        let end = End {
            checksum: &run.checksum,
            contents: run.contents.as_ref(),
            began: run.began,
            succeeded: true,
            reason,
        };
        let signed = statement(&pass, &run.plan, end).await;
        run.reports.extend(signed);
    }
    let recorded = match &run.plan.content {
        Content::Source => {
            // Before it is reported: who sees that it is healthy may count on the way back to it.
            if let Err(error) = rollback::keep(&pass, &run, health).await {
                // It is delivered all the same.
                rollback::is_not_kept(&pass, &run.plan, &run.checksum, &error.message());
            }
            let rivals = pass.remembered(|entry| entry.ready_suffix(Timestamp::now()));
            pass.recorder.succeeded(&run, health, rivals, asked).await
        }
        Content::Good(_) => {
            let held = pass.remembered(|entry| entry.record.clone().and_then(|record| record.held));
            pass.recorder.rolled_back(&run, health, held.as_ref()).await
        }
        // What it changed was published; the rest is as it was.
        Content::Delivered(_) => Ok(()),
    };
    if recorded.is_err() {
        return unrecorded(&pass);
    }
    let waits = matches!(run.plan.content, Content::Delivered(_)).then(|| run.plan.inputs.clone());
    remember(
        pass.context,
        pass.key,
        run.plan,
        memory::Outcome::Succeeded,
        interval,
    );
    pass.remembered(|entry| {
        entry.revivals = 0;
        entry.missing_since = None;
    });
    if let Some(inputs) = waits {
        return frozen::report(pass, inputs).await;
    }
    // What waits for its heirs is looked at again before that.
    let waits = pass.remembered(|entry| entry.handing_over.clone());
    Next::After(waits.map_or(interval, |waits| match waits.moved {
        true => Duration::ZERO,
        false => patience::until(waits.until()).min(interval),
    }))
}

/// Records a failure, and when it is tried again.
pub(super) async fn conclude_failure(
    mut pass: Pass<'_>,
    plan: &Plan,
    failed: Failed,
    began: Timestamp,
) -> Next {
    let mut retry: Duration = pass.object().retry_interval().into();
    let is_missing = failed.error.is_artifact_missing();
    let quiet = pass.remembered(|entry| match is_missing {
        true => patience::quiet_retry(&mut entry.missing_since, Timestamp::now()),
        false => {
            entry.missing_since = None;
            None
        }
    });
    if is_missing {
        retry = retry.min(quiet.unwrap_or(MISSING_ARTIFACT_RETRY));
    }
    remember(
        pass.context,
        pass.key,
        plan.clone(),
        memory::Outcome::Failed,
        retry,
    );
    if quiet.is_some() {
        tracing::info!(
            error = failed.error.message(),
            "the artifact is not there at the moment"
        );
        return Next::After(retry);
    }
    let is_held = rollback::hold(&pass, plan, &failed).await;
    let signed = match &failed.checksum {
        Some(checksum) => {
            let end = End {
                checksum,
                contents: None,
                began,
                succeeded: false,
                reason: failed.error.reason(),
            };
            statement(&pass, plan, end).await
        }
        None => None,
    };
    match pass.recorder.failed_run(plan, &failed, signed, began).await {
        // The good revision is next.
        Ok(()) if is_held => Next::After(Duration::ZERO),
        Ok(()) => {
            super::revive::when_possible(&pass, failed.cut_off);
            Next::After(retry)
        }
        Err(_) => unrecorded(&pass),
    }
}

/// The status says something else than what is true: its inventory may still name what was pruned, its Ready that a run is
/// under way. What is remembered must not stand in for a run that puts it right.
pub(super) fn unrecorded(pass: &Pass<'_>) -> Next {
    pass.remembered(|entry| {
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
        content: plan.content,
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
