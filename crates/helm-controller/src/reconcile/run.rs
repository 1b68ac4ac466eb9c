//! One run: what the release is made of, then the release, then what is written of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api::helm::{HelmRelease, HelmReleaseStatus};
use api::meta::{condition_types, reasons};
use cluster_access::targets::Target;
use controller_kit::events::Severity;
use controller_kit::queue::{Outcome as Next, Slot};
use controller_kit::{ObjectKey, conditions};
use error_chain::chain;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use reconcile_kit::base::placement;
use reconcile_kit::{fights, freezes, patience};
use serde_json::{Map, Value};

use super::access;
use super::decide::{Goal, Plan, Trigger};
use super::observe::Observed;
use super::record::Recorder;
use super::status::{self, Report};
use super::world::{Place, World};
use crate::charts::Loaded;
use crate::context::Context;
use crate::memory::{Attempt, Ends, Entry, Outcome, Seen, Wish};
use crate::release::{self, Back, Desired, Ended, FailureKind};
use crate::source::SourceArtifact;
use crate::{chart_template, drift_rules, values};

/// Parts of a run.
struct Parts {
    values: Arc<Map<String, Value>>,
    chart: Arc<Loaded>,
    target: Arc<Target>,
}

/// What a run needs.
enum Gathered<'a> {
    Parts(Parts),
    Back(&'a Wish, Arc<Target>),
}

/// Input that is not available.
struct Missing {
    /// Reason of Ready.
    reason: &'static str,
    message: String,
    /// The artifact that the source names is not there.
    is_gone: bool,
}

impl Missing {
    fn new(reason: &'static str, message: String) -> Self {
        Self {
            reason,
            message,
            is_gone: false,
        }
    }
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
        entry.fights.due = None;
        entry.inputs_touched = false;
        entry.waits = false;
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
        && !observed.waits
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
    let gathered = match &plan.goal {
        Goal::Source(artifact) => gather(context, key, object, artifact).await.map(Gathered::Parts),
        Goal::Back(wish) => target(context, object)
            .await
            .map(|target| Gathered::Back(wish, target)),
    };
    let gathered = match gathered {
        Ok(gathered) => gathered,
        Err(missing) => {
            if let Some(retry) = quiet_retry(context, key, &missing) {
                tracing::info!(error = missing.message, "the artifact is not there at the moment");
                remember(context, key, plan, Outcome::Failed, retry);
                return Next::After(retry);
            }
            return match recorder.failed(missing.reason, missing.message).await {
                Next::Backoff => try_again(context, key, plan),
                next => next,
            };
        }
    };
    let before = recorder.status();
    let mut status = before.clone();
    let generation = object.metadata.generation.unwrap_or_default();
    status::unobstructed(&mut status, generation, Timestamp::now());
    freezes::thawed(&mut status.conditions, Timestamp::now());
    let (ended, what) = {
        let mut world = World::new(context, key, object, recorder, &slot, ends);
        world.freeze(plan.freeze.as_ref());
        match &gathered {
            Gathered::Parts(parts) => {
                status.helm_chart = chart_template::key(object).map(|chart| chart.to_string());
                conditions::remove(&mut status.conditions, condition_types::HELD);
                let desired = desired(context, parts);
                let ended = drive(&mut world, parts, &mut status, &desired).await;
                (ended, what(&before, &desired))
            }
            Gathered::Back(wish, target) => {
                let ended = go_back(&mut world, target, &mut status, wish).await;
                (ended, format!("the rollback to revision {}", wish.to))
            }
        }
    };
    tracing::debug!(?ended, trigger = ?plan.trigger, "the run ended");
    if let Ended::Failed(failure) = &ended
        && failure.kind == FailureKind::Refused
    {
        // Of what is not done nothing is recorded but that.
        let reason = reasons::IMAGE_VERIFICATION_FAILED;
        return match recorder.failed(reason, failure.message.clone()).await {
            Next::Backoff => try_again(context, key, plan),
            next => next,
        };
    }
    let said = conditions::get(&before.conditions, condition_types::FROZEN).map(|said| said.message.clone());
    let waiting = plan.freeze.as_ref().filter(|_| ended == Ended::Frozen);
    let waiting = waiting.map(|freeze| format!("{what} waits {freeze}"));
    match &waiting {
        Some(message) => {
            // Of what is not done nothing is recorded.
            let helm_chart = status.helm_chart.take();
            status = HelmReleaseStatus { helm_chart, ..before };
            let is_delivered = !status.history.is_empty();
            if is_delivered {
                status::unobstructed(&mut status, generation, Timestamp::now());
            }
            freezes::report(&mut status.conditions, recorder.frame(), message, is_delivered);
        }
        None => status::still_stalled(&mut status, &before),
    }
    if ended.observes_generation() {
        status.observed_generation = Some(generation);
    }
    if let Some(requested_at) = recorder.requested_at() {
        status.last_handled_reconcile_at = Some(requested_at.to_owned());
    }
    let fights = context
        .memory
        .with(key, |entry| entry.fights.ready_suffix(Timestamp::now()));
    fights::say(&mut status.conditions, fights.as_deref());
    match (recorder.write(&status).await, waiting) {
        (Err(error), _) => {
            // The status says something else than what is true: the next run puts it right.
            context.memory.with(key, |entry| entry.attempt = None);
            return recorder.unwritten(&error);
        }
        (Ok(true), Some(message)) if said.as_ref() != Some(&message) => {
            recorder.event(Severity::Info, reasons::FROZEN, &message, BTreeMap::new());
        }
        (Ok(_), _) => {}
    }
    conclude(context, key, object, recorder, plan, ended).await
}

/// Returns when a chart that is missing for a moment is asked for again, without a word of it.
fn quiet_retry(context: &Context, key: &ObjectKey, missing: &Missing) -> Option<Duration> {
    let now = Timestamp::now();
    let retry = |entry: &mut Entry| patience::quiet_retry(&mut entry.missing_since, now);
    missing.is_gone.then(|| context.memory.with(key, retry))?
}

/// What waits for the end of a Freeze.
fn what(status: &HelmReleaseStatus, desired: &Desired) -> String {
    let latest = release::latest(&status.history);
    let is_same = latest.is_some_and(|latest| {
        (&latest.chart_name, &latest.chart_version) == (&desired.chart_name, &desired.chart_version)
    });
    match is_same {
        true => "a change".to_owned(),
        false => format!("chart {}@{}", desired.chart_name, desired.chart_version),
    }
}

/// Gets what the release is made of, in Flux's order.
async fn gather(
    context: &Context,
    key: &ObjectKey,
    object: &HelmRelease,
    artifact: &SourceArtifact,
) -> Result<Parts, Missing> {
    if let Err(access::Denied { reason, message }) =
        access::check(&context.base.client, &context.sources.charts, object).await
    {
        return Err(Missing::new(reason, message));
    }
    let composed = values::values_of(&context.base.client, object).await;
    let composed = composed.map_err(|error| Missing::new("ValuesError", chain(&error)))?;
    let chart = context.charts.get(artifact).await;
    let chart = chart.map_err(|error| Missing {
        reason: reasons::ARTIFACT_FAILED,
        message: match error.is_gone() {
            true => "Source not ready: artifact not found".to_owned(),
            false => format!("Could not load chart: {}", chain(&error)),
        },
        is_gone: error.is_gone(),
    })?;
    context.memory.with(key, |entry| entry.missing_since = None);
    let target = target(context, object).await?;
    context.memory.with(key, |entry| entry.has_read_values = true);
    Ok(Parts {
        values: Arc::new(composed),
        chart,
        target,
    })
}

/// Returns the cluster that the release is in, as its account.
async fn target(context: &Context, object: &HelmRelease) -> Result<Arc<Target>, Missing> {
    let target = context.base.targets.target_of(placement(object)).await;
    target.map_err(|error| Missing::new("RESTClientError", chain(&error)))
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
        if world.is_frozen() {
            return Ended::Frozen;
        }
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

/// Brings the release back to a revision, where it is: where a newer spec wants it does not matter.
async fn go_back(
    world: &mut World<'_, '_>,
    target: &Target,
    status: &mut HelmReleaseStatus,
    wish: &Wish,
) -> Ended {
    let object = Arc::clone(world.object());
    world.enter(Place::of_status(&object, status, target));
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let back = Back {
        to: wish.to,
        why: wish.why.clone(),
        release: format!("windlass release helmrelease/{name} -n {namespace}"),
        is_frozen: world.is_frozen(),
    };
    release::go_back(world, &object, status, &back).await
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
        Ended::Frozen => {
            let interval = context.base.jittered(object.spec.interval.into());
            let ends = plan.freeze.as_ref().and_then(|freeze| freeze.until);
            let interval = ends.map_or(interval, |ends| patience::until(ends).min(interval));
            context.memory.with(key, |entry| entry.waits = true);
            remember(context, key, plan, Outcome::Succeeded, interval);
            Next::After(interval)
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
        back: plan.goal.back().cloned(),
    };
    context.memory.with(key, |entry| entry.attempt = Some(attempt));
}
