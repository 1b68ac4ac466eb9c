//! The first cause of an unhealthy workload, in one line: which Pod, which container, which reason.
//!
//! [`first_cause`] is pure: a workload and what belongs to it go in, a sentence comes out. [`gather`] reads just
//! enough from the API server for it, and is called for objects on which a wait has failed, never before.

mod cause;
mod detail;
mod event;
mod evidence;
mod gather;
mod pod;

use serde_json::Value;

use crate::text::one_line;
use crate::{conditions, fields};
use detail::DETAIL_LIMIT;
use event::Filter;

pub use cause::{Cause, Kind};
pub use gather::gather;

pub use evidence::Evidence;

/// Events of workload controllers when the API server refuses a Pod.
const FAILED_CREATE: Filter = Filter {
    reasons: &["FailedCreate"],
    containing: "",
};

/// Names the first cause; None when nothing in the evidence is wrong.
///
/// What a Pod says comes first (an image, a crash, no node, a volume, a probe), then why Pods cannot be created
/// (quota, a missing ServiceAccount), then the last warning about the workload itself; last, that none of this could be
/// read.
pub fn first_cause(evidence: &Evidence) -> Option<Cause> {
    of_pods(evidence)
        .or_else(|| of_creation(evidence))
        .or_else(|| of_workload(evidence))
        .or_else(|| evidence.denied.as_deref().map(unreadable))
}

/// Reports that causes could not be read, since there may be more.
fn unreadable(denied: &str) -> Cause {
    let text = format!(
        "the cause cannot be looked up: {}",
        one_line(denied, DETAIL_LIMIT)
    );
    Cause::of_object(Kind::Unreadable, text)
}

/// The Pod whose trouble explains most, and what the trouble is.
pub(crate) fn worst_pod(pods: &[Value]) -> Option<(&Value, pod::Trouble)> {
    let troubled = pods.iter().filter_map(|pod| Some((pod, pod::trouble(pod)?)));
    troubled.min_by_key(|(pod, trouble)| (trouble.rank, fields::text_or(pod, "metadata.name", "")))
}

fn of_pods(evidence: &Evidence) -> Option<Cause> {
    let (pod, trouble) = worst_pod(&evidence.pods)?;
    let name = fields::text_or(pod, "metadata.name", "");
    let mut cause = Cause {
        kind: trouble.kind,
        pod: Some(name.to_owned()),
        container: trouble.container,
        text: format!("pod {name}{}", trouble.text),
    };
    if let Some(filter) = &trouble.explained_by
        && let Some(event) = event::last_warning(&evidence.events, pod, filter)
    {
        cause.kind = pod::kind_of_event(cause.kind, event);
        cause
            .text
            .push_str(&format!(": {}", event::reason_and_message(event)));
    }
    let mut claims = evidence.claims.iter();
    if let Some(claim) = claims.find_map(|claim| of_claim(claim, &evidence.events)) {
        cause.kind = Kind::Volume;
        cause.text.push_str(&format!(": {claim}"));
    }
    Some(cause)
}

/// A claim that is not bound holds its Pod; its own events say why.
fn of_claim(claim: &Value, events: &[Value]) -> Option<String> {
    let phase = fields::text_or(claim, "status.phase", "Pending");
    if phase == "Bound" {
        return None;
    }
    let mut text = format!("claim {} is {phase}", fields::text_or(claim, "metadata.name", ""));
    if let Some(event) = event::last(events, claim) {
        text.push_str(&format!(": {}", event::reason_and_message(event)));
    }
    Some(text)
}

/// ReplicaSets and Deployments say in a condition that Pods are refused; the other workloads only in events.
fn of_creation(evidence: &Evidence) -> Option<Cause> {
    let owners = evidence.child.iter().chain([&evidence.workload]);
    let refused = owners.clone().find_map(|owner| {
        let failure = conditions::find(owner, "ReplicaFailure").filter(|failure| failure.status == "True")?;
        Some(failure.message)
    });
    let from_event = || {
        let event = owners
            .clone()
            .find_map(|owner| event::last_warning(&evidence.events, owner, &FAILED_CREATE));
        event.map(|event| fields::text_or(event, "message", ""))
    };
    let message = refused.or_else(from_event)?;
    let kind = Kind::of_refusal(message).unwrap_or(Kind::PodsRefused);
    let message = one_line(message, DETAIL_LIMIT);
    Some(Cause::of_object(
        kind,
        format!("pods cannot be created: {message}"),
    ))
}

fn of_workload(evidence: &Evidence) -> Option<Cause> {
    let workload = &evidence.workload;
    // Unbound claims tell their story in Normal events too (WaitForFirstConsumer, ExternalProvisioning).
    if fields::text_or(workload, "kind", "") == "PersistentVolumeClaim" {
        let event = event::last(&evidence.events, workload)?;
        return Some(Cause::of_object(Kind::Volume, event::reason_and_message(event)));
    }
    let mut owners = evidence.child.iter().chain([workload]);
    let event = owners.find_map(|owner| event::last_warning(&evidence.events, owner, &Filter::ANY))?;
    Some(Cause::of_object(Kind::Event, event::reason_and_message(event)))
}
