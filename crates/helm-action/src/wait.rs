//! Waits until the objects of a release are as they should be, without a worker.
//!
//! By the rules of kstatus, as Flux has Helm do it; or Helm 3's (`legacy`). The wait ends with the first object that has
//! failed, with all causes that can be found.

mod legacy;

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use kube_apply::Address;
use kube_health::{Check, Checks, Outcome, Report, Target, WaitRequest};
use manifest::ObjectId;
use serde_json::Value;

use crate::apply::join_failures;
use crate::resources::Resource;
use crate::{Context, Error, ErrorKind, WaitStrategy, Waiting};

/// Waits for objects; `answers` are what the server made of those that were written.
pub(crate) async fn until_ready(
    context: &Context<'_>,
    resources: &[Resource],
    answers: HashMap<ObjectId, Value>,
    waiting: &Waiting,
) -> Result<(), Error> {
    if resources.is_empty() || waiting.strategy == WaitStrategy::HookOnly {
        return context.go_on();
    }
    let (count, timeout) = (resources.len(), waiting.timeout);
    context.log.line(format!(
        "beginning wait for {count} resources with timeout of {timeout:?}"
    ));
    if waiting.strategy == WaitStrategy::Legacy {
        return legacy::until_ready(context, resources, waiting).await;
    }
    let checks = checks(waiting)?;
    let request = request(context, resources, answers, checks, waiting.timeout);
    let tell = |report: Report| (context.tell)(report.brief());
    let waited = context.cluster.hub.wait_telling(request, tell);
    reported(context.wait_for(waited).await?)
}

/// Waits until definitions are established.
pub(crate) async fn until_established(
    context: &Context<'_>,
    definitions: &[Resource],
    answers: HashMap<ObjectId, Value>,
    timeout: Duration,
) -> Result<(), Error> {
    let request = request(context, definitions, answers, Checks::default(), timeout);
    let ended = context.wait_for(context.cluster.hub.wait(request)).await?;
    reported(ended)
}

/// Waits until objects that were deleted are gone.
pub(crate) async fn until_gone(
    context: &Context<'_>,
    terminating: &[Address],
    timeout: Duration,
) -> Result<(), Error> {
    if terminating.is_empty() {
        return Ok(());
    }
    let engine = &context.cluster.engine;
    let waits = terminating.iter().map(|at| async move {
        let gone = engine.wait_gone(at, timeout).await;
        gone.err()
            .map(|failure| format!("{} termination timeout error: {failure}", at.id()))
    });
    let left = context.wait_for(futures::future::join_all(waits)).await?;
    let left: Vec<String> = left.into_iter().flatten().collect();
    if left.is_empty() {
        Ok(())
    } else {
        Err(Error::new(ErrorKind::Delete, join_failures(&left, "; ")))
    }
}

fn reported(ended: Outcome) -> Result<(), Error> {
    match ended {
        Outcome::Healthy => Ok(()),
        Outcome::Unhealthy(report) | Outcome::TimedOut(report) => Err(Error::of_report(report)),
    }
}

fn request(
    context: &Context<'_>,
    resources: &[Resource],
    mut answers: HashMap<ObjectId, Value>,
    checks: Checks,
    timeout: Duration,
) -> WaitRequest {
    let label = context.cluster.engine.settings().name_label();
    let waited = resources
        .iter()
        .filter(|resource| !resource.at.name.is_empty() && !is_paused(resource));
    let objects = waited.map(|resource| {
        let id = resource.id();
        Target {
            version: resource.at.resource.api.version.clone(),
            labelled: resource.object.label(&label).is_some(),
            initial: answers.remove(&id),
            id,
            ..Target::default()
        }
    });
    WaitRequest {
        objects: objects.collect(),
        timeout,
        fail_fast: true,
        jobs_with_ttl: jobs_with_ttl(resources),
        checks,
    }
}

/// A Deployment that is paused never gets anywhere.
fn is_paused(resource: &Resource) -> bool {
    let api = &resource.at.resource.api;
    let spec = resource.object.value().get("spec");
    api.group == "apps"
        && api.kind == "Deployment"
        && spec.and_then(|spec| spec.get("paused")?.as_bool()) == Some(true)
}

fn jobs_with_ttl(resources: &[Resource]) -> HashSet<ObjectId> {
    let is_one = |resource: &&Resource| {
        let api = &resource.at.resource.api;
        let spec = resource.object.value().get("spec");
        api.group == "batch"
            && api.kind == "Job"
            && spec.is_some_and(|spec| spec.get("ttlSecondsAfterFinished").is_some_and(Value::is_number))
    };
    resources.iter().filter(is_one).map(Resource::id).collect()
}

/// Jobs that are not waited for are ready as soon as they run, by the rule of kstatus.
const STARTED: Check<'static> = Check {
    api_version: "batch/v1",
    kind: Some("Job"),
    in_progress: None,
    failed: Some(
        "has(status.conditions) && status.conditions.exists(c, c.type == 'Failed' && c.status == 'True')",
    ),
    current: "has(status.startTime) || (has(spec.suspend) && spec.suspend)",
};

fn checks(waiting: &Waiting) -> Result<Checks, Error> {
    let checks = (*waiting.checks).clone();
    if waiting.for_jobs {
        return Ok(checks);
    }
    checks
        .or(STARTED)
        .map_err(|error| Error::new(ErrorKind::Wait, error.to_string()))
}
