//! The first cause of an unhealthy workload, in one line: which Pod, which container, which reason.
//!
//! [`first_cause`] is pure: a workload and what belongs to it go in, a sentence comes out. [`gather`] reads just
//! enough from the API server for it, and is called for objects on which a wait has failed, never before.

mod event;
mod gather;
mod pod;

use serde_json::Value;

use crate::conditions;
use crate::fields;
use crate::text::one_line;

pub use gather::{gather, is_supported};

/// Characters of any one foreign message in a cause.
const DETAIL_LIMIT: usize = 300;

/// A workload and what belongs to it. All values are whole objects; what was not looked up is empty.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The object that is not healthy.
    pub workload: Value,
    /// The newest ReplicaSet, when the workload is a Deployment.
    pub replica_set: Option<Value>,
    /// Its Pods.
    pub pods: Vec<Value>,
    /// The PersistentVolumeClaims of the Pod that is worst off.
    pub claims: Vec<Value>,
    /// Events on any of these.
    pub events: Vec<Value>,
}

/// Names the first cause; None when nothing in the evidence is wrong.
///
/// What a Pod says comes first (an image, a crash, no node, a volume, a probe), then why Pods cannot be created
/// (quota, a missing ServiceAccount), then the last warning about the workload itself.
pub fn first_cause(evidence: &Evidence) -> Option<String> {
    of_pods(evidence)
        .or_else(|| of_creation(evidence))
        .or_else(|| of_workload(evidence))
}

/// The Pod whose trouble explains most, and what the trouble is.
pub(crate) fn worst_pod(pods: &[Value]) -> Option<(&Value, pod::Trouble)> {
    let troubled = pods.iter().filter_map(|pod| Some((pod, pod::trouble(pod)?)));
    troubled.min_by_key(|(pod, trouble)| (trouble.rank, fields::text_or(pod, "metadata.name", "")))
}

fn of_pods(evidence: &Evidence) -> Option<String> {
    let (pod, trouble) = worst_pod(&evidence.pods)?;
    let mut cause = format!(
        "pod {}{}",
        fields::text_or(pod, "metadata.name", ""),
        trouble.text
    );
    if let Some(reason) = trouble.explained_by
        && let Some(event) = event::last_warning(&evidence.events, pod, reason)
    {
        cause.push_str(&format!(": {}", event::told(event)));
    }
    if let Some(claim) = evidence
        .claims
        .iter()
        .find_map(|claim| of_claim(claim, &evidence.events))
    {
        cause.push_str(&format!(": {claim}"));
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
        text.push_str(&format!(": {}", event::told(event)));
    }
    Some(text)
}

/// ReplicaSets and Deployments say in a condition that Pods are refused; the other workloads only in events.
fn of_creation(evidence: &Evidence) -> Option<String> {
    let owners = evidence.replica_set.iter().chain([&evidence.workload]);
    let refused = owners.clone().find_map(|owner| {
        let failure = conditions::find(owner, "ReplicaFailure").filter(|failure| failure.status == "True")?;
        Some(one_line(failure.message, DETAIL_LIMIT))
    });
    let from_event = || {
        let event = owners
            .clone()
            .find_map(|owner| event::last_warning(&evidence.events, owner, &["FailedCreate"]));
        event.map(|event| one_line(fields::text_or(event, "message", ""), DETAIL_LIMIT))
    };
    refused
        .or_else(from_event)
        .map(|message| format!("pods cannot be created: {message}"))
}

fn of_workload(evidence: &Evidence) -> Option<String> {
    let workload = &evidence.workload;
    // Unbound claims tell their story in Normal events too (WaitForFirstConsumer, ExternalProvisioning).
    let event = if fields::text_or(workload, "kind", "") == "PersistentVolumeClaim" {
        event::last(&evidence.events, workload)
    } else {
        event::last_warning(&evidence.events, workload, &[])
    };
    event.map(event::told)
}
