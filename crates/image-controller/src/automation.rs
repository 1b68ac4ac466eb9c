//! One reconcile of an ImageUpdateAutomation: which policies, by which way, commit or pull request, status.

pub(crate) mod branch;
mod checkout;
pub(crate) mod chosen;
mod commit;
mod delivered;
mod direct;
mod error;
pub(crate) mod kept;
mod labels;
mod message;
pub(crate) mod proposal;
mod push_branch;
mod races;
mod run;
pub(crate) mod scope;
mod settled;
mod status;
pub(crate) mod target;
mod update;
mod way;
mod way_back;

use std::sync::Arc;

use api::delivery::CHANGE_POLICY;
use api::image::{ImagePolicy, ImageUpdateAutomation};
use controller_kit::ObjectKey;
use controller_kit::events::Severity;
use controller_kit::queue::Outcome;
use jiff::Timestamp;
use kube::ResourceExt as _;

use self::delivered::Reports;
use self::error::Error;
use self::run::Run;
use self::settled::SettledTags;
use self::way::Way;
use self::way_back::WayBack;
use crate::context::Context;
use controller_kit::pace;
use controller_kit::record::Unrecorded;

/// Annotations of an automation that say how it works.
pub(crate) const ANNOTATIONS: [&str; 7] = [
    CHANGE_POLICY,
    chosen::NAMESPACES,
    delivered::REPORT,
    scope::UNMARKED,
    scope::PATHS,
    way_back::HOLD_FAILED,
    way_back::HOLD_REVERTED,
];

/// Returns whether the automation looks at what became of a Kustomization of its namespace.
pub(crate) fn follows_delivery(object: &ImageUpdateAutomation, name: &str, has_failed: bool) -> bool {
    let names = |annotation: &str| {
        let names = object.annotations().get(annotation);
        names.is_some_and(|names| names.split(',').any(|one| one.trim() == name))
    };
    names(delivered::REPORT) || (has_failed && names(way_back::HOLD_FAILED))
}

/// Brings a repository up to date with the policies.
pub(crate) async fn reconcile(key: ObjectKey, context: Arc<Context>) -> Outcome {
    let forget = |object: Option<&ImageUpdateAutomation>| {
        let uid = object.and_then(|object| object.metadata.uid.as_deref());
        context.meters.forget(&key);
        context.kept.forget(uid.unwrap_or_default());
        context.heads.forget(uid.unwrap_or_default());
        context.scopes.forget(uid.unwrap_or_default());
    };
    let writer = &context.automations;
    writer
        .reconcile(&key, forget, |object| update(object, &context))
        .await
}

/// How a run ended without a failure.
enum Ended {
    Ran(Box<Run>, Vec<Arc<ImagePolicy>>),
    /// No window is open before then. With the choices that were held back.
    Waits(Timestamp, Vec<String>),
}

async fn update(object: Arc<ImageUpdateAutomation>, context: &Context) -> Result<Outcome, Unrecorded> {
    let writer = &context.automations;
    let now = Timestamp::now();
    let (status, events, again) = match carry_out(&object, context).await {
        Ok(Ended::Ran(run, policies)) => {
            let key = ObjectKey::from_object(&*object);
            context.meters.ran(&key, run.commits, run.open);
            let status = status::ran(&object, chosen::observed(&object, &policies), &run, now);
            let again = run.proposed.iter().filter_map(|proposed| proposed.again).min();
            (status, run.events(), again)
        }
        Ok(Ended::Waits(time, held)) => (status::waits(&object, time, now), held, Some(time)),
        Err(error) => {
            let failed = status::failed(&object, &error, now);
            return writer.fail(object, failed).await;
        }
    };
    let was_ready = object
        .status
        .as_ref()
        .is_some_and(|status| controller_kit::conditions::is_ready(&status.conditions));
    let object = writer.write(object, &status).await?;
    let succeeded = api::meta::reasons::SUCCEEDED;
    for event in &events {
        writer.publish(&object, Severity::Info, succeeded, event);
    }
    if events.is_empty() {
        let severity = if was_ready {
            Severity::Trace
        } else {
            Severity::Info
        };
        writer.publish(&object, severity, succeeded, status::message(&status));
    }
    let outcome = pace::after(object.spec.interval.to_std(), context.jitter_percentage);
    Ok(pace::by(outcome, again, now))
}

async fn carry_out(object: &ImageUpdateAutomation, context: &Context) -> Result<Ended, Error> {
    let mut chosen = chosen::policies(object, context)?;
    let settled = SettledTags::read(object);
    let way_back = WayBack::read(object, &settled)?;
    let reports = Reports::read(object)?;
    let is_followed = way_back.is_some() || reports.is_some();
    let mut held = Vec::new();
    if let Some(way_back) = &way_back {
        let failed = way_back.failed(&chosen.policies, &way_back.failures(context));
        held = way_back::hold(failed, context).await?;
        chosen = chosen::policies(object, context)?;
    }
    let mut run = match way::way(object, context).await? {
        Way::Commit => {
            let must_look = is_followed && settled.must_look();
            direct::run(object, &chosen.policies, way_back.as_ref(), must_look, context).await?
        }
        Way::PullRequest(spec) => proposal::run(object, &chosen, &spec, context).await?,
        Way::Wait(time) => return Ok(Ended::Waits(time, held)),
    };
    if is_followed {
        let mut now = settled.after(&chosen.policies, &run);
        if let Some(reports) = &reports {
            reports.tell(&chosen.policies, &mut now, &run, context).await;
        }
        if now != settled {
            now.record(object, &context.client).await?;
        }
    }
    run.held.splice(0..0, held);
    Ok(Ended::Ran(Box::new(run), chosen.policies))
}
