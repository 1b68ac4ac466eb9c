//! One reconcile of one Kustomization: observe, decide, then fetch, build, apply, prune, health, and record.
//!
//! `decide` and `status` hold the behaviour and are pure; the steps between carry out the plan. A crash between any two
//! steps loses only time: the inventory is recorded before what it describes is made.

pub mod build;
mod carry_out;
pub mod closure;
pub mod decide;
mod decrypt;
pub mod finalize;
pub mod handover;
pub mod health;
mod ignore;
pub mod observe;
mod progress;
pub mod prune;
pub mod record;
pub mod report;
mod revive;
pub mod rivals;
mod source_tree;
pub mod status;
mod tree_fs;
pub mod variables;
pub mod why;

use std::sync::Arc;
use std::time::Duration;

use api::kustomize::{Kustomization, ResourceInventory, ResourceRef};
use controller_kit::ObjectKey;
use controller_kit::queue::Outcome as Next;
use jiff::Timestamp;
use kube_apply::Inventory;
use manifest::ObjectId;

use reconcile_kit::patience;

use crate::controller::Context;
use crate::error::Error;
use crate::memory::{self, Attempt};
use carry_out::{Ended, Failed, carry_out};
use decide::{Decision, Plan, Trigger};
use observe::Observed;
use record::Recorder;
use report::Reports;
use status::{Health, Report};

/// When an artifact that is not there is asked for again: the status of its source may be as before when it is there again,
/// so that nothing wakes us.
const MISSING_ARTIFACT_RETRY: Duration = Duration::from_secs(30);

/// A run whose objects are applied: all that is left is to wait for health and to record it.
#[derive(Debug, Clone)]
pub struct Run {
    /// The plan that was carried out.
    pub plan: Plan,
    /// When it began.
    pub began: Timestamp,
    /// Digest of the built objects.
    pub checksum: String,
    /// Objects that are managed now.
    pub inventory: ResourceInventory,
    /// True if anything in the cluster was changed.
    pub changed: bool,
    /// Reports for the history.
    pub reports: Reports,
}

impl Run {
    /// Nobody asked for it, and it changed nothing.
    fn quiet(&self) -> bool {
        !self.changed
            && matches!(
                self.plan.trigger,
                Trigger::Interval | Trigger::Startup | Trigger::Variables | Trigger::HandOver
            )
    }
}

/// Reconciles the object that `key` names.
pub async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Next {
    let locked = context.policy.no_cross_namespace_refs;
    let Some(observed) = observe::observe(
        &context.base.objects,
        &context.sources,
        &context.memory,
        &key,
        locked,
    ) else {
        context.forget(&key);
        return Next::Done;
    };
    if !context.base.is_ours(&observed.object) {
        // It was moved to another shard, whose controller goes on with it.
        context.forget(&key);
        return Next::Done;
    }
    context.base.metrics.expect_deliveries("Kustomization", &key);
    let mut recorder = Recorder::new(&context, Arc::clone(&observed.object));
    let decision = decide::decide(&observed, &context.policy, Timestamp::now());
    tracing::debug!(?decision, "decided");
    if !matches!(decision, Decision::Blocked { .. }) {
        context.memory.with(&key, |entry| entry.blocked_since = None);
    }
    health::cancel(&context, &key, &observed, &decision, &mut recorder).await;
    match decision {
        Decision::Finalize => finalize::finalize(&context, &key, &observed, recorder).await,
        Decision::Suspended => {
            context.memory.forget(&key);
            recorder
                .report(Report::Suspended)
                .await
                .map_or(Next::Backoff, |_| Next::Done)
        }
        Decision::Stalled { reason, message } => recorder.stalled(reason, message).await,
        Decision::Blocked { reason, message } => match context.memory.with(&key, |entry| {
            patience::left(&mut entry.blocked_since, Timestamp::now())
        }) {
            Some(rest) => Next::After(rest),
            None => recorder.blocked(reason, message).await,
        },
        Decision::AwaitHealth => Next::Done,
        Decision::TellOfWait => health::tell(&context, &key, recorder).await,
        Decision::TellOfRivals => tell_of_rivals(&context, &key, recorder).await,
        Decision::Rest { until } => Next::After(patience::until(until)),
        Decision::Conclude(plan) => health::conclude(&context, &key, &observed, recorder, &plan).await,
        Decision::Run(plan) => run(&context, &key, &observed, recorder, plan).await,
    }
}

/// Says in the status that others apply our objects, then looks again at what else is to be done.
async fn tell_of_rivals(context: &Context, key: &ObjectKey, mut recorder: Recorder<'_>) -> Next {
    let told = context.memory.with(key, |entry| {
        entry.rivals.untold = false;
        entry.rivals.told()
    });
    match recorder.report(Report::Rivals(told)).await {
        Ok(_) => Next::After(Duration::ZERO),
        Err(_) => Next::Backoff,
    }
}

/// Carries out a plan, and records how it ended.
async fn run(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    plan: Plan,
) -> Next {
    let began = Timestamp::now();
    context.memory.with(key, |entry| {
        entry.drifted = false;
        entry.variables_touched = false;
        entry.prune_refused = None;
        entry.wait = None;
        entry.revival = None;
        entry.revived = false;
    });
    let timeout: Duration = observed.object.timeout().into();
    let steps = carry_out(context, key, observed, &mut recorder, &plan, began);
    let ended = match tokio::time::timeout(timeout, steps).await {
        Ok(ended) => ended,
        Err(_) => Err(Box::new(Failed::before_build(Error::TimedOut(timeout.into())))),
    };
    context
        .base
        .observe(key, Timestamp::now().duration_since(began).unsigned_abs());
    match ended {
        Ok(Ended::Done { run, health }) => {
            conclude_success(context, key, observed, recorder, *run, health).await
        }
        Ok(Ended::Waiting) => Next::Done,
        Err(failed) => conclude_failure(context, key, observed, recorder, &plan, *failed, began).await,
    }
}

/// Reads the inventory of the object's status. An entry that cannot be read is left out: it names no object.
pub fn managed_before(object: &Kustomization) -> Inventory {
    let inventory = object
        .status
        .as_ref()
        .and_then(|status| status.inventory.as_ref());
    let entries = inventory.into_iter().flat_map(|inventory| &inventory.entries);
    let read = entries.filter_map(|entry| {
        Some((
            ObjectId::parse_inventory_id(&entry.id).ok()?,
            entry.version.clone(),
        ))
    });
    read.collect()
}

fn recorded(inventory: &Inventory) -> ResourceInventory {
    let entries = inventory
        .to_entries()
        .into_iter()
        .map(|(id, version)| ResourceRef { id, version });
    ResourceInventory {
        entries: entries.collect(),
    }
}

/// Records a success, and when the next run is due.
async fn conclude_success(
    context: &Arc<Context>,
    key: &ObjectKey,
    observed: &Observed,
    mut recorder: Recorder<'_>,
    run: Run,
    health: Health,
) -> Next {
    let interval = context.base.jittered(observed.object.spec.interval.into());
    let rivals = context.memory.with(key, |entry| entry.rivals.told());
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
async fn conclude_failure(
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
            revive::when_possible(context, key, &observed.object, failed.cut_off);
            Next::After(retry)
        }
        Err(_) => unrecorded(context, key),
    }
}

/// The status says something else than what is true: its inventory may still name what was pruned, its Ready that a run is
/// under way. What is remembered must not stand in for a run that puts it right.
fn unrecorded(context: &Context, key: &ObjectKey) -> Next {
    context.memory.with(key, |entry| {
        entry.attempt = None;
        entry.applied = None;
    });
    Next::Backoff
}

fn remember(context: &Context, key: &ObjectKey, plan: Plan, outcome: memory::Outcome, interval: Duration) {
    let attempt = Attempt {
        inputs: plan.inputs,
        request: plan.request,
        outcome,
        at: Timestamp::now(),
        interval,
    };
    context.memory.with(key, |entry| entry.attempt = Some(attempt));
}
