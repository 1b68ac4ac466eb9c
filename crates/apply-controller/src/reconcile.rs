//! One reconcile of one Kustomization: observe, decide, then fetch, build, apply, prune, health, and record.
//!
//! `decide` and `status` hold the behaviour and are pure; the steps between carry out the plan. A crash between any two
//! steps loses only time: the inventory is recorded before what it describes is made.

pub mod build;
mod carry_out;
pub mod closure;
mod conclude;
pub mod decide;
mod decrypt;
mod ended;
pub mod fights;
pub mod finalize;
mod frozen;
pub mod handover;
pub mod health;
mod ignore;
pub mod inventory;
pub mod observe;
mod pass;
pub mod plan;
mod progress;
pub mod prune;
pub mod record;
pub mod remote;
pub mod report;
mod revive;
pub mod rivals;
pub mod rollback;
mod source_tree;
mod statement;
pub mod status;
mod tree_fs;
pub mod variables;
pub mod why;

use std::sync::Arc;
use std::time::Duration;

use api::meta::reasons;
use controller_kit::ObjectKey;
use controller_kit::queue::Outcome as Next;
use jiff::Timestamp;
use reconcile_kit::patience;

use crate::context::Context;
use crate::error::Error;
use carry_out::carry_out;
use conclude::{conclude_failure, conclude_success};
use decide::Decision;
use ended::{Ended, Failed};
use pass::Pass;
use plan::{Content, Plan};
use status::Report;

/// Reconciles the object that `key` names.
pub async fn reconcile(context: Arc<Context>, key: ObjectKey) -> Next {
    let Some(mut observed) = observe::observe(&context, &key) else {
        // It is gone, or in another shard, whose controller continues.
        context.forget(&key);
        return Next::Done;
    };
    context.base.metrics.expect_deliveries("Kustomization", &key);
    if let Err(error) = rollback::load(&context, &mut observed, &key).await {
        let is_forbidden = error.is_forbidden();
        let message = Error::from(error).message();
        tracing::error!(error = message, "failed to look at what is kept");
        if is_forbidden {
            let mut recorder = record::Recorder::new(&context, Arc::clone(&observed.object));
            recorder.blocked(reasons::RECONCILIATION_FAILED, message).await;
        }
        return Next::Backoff;
    }
    let decision = decide::decide(&observed, &context.policy, Timestamp::now());
    tracing::debug!(?decision, "decided");
    let mut pass = Pass::new(&context, &key, observed);
    if !matches!(decision, Decision::Blocked { .. }) {
        pass.remembered(|entry| entry.blocked_since = None);
    }
    health::cancel(&mut pass, &decision).await;
    match decision {
        Decision::Finalize => finalize::finalize(pass).await,
        Decision::Suspended => {
            context.memory.forget(&key);
            let reported = pass.recorder.report(Report::Suspended).await;
            reported.map_or(Next::Backoff, |_| Next::Done)
        }
        Decision::Stalled { reason, message } => {
            // An annotation may be what is wrong: without it all is as it was, and the status must say so again.
            pass.remembered(|entry| entry.attempt = None);
            pass.recorder.stalled(reason, message).await
        }
        Decision::Blocked { reason, message } => match context.patience(&key) {
            Some(rest) => Next::After(rest),
            None => pass.recorder.blocked(reason, message).await,
        },
        Decision::Frozen(inputs) => frozen::report(pass, inputs).await,
        Decision::AwaitHealth => Next::Done,
        Decision::TellOfWait => health::report_wait(pass).await,
        Decision::TellOfRivals => tell_of_rivals(pass).await,
        Decision::Rest { until } => Next::After(patience::until(until)),
        Decision::Conclude => health::conclude(pass).await,
        Decision::Run(plan) => run(pass, *plan).await,
    }
}

/// Says in the status that others apply our objects, then looks again at what else is to be done.
async fn tell_of_rivals(mut pass: Pass<'_>) -> Next {
    let told = pass.remembered(|entry| {
        entry.rivals.untold = false;
        entry.ready_suffix(Timestamp::now())
    });
    match pass.recorder.report(Report::Rivals(told)).await {
        Ok(_) => Next::After(Duration::ZERO),
        Err(_) => Next::Backoff,
    }
}

/// Carries out a plan, and records how it ended.
async fn run(mut pass: Pass<'_>, plan: Plan) -> Next {
    let began = Timestamp::now();
    pass.remembered(|entry| {
        entry.drifted = false;
        entry.fights.due = None;
        entry.variables_touched = false;
        entry.prune_refused = None;
        entry.wait = None;
        entry.revival = None;
        entry.revived = false;
        if !matches!(plan.content, Content::Delivered(_)) {
            entry.waits = None;
        }
    });
    let timeout: Duration = pass.object().timeout().into();
    let steps = carry_out(&mut pass, &plan, began);
    let ended = match tokio::time::timeout(timeout, steps).await {
        Ok(ended) => ended,
        Err(_) => Err(Box::new(Failed::before_build(Error::TimedOut(timeout.into())))),
    };
    let took = Timestamp::now().duration_since(began).unsigned_abs();
    pass.context.base.observe(pass.key, took);
    match ended {
        Ok(Ended::Done { run, health }) => conclude_success(pass, *run, health).await,
        Ok(Ended::Waiting) => Next::Done,
        // That is known now: what is left to do is to correct drift.
        Ok(Ended::Frozen) => match frozen::report(pass, plan.inputs).await {
            Next::After(_) => Next::After(Duration::ZERO),
            next => next,
        },
        Err(failed) => conclude_failure(pass, &plan, *failed, began).await,
    }
}
