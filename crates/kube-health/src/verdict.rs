//! The verdict on one object: a pure function of the object and the time.
//!
//! Follows kstatus (github.com/fluxcd/cli-utils) as Flux's kustomize-controller runs it: what every object may say
//! about itself first (deletion, observed generation, `Reconciling`, `Stalled`), then the rule of its kind, then its
//! `Ready` condition, and Current when it says nothing. Jobs go by Flux's own rule instead. The statuses are
//! kstatus's, proved by recorded cases; the messages are ours. Looks at nothing but the object: what Pods and Events
//! tell is [`crate::why`].

use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

pub use crate::compute::{BuiltIn, compute, compute_at};

/// How an object is, in kstatus's words, which Flux's messages carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Status {
    /// The object has the requested state.
    Current,
    /// A controller is at work, or has not started yet.
    InProgress,
    /// It will not get there without a change.
    Failed,
    /// It is being deleted.
    Terminating,
    /// The API server does not have it.
    NotFound,
    /// It cannot be read, or says something that makes no sense.
    Unknown,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::NotFound => "NotFound",
            Self::Unknown => "Unknown",
        })
    }
}

/// A status and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How the object is.
    pub status: Status,
    /// One line for a person, with the numbers that matter.
    pub message: String,
    /// When time alone turns this verdict into Failed; None for all verdicts that only the object can change.
    pub fails_at: Option<Timestamp>,
}

impl Verdict {
    /// Makes a verdict that only the object can change.
    pub fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            fails_at: None,
        }
    }

    pub(crate) fn current(message: impl Into<String>) -> Self {
        Self::new(Status::Current, message)
    }

    pub(crate) fn in_progress(message: impl Into<String>) -> Self {
        Self::new(Status::InProgress, message)
    }

    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Status::Failed, message)
    }

    /// Returns the verdict as it stands at `now`, once time has had its say.
    pub fn at(&self, now: Timestamp) -> Self {
        match self.fails_at {
            Some(at) if at <= now => Self::failed(self.message.clone()),
            _ => self.clone(),
        }
    }
}

/// How objects are judged. [`BuiltIn`] is kstatus; expressions that a user gives per kind are another.
pub trait Rule: Send + Sync {
    /// Judges one whole object as the API server returned it.
    fn verdict(&self, object: &Value, now: Timestamp) -> Verdict;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: Value, status: Status, message: &str) {
        let verdict = compute_at(&object, Timestamp::UNIX_EPOCH);
        assert_eq!(
            (verdict.status, verdict.message.as_str()),
            (status, message),
            "{object}"
        );
    }

    #[test]
    fn custom_resources_are_judged_by_their_conditions() {
        let with = |kind: &str, status: &str| {
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "status": {"conditions": [
                {"type": kind, "status": status, "reason": "Because", "message": "it says so"}]}})
        };
        check(with("Ready", "True"), Status::Current, "Because: it says so");
        check(with("Ready", "False"), Status::InProgress, "Because: it says so");
        check(with("Stalled", "True"), Status::Failed, "Because: it says so");
        check(
            with("Reconciling", "True"),
            Status::InProgress,
            "Because: it says so",
        );
        check(
            with("Stalled", "False"),
            Status::Current,
            "exists and reports no condition",
        );
    }

    #[test]
    fn an_object_that_is_tried_again_tells_why_it_is_not_ready() {
        let nested = |reconciling: &str, status: &str| {
            json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization", "status": {"conditions": [
                {"type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry", "message": reconciling},
                {"type": "Ready", "status": status, "reason": "BuildFailed", "message": "no such file"}]}})
        };
        let retried = "ProgressingWithRetry: retrying: no such file";
        check(
            nested("retrying: no such file", "False"),
            Status::InProgress,
            retried,
        );
        let told = "ProgressingWithRetry: building; not ready: BuildFailed: no such file";
        check(nested("building", "False"), Status::InProgress, told);
        check(
            nested("building", "Unknown"),
            Status::InProgress,
            "ProgressingWithRetry: building",
        );
    }

    #[test]
    fn a_generation_that_no_controller_has_seen_is_in_progress() {
        check(
            json!({"apiVersion": "example.com/v1", "kind": "Thing",
                "metadata": {"generation": 3}, "status": {"observedGeneration": 2}}),
            Status::InProgress,
            "generation 3 is not yet observed, the last observed is 2",
        );
    }

    #[test]
    fn an_object_that_fails_at_a_generation_tells_why() {
        let failing = |of: i64| {
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generation": 3},
                "status": {"observedGeneration": -1, "conditions": [
                    {"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no such file",
                     "observedGeneration": of}]}})
        };
        let told = "generation 3 is not yet observed, the last observed is -1";
        check(
            failing(3),
            Status::InProgress,
            &format!("{told}; not ready: BuildFailed: no such file"),
        );
        check(failing(2), Status::InProgress, told);
    }

    #[test]
    fn what_holds_a_deletion_is_named() {
        check(
            json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b", "c/d"]}}),
            Status::Terminating,
            "is being deleted, held by finalizers a/b, c/d",
        );
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named() {
        check(
            json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"generation": "3"}}),
            Status::Unknown,
            "metadata.generation is not an integer",
        );
    }
}
