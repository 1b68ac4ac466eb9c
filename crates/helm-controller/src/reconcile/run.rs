//! One run: what the release is made of, then the release, then what is written of it.

use std::sync::Arc;
use std::time::Duration;

use api::helm::{HelmRelease, HelmReleaseStatus};
use api::meta::reasons;
use cluster_access::targets::Target;
use controller_kit::queue::{Outcome as Next, Slot};
use controller_kit::{ObjectKey, conditions};
use error_chain::chain;
use jiff::{SignedDuration, Timestamp};
use reconcile_kit::base::placement;
use serde_json::{Map, Value};

use super::access;
use super::decide::{Plan, Trigger};
use super::observe::Observed;
use super::record::Recorder;
use super::status::{self, Report};
use super::world::{Place, World};
use crate::charts::Loaded;
use crate::context::Context;
use crate::memory::{Attempt, Ends, Outcome, Seen};
use crate::release::{self, Desired, Ended};
use crate::{chart_template, drift_rules, values};

/// Parts of a run.
struct Parts {
    values: Arc<Map<String, Value>>,
    chart: Arc<Loaded>,
    target: Arc<Target>,
}

/// Input that is not available.
struct Missing {
    /// Reason of Ready.
    reason: &'static str,
    message: String,
}

/// Carries out a plan, and records how it ended.
pub(super) async fn run(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    plan: Plan,
    slot: Slot,
) -> Next {
    if is_settled(context, key, observed, &plan) {
        return rest(context, key, &observed.object, &plan);
    }
    let (began, ends) = (Timestamp::now(), Ends::new(&context.shutdown));
    context.memory.with(key, |entry| {
        entry.drifted = false;
        entry.inputs_touched = false;
        entry.running = Some(ends.clone());
    });
    let next = attempt(context, key, observed, &mut recorder, &plan, slot, ends).await;
    context.memory.with(key, |entry| entry.running = None);
    context
        .base
        .observe(key, Timestamp::now().duration_since(began).unsigned_abs());
    next
}

/// Returns whether the interval is over and nothing can be different: the records of the release are watched, and as the status
/// says; so is all that it is made of; and no one looks for drift.
fn is_settled(context: &Context, key: &ObjectKey, observed: &Observed, plan: &Plan) -> bool {
    let status = observed.object.status.as_ref();
    let is_ready = status.is_some_and(|status| conditions::is_ready(&status.conditions));
    let is_watched = context.memory.with(key, |entry| {
        matches!(entry.seen, Seen::Newest(_)) && entry.has_read_values
    });
    plan.trigger == Trigger::Interval
        && is_ready
        && is_watched
        && !drift_rules::is_on(&observed.object)
        && !access::is_asked(&observed.object, &context.sources.charts)
        && (observed.object.spec.values_from.is_empty() || context.watches_configs)
}

async fn attempt(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    recorder: &mut Recorder<'_>,
    plan: &Plan,
    slot: Slot,
    ends: Ends,
) -> Next {
    let object = &observed.object;
    if let Err(error) = recorder.ensure_finalizer().await {
        return recorder.unwritten(&error);
    }
    let parts = match gather(context, key, object, plan).await {
        Ok(parts) => parts,
        Err(Missing { reason, message }) => {
            return match recorder.failed(reason, message).await {
                Next::Backoff => try_again(context, key, plan),
                next => next,
            };
        }
    };
    let before = recorder.status();
    let mut status = before.clone();
    let generation = object.metadata.generation.unwrap_or_default();
    status.helm_chart = chart_template::key(object).map(|chart| chart.to_string());
    status::unobstructed(&mut status, generation, Timestamp::now());
    let desired = desired(context, &parts);
    let (ended, mut status) = {
        let mut world = World::new(context, key, object, recorder, &slot, ends);
        let ended = drive(&mut world, &parts, &mut status, &desired).await;
        (ended, status)
    };
    tracing::debug!(?ended, trigger = ?plan.trigger, "the run ended");
    status::still_stalled(&mut status, &before);
    if ended.observes_generation() {
        status.observed_generation = Some(generation);
    }
    if let Some(requested_at) = recorder.requested_at() {
        status.last_handled_reconcile_at = Some(requested_at.to_owned());
    }
    if let Err(error) = recorder.write(&status).await {
        // The status says something else than what is true: the next run puts it right.
        context.memory.with(key, |entry| entry.attempt = None);
        return recorder.unwritten(&error);
    }
    conclude(context, key, object, recorder, plan, ended).await
}

/// Gets what the release is made of, in Flux's order.
async fn gather(
    context: &Context,
    key: &ObjectKey,
    object: &HelmRelease,
    plan: &Plan,
) -> Result<Parts, Missing> {
    if let Err(access::Denied { reason, message }) =
        access::check(&context.base.client, &context.sources.charts, object).await
    {
        return Err(Missing { reason, message });
    }
    let composed = values::values_of(&context.base.client, object).await;
    let composed = composed.map_err(|error| Missing {
        reason: "ValuesError",
        message: chain(&error),
    })?;
    let chart = context.charts.get(&plan.artifact).await;
    let chart = chart.map_err(|error| Missing {
        reason: reasons::ARTIFACT_FAILED,
        message: match error.is_gone() {
            true => "Source not ready: artifact not found".to_owned(),
            false => format!("Could not load chart: {}", chain(&error)),
        },
    })?;
    let target = context.base.targets.target_of(placement(object)).await;
    let target = target.map_err(|error| Missing {
        reason: "RESTClientError",
        message: chain(&error),
    })?;
    context.memory.with(key, |entry| entry.has_read_values = true);
    Ok(Parts {
        values: Arc::new(composed),
        chart,
        target,
    })
}

fn desired(context: &Context, parts: &Parts) -> Desired {
    let metadata = &parts.chart.chart().metadata;
    Desired {
        oci_digest: parts.chart.oci_digest.clone(),
        retries_by_default: context.policy.default_to_retry,
        ..Desired::new(
            &metadata.name,
            &metadata.version,
            &metadata.app_version,
            &parts.values,
        )
    }
}

/// Brings the release to what is desired; first away from where the spec does not want it any more.
async fn drive(
    world: &mut World<'_, '_>,
    parts: &Parts,
    status: &mut HelmReleaseStatus,
    desired: &Desired,
) -> Ended {
    let object = Arc::clone(world.object());
    if let Some(moved) = release::must_reinstall(&object, status, &desired.chart_name) {
        tracing::info!(
            reason = moved.as_str(),
            "release target configuration changed: running uninstall for current release"
        );
        world.enter(Place::of_status(&object, status, &parts.target));
        if let Err(failure) = release::uninstall(world, &object, status).await {
            return Ended::Failed(failure);
        }
        if let Err(failure) = release::Perform::save(world, status).await {
            return Ended::Failed(failure);
        }
    }
    world.enter(Place::of_spec(&object, &parts.target));
    world.bring(Arc::clone(&parts.chart), Arc::clone(&parts.values));
    if let Some(reason) = release::begin(&object, status, desired) {
        tracing::debug!(reason, "forgot earlier failures");
    }
    release::drive(world, &object, status, desired).await
}

/// Says when the object is looked at again.
async fn conclude(
    context: &Context,
    key: &ObjectKey,
    object: &HelmRelease,
    recorder: &mut Recorder<'_>,
    plan: &Plan,
    ended: Ended,
) -> Next {
    match ended {
        Ended::Done => {
            tracing::info!(revision = plan.inputs.revision, trigger = ?plan.trigger, "Reconciliation finished");
            rest(context, key, object, plan)
        }
        Ended::RetryAfter(interval) => {
            let interval = context.base.jittered(interval.into());
            remember(context, key, plan, Outcome::Failed, interval);
            Next::After(interval)
        }
        Ended::Stalled(stall) => {
            tracing::error!(?stall, "Reconciliation failed terminally");
            remember(context, key, plan, Outcome::Stalled, Duration::MAX);
            Next::Terminal
        }
        Ended::Requeue => try_again(context, key, plan),
        Ended::Failed(failure) => {
            tracing::error!(error = %failure, "Reconciliation failed");
            try_again(context, key, plan)
        }
        // Another process goes on.
        Ended::Cancelled if context.shutdown.is_cancelled() => Next::Done,
        Ended::Cancelled => {
            let by = format!("HelmRelease/{key}");
            tracing::info!(
                trigger = by,
                "new reconciliation triggered, canceling health checks"
            );
            context.memory.with(key, |entry| entry.attempt = None);
            if let Err(error) = recorder.report(Report::Canceled { by }).await {
                return recorder.unwritten(&error);
            }
            Next::After(Duration::ZERO)
        }
    }
}

/// Later each time. Kept here and not by the queue alone: what wakes the object before its time (a record that our own action
/// wrote) is no reason to try again sooner.
fn try_again(context: &Context, key: &ObjectKey, plan: &Plan) -> Next {
    let failures = context.memory.with(key, |entry| {
        // What failed was something else.
        let before = if plan.trigger == Trigger::Retry {
            entry.failures
        } else {
            0
        };
        entry.failures = before.saturating_add(1);
        entry.failures
    });
    let delay = context.backoff.delay(failures - 1);
    remember(context, key, plan, Outcome::Failed, delay);
    Next::After(delay)
}

/// All is as it should be until the interval is over.
fn rest(context: &Context, key: &ObjectKey, object: &HelmRelease, plan: &Plan) -> Next {
    let interval = context.base.jittered(object.spec.interval.into());
    remember(context, key, plan, Outcome::Succeeded, interval);
    Next::After(interval)
}

fn remember(context: &Context, key: &ObjectKey, plan: &Plan, outcome: Outcome, after: Duration) {
    let after = SignedDuration::try_from(after).unwrap_or(SignedDuration::MAX);
    let attempt = Attempt {
        inputs: plan.inputs.clone(),
        outcome,
        next: Timestamp::now().checked_add(after).unwrap_or(Timestamp::MAX),
    };
    context.memory.with(key, |entry| entry.attempt = Some(attempt));
}
