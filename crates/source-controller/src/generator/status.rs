//! Status of a generator after an attempt, with the events that tell of it. Pure.
//!
//! Reasons and messages are those of source-watcher.

use std::collections::BTreeMap;

use api::meta::{HasConditions as _, reasons};
use api::source_extensions::{ArtifactGenerator, ArtifactGeneratorStatus, ExternalArtifactReference};
use controller_kit::conditions::{self, Fact, READY, RECONCILING, STALLED};
use controller_kit::events::Severity;
use controller_kit::runtime::requested_at;
use jiff::Timestamp;

use super::validate::Refusal;
use crate::reconcile::status::{Event, Next};

const IN_PROGRESS: &str = "Reconciliation in progress";
const INITIALLY_SUSPENDED: &str = "Initialized with reconciliation suspended";
const DISABLED: &str = "ReconciliationDisabled";
const SOURCE_FETCH_FAILED: &str = "SourceFetchFailed";

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// The spec asks for what is not allowed, or makes no sense.
    Refused(Refusal),
    /// A source is not there, or cannot be had.
    NoSource { message: String, again: bool },
    /// The owner of a source does not want it to be used here.
    Denied { message: String },
    /// Sources and spec do not go together.
    NotBuilt {
        message: String,
        stalled: bool,
        again: bool,
    },
    /// The API server did not take an ExternalArtifact, or it belongs to someone else.
    NotApplied { message: String },
    /// Nothing has changed.
    UpToDate,
    /// All artifacts are in the store and in the cluster.
    Done {
        inventory: Vec<ExternalArtifactReference>,
        sources_digest: String,
    },
}

/// Conclusion of an attempt.
#[derive(Debug)]
pub(super) struct Conclusion {
    pub(super) status: ArtifactGeneratorStatus,
    pub(super) events: Vec<Event>,
    pub(super) next: Next,
}

pub(super) fn conclude(object: &ArtifactGenerator, ending: Ending, now: Timestamp) -> Conclusion {
    let mut draft = Draft::begin(object, now);
    let (events, next) = match ending {
        Ending::Refused(Refusal { reason, message }) => {
            draft.stall(reason, &message);
            (vec![warning(reason, message)], Next::WhenChanged)
        }
        Ending::NoSource { message, again } => {
            draft.fail(SOURCE_FETCH_FAILED, &message);
            (vec![warning(SOURCE_FETCH_FAILED, message)], next(again))
        }
        // Not stalled: the owner may change their mind. No one tells, so it is tried again.
        Ending::Denied { message } => {
            draft.fail(reasons::ACCESS_DENIED, &message);
            (vec![warning(reasons::ACCESS_DENIED, message)], Next::AfterBackoff)
        }
        Ending::NotBuilt {
            message,
            stalled: true,
            ..
        } => {
            draft.stall(reasons::BUILD_FAILED, &message);
            (vec![warning(reasons::BUILD_FAILED, message)], Next::WhenChanged)
        }
        Ending::NotBuilt { message, again, .. } => {
            draft.fail(reasons::BUILD_FAILED, &message);
            (vec![warning(reasons::BUILD_FAILED, message)], next(again))
        }
        Ending::NotApplied { message } => {
            draft.fail(reasons::RECONCILIATION_FAILED, &message);
            let event = warning(reasons::RECONCILIATION_FAILED, message);
            (vec![event], Next::AfterBackoff)
        }
        Ending::UpToDate => (Vec::new(), Next::AtInterval),
        Ending::Done {
            inventory,
            sources_digest,
        } => {
            let event = news(object, &inventory);
            let message = format!(
                "reconciliation succeeded, generated {} artifact(s)",
                inventory.len()
            );
            draft.status.inventory = inventory;
            draft.status.observed_sources_digest = Some(sources_digest);
            draft.remove(&[RECONCILING, STALLED]);
            draft.set(Fact::holds(READY, reasons::SUCCEEDED, message));
            (event.into_iter().collect(), Next::AtInterval)
        }
    };
    Conclusion {
        status: draft.status,
        events,
        next,
    }
}

/// The status in the middle of an attempt that takes long.
pub(super) fn in_progress(object: &ArtifactGenerator, now: Timestamp) -> ArtifactGeneratorStatus {
    let mut draft = Draft::begin(object, now);
    let (generation, now) = (draft.generation, draft.now);
    let list = draft.status.conditions_mut();
    conditions::reconciling(list, reasons::PROGRESSING, IN_PROGRESS, generation, now);
    draft.set(Fact::is_unknown(READY, reasons::PROGRESSING, IN_PROGRESS));
    draft.status
}

/// The status of a generator that is left alone.
pub(super) fn suspended(object: &ArtifactGenerator, now: Timestamp) -> ArtifactGeneratorStatus {
    let mut draft = Draft::begin(object, now);
    if conditions::get(&draft.status.conditions, READY).is_none() {
        draft.set(Fact::holds(READY, DISABLED, INITIALLY_SUSPENDED));
    }
    draft.status
}

struct Draft {
    status: ArtifactGeneratorStatus,
    generation: i64,
    now: Timestamp,
}

impl Draft {
    fn begin(object: &ArtifactGenerator, now: Timestamp) -> Self {
        let mut status = object.status.clone().unwrap_or_default();
        if let Some(token) = requested_at(object) {
            status.set_last_handled_reconcile_at(token);
        }
        let generation = object.metadata.generation.unwrap_or_default();
        Self {
            status,
            generation,
            now,
        }
    }

    fn fail(&mut self, reason: &str, message: &str) {
        self.remove(&[STALLED]);
        self.set(Fact::does_not_hold(READY, reason, message));
        self.set(Fact::holds(
            RECONCILING,
            reasons::PROGRESSING_WITH_RETRY,
            IN_PROGRESS,
        ));
    }

    fn stall(&mut self, reason: &str, message: &str) {
        let (generation, now) = (self.generation, self.now);
        conditions::stalled(&mut self.status.conditions, reason, message, generation, now);
        self.set(Fact::does_not_hold(READY, reason, message));
    }

    fn set(&mut self, fact: Fact) {
        conditions::set(&mut self.status.conditions, fact, self.generation, self.now);
    }

    fn remove(&mut self, types: &[&str]) {
        let list = &mut self.status.conditions;
        list.retain(|condition| !types.contains(&condition.type_.as_str()));
    }
}

/// Next step after sources were wrong; they wake the generator when they change.
fn next(again: bool) -> Next {
    if again {
        Next::AfterBackoff
    } else {
        Next::AtInterval
    }
}

/// The artifacts that are not what they were.
fn news(object: &ArtifactGenerator, inventory: &[ExternalArtifactReference]) -> Option<Event> {
    let nothing = Vec::new();
    let known = object
        .status
        .as_ref()
        .map_or(&nothing, |status| &status.inventory);
    let is_known = |reference: &ExternalArtifactReference| {
        known.iter().any(|other| {
            (&other.name, &other.namespace, &other.digest)
                == (&reference.name, &reference.namespace, &reference.digest)
        })
    };
    let changed: Vec<String> = inventory
        .iter()
        .filter(|reference| !is_known(reference))
        .map(|reference| {
            format!(
                "{}/{} ({})",
                reference.namespace, reference.name, reference.digest
            )
        })
        .collect();
    (!changed.is_empty()).then(|| Event {
        severity: Severity::Info,
        reason: READY.to_owned(),
        message: format!("external artifacts reconciled: {}", changed.join("\n")),
        annotations: BTreeMap::new(),
    })
}

fn warning(reason: &str, message: String) -> Event {
    Event {
        severity: Severity::Error,
        reason: reason.to_owned(),
        message,
        annotations: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(status: serde_json::Value) -> ArtifactGenerator {
        serde_json::from_value(json!({
            "metadata": {"name": "g", "namespace": "team", "generation": 3,
                         "annotations": {"reconcile.fluxcd.io/requestedAt": "now"}},
            "spec": {"sources": [], "artifacts": []},
            "status": status,
        }))
        .unwrap()
    }

    fn conclude(status: serde_json::Value, ending: Ending) -> (Vec<String>, Vec<String>, Next) {
        let conclusion = super::conclude(&object(status), ending, Timestamp::UNIX_EPOCH);
        assert_eq!(
            conclusion.status.last_handled_reconcile_at.as_deref(),
            Some("now")
        );
        let conditions = conclusion.status.conditions.iter().map(|condition| {
            assert_eq!(condition.observed_generation, Some(3));
            format!(
                "{}={} {}: {}",
                condition.type_, condition.status, condition.reason, condition.message
            )
        });
        let events = conclusion.events.iter();
        let events = events.map(|event| format!("{} {}", event.reason, event.message));
        (conditions.collect(), events.collect(), conclusion.next)
    }

    fn reference(name: &str, digest: &str) -> ExternalArtifactReference {
        ExternalArtifactReference {
            name: name.to_owned(),
            namespace: "team".to_owned(),
            digest: digest.to_owned(),
            filename: "1.tar.gz".to_owned(),
        }
    }

    #[test]
    fn success_is_told_with_what_is_new() {
        let status = json!({"inventory": [reference("a", "sha256:1"), reference("b", "sha256:1")]});
        let inventory = vec![reference("a", "sha256:1"), reference("b", "sha256:2")];
        let ending = Ending::Done {
            inventory,
            sources_digest: "sha256:s".to_owned(),
        };
        let (conditions, events, next) = conclude(status, ending);
        assert_eq!(
            conditions,
            ["Ready=True Succeeded: reconciliation succeeded, generated 2 artifact(s)"]
        );
        assert_eq!(events, ["Ready external artifacts reconciled: team/b (sha256:2)"]);
        assert_eq!(next, Next::AtInterval);
    }

    #[test]
    fn failures_have_reasons_and_only_what_is_refused_stalls() {
        let refused = Ending::Refused(Refusal {
            reason: "AccessDenied",
            message: "no".to_owned(),
        });
        let (conditions, events, next) = conclude(json!({}), refused);
        assert_eq!(
            conditions,
            ["Stalled=True AccessDenied: no", "Ready=False AccessDenied: no"]
        );
        assert_eq!((events.len(), next), (1, Next::WhenChanged));

        let built = Ending::NotBuilt {
            message: "m".to_owned(),
            stalled: false,
            again: false,
        };
        let (conditions, _, next) = conclude(json!({}), built);
        assert_eq!(
            conditions,
            [
                "Reconciling=True ProgressingWithRetry: Reconciliation in progress",
                "Ready=False BuildFailed: m"
            ]
        );
        assert_eq!(next, Next::AtInterval);

        let source = Ending::NoSource {
            message: "m".to_owned(),
            again: true,
        };
        assert_eq!(conclude(json!({}), source).2, Next::AfterBackoff);

        let denied = Ending::Denied {
            message: "m".to_owned(),
        };
        let (conditions, _, next) = conclude(json!({}), denied);
        assert_eq!(conditions[1], "Ready=False AccessDenied: m");
        assert_eq!(next, Next::AfterBackoff);
    }

    #[test]
    fn a_generator_that_is_left_alone_says_so_once() {
        let status = suspended(&object(json!({})), Timestamp::UNIX_EPOCH);
        assert_eq!(status.conditions[0].reason, "ReconciliationDisabled");
        let again: ArtifactGenerator = ArtifactGenerator {
            status: Some(in_progress(&object(json!({})), Timestamp::UNIX_EPOCH)),
            ..object(json!({}))
        };
        let kept = suspended(&again, Timestamp::UNIX_EPOCH);
        assert_eq!(kept.conditions, again.status.unwrap().conditions);
    }
}
