//! The rules of the kinds that Kubernetes itself has, one file per kind.
//!
//! Called for objects about which the common rules of [`crate::verdict`] had nothing to say.

pub(crate) mod custom_resource_definition;
pub(crate) mod daemon_set;
pub(crate) mod deployment;
pub(crate) mod job;
pub(crate) mod persistent_volume_claim;
pub(crate) mod pod;
pub(crate) mod replica_set;
pub(crate) mod service;
pub(crate) mod stateful_set;

use jiff::Timestamp;
use serde_json::Value;

use crate::fields::FieldError;
use crate::verdict::Verdict;

/// Judges an object by its kind; None for kinds without a rule.
///
/// Versions do not matter, and `extensions` is what `apps` was before Kubernetes 1.16.
pub(crate) fn verdict(
    group: &str,
    kind: &str,
    object: &Value,
    now: Timestamp,
) -> Result<Option<Verdict>, FieldError> {
    let verdict = match (group, kind) {
        ("apps" | "extensions", "Deployment") => deployment::verdict(object)?,
        ("apps" | "extensions", "ReplicaSet") => replica_set::verdict(object)?,
        ("apps" | "extensions", "DaemonSet") => daemon_set::verdict(object)?,
        ("apps", "StatefulSet") => stateful_set::verdict(object),
        ("", "Pod") => pod::verdict(object, now)?,
        ("", "PersistentVolumeClaim") => persistent_volume_claim::verdict(object),
        ("", "Service") => service::verdict(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => custom_resource_definition::verdict(object)?,
        // Nothing more happens to these once they are stored; a CronJob's Jobs are not its health, and the common
        // rules have seen that a PodDisruptionBudget's controller has computed it.
        ("", "ConfigMap" | "Secret") | ("batch", "CronJob") => Verdict::current("is stored"),
        ("policy", "PodDisruptionBudget") => Verdict::current("allowed disruptions are computed"),
        _ => return Ok(None),
    };
    Ok(Some(verdict))
}
