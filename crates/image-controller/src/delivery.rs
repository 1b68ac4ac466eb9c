//! Kustomizations as far as images care: which revision was tried, and whether it is healthy or failed its health checks.
//!
//! They are watched without their specs and inventories, which would be most of the memory.

use std::borrow::Cow;

use api::kustomize::Kustomization;
use api::meta::{Condition, condition_types, reasons};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt as _};
use manifest::is_object_name;
use serde::Deserialize;

/// Characters of a commit that are shown.
const SHOWN: usize = 7;
/// Kustomizations that one annotation may name.
pub(crate) const MAX_NAMES: usize = 20;

/// An annotation of an automation that is wrong.
#[derive(Debug, thiserror::Error)]
#[error("the annotation {annotation} {problem}")]
pub(crate) struct Invalid {
    annotation: &'static str,
    problem: String,
}

impl Invalid {
    pub(crate) fn new(annotation: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self { annotation, problem }
    }
}

/// Reads an annotation that names Kustomizations in the object's namespace, separated by commas.
pub(crate) fn names(object: &impl Resource, annotation: &'static str) -> Result<Vec<String>, Invalid> {
    let text = object.annotations().get(annotation).map(String::as_str);
    let names = text.unwrap_or_default().split(',').map(str::trim);
    let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
    if names.len() > MAX_NAMES {
        let problem = format!("names more than {MAX_NAMES} Kustomizations");
        return Err(Invalid::new(annotation, problem));
    }
    if !names.iter().all(|name| is_object_name(name)) {
        let problem = "must name Kustomizations of the automation's namespace, separated by commas";
        return Err(Invalid::new(annotation, problem));
    }
    Ok(names.into_iter().map(str::to_owned).collect())
}

/// A Kustomization.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Delivery {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    last_attempted_revision: String,
    #[serde(default)]
    last_applied_revision: String,
}

/// A revision that did not become healthy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failed {
    /// Hash of the commit.
    pub(crate) commit: String,
    /// Message of the Ready condition.
    pub(crate) message: String,
}

impl Delivery {
    /// The commit that is applied and healthy.
    pub(crate) fn healthy(&self) -> Option<&str> {
        let mut conditions = self.status.conditions.iter();
        let ready = conditions.find(|condition| condition.type_ == condition_types::READY)?;
        let applied = &self.status.last_applied_revision;
        let is_healthy = ready.status == "True" && *applied == self.status.last_attempted_revision;
        commit(applied).filter(|_| is_healthy)
    }

    /// The commit that was tried last, if it failed its health checks and was never healthy before.
    pub(crate) fn failed(&self) -> Option<Failed> {
        let Status {
            conditions,
            last_attempted_revision: tried,
            last_applied_revision: applied,
        } = &self.status;
        let mut conditions = conditions.iter();
        let ready = conditions.find(|condition| condition.type_ == condition_types::READY)?;
        let is_failed = ready.status == "False" && ready.reason == reasons::HEALTH_CHECK_FAILED;
        let commit = commit(tried)?;
        (is_failed && self::commit(applied) != Some(commit)).then(|| Failed {
            commit: commit.to_owned(),
            message: ready.message.clone(),
        })
    }
}

/// The hash in `branch@sha1:hash`.
pub(crate) fn commit(revision: &str) -> Option<&str> {
    let (_, digest) = revision.rsplit_once('@').unwrap_or(("", revision));
    let (_, hash) = digest.split_once(':')?;
    (!hash.is_empty()).then_some(hash)
}

/// A hash as people write it.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..SHOWN).unwrap_or(commit)
}

impl Resource for Delivery {
    type DynamicType = ();
    type Scope = <Kustomization as Resource>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        Kustomization::kind(&())
    }

    fn group((): &()) -> Cow<'_, str> {
        Kustomization::group(&())
    }

    fn version((): &()) -> Cow<'_, str> {
        Kustomization::version(&())
    }

    fn plural((): &()) -> Cow<'_, str> {
        Kustomization::plural(&())
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn delivery(reason: &str, tried: &str, applied: &str) -> Delivery {
        serde_json::from_value(json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "apps", "namespace": "shop"},
            "spec": {"anything": 1},
            "status": {
                "lastAttemptedRevision": tried, "lastAppliedRevision": applied,
                "conditions": [{"type": "Ready", "status": "False", "reason": reason, "message": "bad",
                    "lastTransitionTime": "2026-11-25T00:00:00Z"}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn only_a_new_revision_that_fails_its_health_checks_counts() {
        let (new, old) = ("main@sha1:bbb", "main@sha1:aaa");
        let failed = delivery("HealthCheckFailed", new, old).failed().unwrap();
        assert_eq!((&*failed.commit, &*failed.message), ("bbb", "bad"));
        assert_eq!(delivery("ReconciliationFailed", new, old).failed(), None);
        assert_eq!(
            delivery("HealthCheckFailed", new, new).failed(),
            None,
            "it was healthy once"
        );
        assert_eq!(delivery("HealthCheckFailed", "latest", old).failed(), None);
        let fresh = json!({"metadata": {"name": "apps"}});
        let fresh: Delivery = serde_json::from_value(fresh).unwrap();
        assert_eq!((fresh.failed(), fresh.healthy()), (None, None));
    }

    #[test]
    fn a_revision_is_healthy_when_nothing_newer_was_tried() {
        let ready = |tried, applied| {
            let mut delivery = delivery("ReconciliationSucceeded", tried, applied);
            delivery.status.conditions[0].status = "True".to_owned();
            delivery.healthy().map(str::to_owned)
        };
        let (new, old) = ("main@sha1:bbb", "main@sha1:aaa");
        assert_eq!(ready(new, new).as_deref(), Some("bbb"));
        assert_eq!(ready(new, old), None);
        assert_eq!(ready("latest", "latest"), None);
        assert_eq!(delivery("HealthCheckFailed", new, new).healthy(), None);
    }
}
