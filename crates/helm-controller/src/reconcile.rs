//! One reconcile of one HelmRelease: observe, decide, then fetch the chart, compose the values, drive the release, and record.
//!
//! `decide` says whether there is something to do, `release` what. A crash between any two steps loses only time: what an
//! action does is in Helm's storage before it is done.

mod access;
pub mod decide;
mod drift;
mod finalize;
mod inventory;
pub mod observe;
mod progress;
mod record;
mod run;
mod status;
mod template;
mod waiting;
mod world;

use std::sync::Arc;
use std::time::Duration;

use controller_kit::ObjectKey;
use controller_kit::queue::{Outcome as Next, Slot};
use jiff::Timestamp;
use reconcile_kit::patience;

use crate::context::Context;
use decide::Decision;
use record::Recorder;
use status::Report;

/// Reconciles the object that `key` names.
pub async fn reconcile(context: Arc<Context>, key: ObjectKey, slot: Slot) -> Next {
    let Some(observed) = observe::observe(&context, &key) else {
        // It is gone, or in another shard, whose controller continues.
        context.forget(&key);
        return Next::Done;
    };
    context.base.metrics.expect_deliveries("HelmRelease", &key);
    let mut recorder = Recorder::new(&context, Arc::clone(&observed.object));
    let decision = decide::decide(&observed, &context.policy, Timestamp::now());
    tracing::debug!(?decision, "decided");
    if !matches!(decision, Decision::Blocked { .. }) {
        context.memory.with(&key, |entry| entry.blocked_since = None);
    }
    match decision {
        Decision::Finalize => finalize::finalize(&context, &key, &observed, recorder, slot).await,
        Decision::Suspended => {
            context.memory.with(&key, |entry| entry.attempt = None);
            let reported = recorder.report(Report::Suspended).await;
            reported.map_or_else(|error| recorder.unwritten(&error), |_| Next::Done)
        }
        Decision::Stalled { reason, message } => {
            // An annotation may be what is wrong: without it all is as it was, and the status must say so again.
            context.memory.with(&key, |entry| entry.attempt = None);
            recorder.stalled(reason, message).await
        }
        Decision::Blocked { reason, message } => match context.patience(&key) {
            Some(rest) => Next::After(rest),
            None => recorder.blocked(reason, message).await,
        },
        Decision::ApplyChart(chart) => {
            if let Err(denied) =
                access::check(&context.base.client, &context.sources.charts, &observed.object).await
            {
                return recorder.failed(denied.reason, denied.message).await;
            }
            let applied = async {
                // Whoever deletes the object now finds us there to delete the HelmChart.
                recorder.ensure_finalizer().await?;
                template::apply(&context, &recorder, &chart).await
            };
            match applied.await {
                // The watch on it goes on.
                Ok(()) => Next::Done,
                Err(error) => recorder.failed(decide::ARTIFACT_FAILED, error.message()).await,
            }
        }
        Decision::RemoveChart(chart) => remove_chart(&context, recorder, chart).await,
        Decision::Run(plan) => run::run(&context, &key, &observed, recorder, *plan, slot).await,
        Decision::Rest { until } => Next::After(patience::until(until)),
    }
}

/// Deletes the HelmChart of an earlier spec, and forgets it.
async fn remove_chart(context: &Context, mut recorder: Recorder<'_>, chart: Option<ObjectKey>) -> Next {
    let mut status = recorder.status();
    status.helm_chart = None;
    let removed = async {
        if let Some(chart) = &chart {
            template::remove(context, &recorder, chart).await?;
        }
        recorder.write(&status).await
    };
    match removed.await {
        Ok(_) => Next::After(Duration::ZERO),
        Err(error) => recorder.failed(decide::ARTIFACT_FAILED, error.message()).await,
    }
}
