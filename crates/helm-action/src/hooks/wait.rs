//! Until a hook has come to its end, and until one that was deleted is gone. No slot is held meanwhile.

use std::collections::HashSet;

use kube_health::{Outcome, Report, Target, WaitRequest};
use serde_json::Value;

use super::object::{Created, Placed};
use super::options::HookOptions;
use crate::{Context, Error, ErrorKind, WaitStrategy};

/// Waits for Jobs and Pods, and for what the user has a check for; everything else is done when it is there.
pub(super) async fn until_done(
    context: &Context<'_>,
    created: Vec<Created>,
    options: &HookOptions,
) -> Result<(), Error> {
    let is_waited_for = |created: &Created| {
        let gvk = created.placed.object.gvk();
        matches!(
            (gvk.group.as_str(), gvk.kind.as_str()),
            ("batch", "Job") | ("", "Pod")
        ) || options.checks.covers(&gvk.group, &gvk.kind)
    };
    let created: Vec<Created> = created.into_iter().filter(is_waited_for).collect();
    if created.is_empty() {
        return Ok(());
    }
    let has_ttl = |created: &&Created| {
        let ttl = created.answer.pointer("/spec/ttlSecondsAfterFinished");
        ttl.is_some_and(Value::is_number)
    };
    let with_ttl = created.iter().filter(has_ttl).map(|created| created.placed.id());
    let request = WaitRequest {
        jobs_with_ttl: with_ttl.collect::<HashSet<_>>(),
        timeout: options.timeout,
        // A hook may be a migration: it is given its time, whatever happens on the way.
        fail_fast: false,
        checks: options.checks.for_hooks(),
        objects: created.into_iter().map(target).collect(),
    };
    let tell = |report: Report| (context.tell)(report.brief());
    match without_slot(context, context.cluster.hub.wait_telling(request, tell)).await? {
        Outcome::Healthy => Ok(()),
        Outcome::Unhealthy(report) | Outcome::TimedOut(report) => {
            Err(Error::of_report(report).of_kind(ErrorKind::Hook))
        }
    }
}

fn target(created: Created) -> Target {
    Target {
        id: created.placed.id(),
        version: created.placed.version(),
        // What admission has made of the labels is in the answer, which the hub looks at.
        labelled: true,
        initial: Some(created.answer),
        ..Target::default()
    }
}

/// Waits until objects that are being deleted are gone, unless nothing but hooks is waited for.
pub(super) async fn until_gone(
    context: &Context<'_>,
    going: &[&Placed],
    options: &HookOptions,
) -> Result<(), Error> {
    if going.is_empty() || options.strategy == WaitStrategy::HookOnly {
        return Ok(());
    }
    let ids: Vec<_> = going
        .iter()
        .map(|placed| (placed.id(), placed.version()))
        .collect();
    let wait = context.cluster.engine.wait_terminated(&ids, options.timeout);
    let Err(left) = without_slot(context, wait).await? else {
        return Ok(());
    };
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    let text = format!("timeout waiting for termination of: [{}]", left.join(", "));
    Err(Error::new(ErrorKind::Hook, text))
}

async fn without_slot<T>(context: &Context<'_>, wait: impl Future<Output = T>) -> Result<T, Error> {
    context.pace.pause();
    let done = tokio::select! {
        done = wait => Ok(done),
        () = context.stopped.cancelled() => Err(Error::new(ErrorKind::Cancelled, "context canceled")),
    };
    context.pace.resume().await;
    done
}
