//! Status: what an object's status says after an attempt, or in the middle of a long one. Pure, and the only place
//! in this controller where conditions are written.
//!
//! In: the object with its previous status, where it stood ([`Progress`]), how the attempt ended ([`Ending`]), the time.
//! Out: the new status, the events, and when to look again. Types, reasons, messages and their order are Flux's
//! (source-controller's reconcilers, `summarize` and `ComputeReconcileResult`), as they stand at the end of a
//! reconcile; what Flux writes in between is left out.

use std::collections::BTreeMap;
use std::time::Duration;

use api::meta::condition_types::{
    ARTIFACT_IN_STORAGE, ARTIFACT_OUTDATED, BUILD_FAILED, FETCH_FAILED, INCLUDE_UNAVAILABLE, POLICIES_MET,
    READY, RECONCILING, SOURCE_VERIFIED, STALLED, STORAGE_OPERATION_FAILED,
};
use api::meta::{Artifact, Condition, HasConditions, SOURCE_GROUP, reasons};
use artifact::store::Record;
use controller_kit::conditions::{self, Fact};
use controller_kit::events::Severity;
use controller_kit::runtime::requested_at;
use jiff::Timestamp;
use kube::core::object::HasStatus;
use verification_policy::sources::Met;

use super::decide::Progress;
use super::store::AdvertisedAddress;
use crate::error::Disposition;
use crate::kind::{Build, Failure, Kind, Verified};

/// Conditions that Ready sums up, the weightiest first.
const SUMMARIZED: [&str; 9] = [
    STORAGE_OPERATION_FAILED,
    FETCH_FAILED,
    BUILD_FAILED,
    INCLUDE_UNAVAILABLE,
    ARTIFACT_OUTDATED,
    ARTIFACT_IN_STORAGE,
    SOURCE_VERIFIED,
    STALLED,
    RECONCILING,
];
/// Those of them that are bad news when they hold.
const NEGATIVE: [&str; 7] = [
    STORAGE_OPERATION_FAILED,
    FETCH_FAILED,
    BUILD_FAILED,
    INCLUDE_UNAVAILABLE,
    ARTIFACT_OUTDATED,
    STALLED,
    RECONCILING,
];
/// Conditions whose recovery is worth an event.
const FAILURES: [&str; 4] = [
    FETCH_FAILED,
    BUILD_FAILED,
    INCLUDE_UNAVAILABLE,
    STORAGE_OPERATION_FAILED,
];
const NEW_ARTIFACT: &str = "NewArtifact";
/// Reason of an artifact that VerificationPolicies warn of.
const POLICY_WARNING: &str = "PolicyWarning";

/// How an attempt ended.
#[expect(clippy::large_enum_variant, reason = "there is one for each reconcile")]
#[derive(Debug)]
pub(crate) enum Ending {
    /// The remote has what is stored.
    UpToDate {
        /// Its revision.
        revision: String,
    },
    /// Something new is stored.
    Stored {
        /// As the store has it.
        record: Record,
        /// The artifacts of others that went into it.
        included: Vec<Record>,
        /// Headline of the revision at the remote.
        headline: Option<String>,
        /// The build, if any.
        build: Option<Build>,
        /// The verified signer, where the spec asks for one.
        verified: Option<Verified>,
        /// Result of the VerificationPolicies, where some apply.
        met: Option<Met>,
    },
    /// Something went wrong.
    Failed(Failure),
}

/// Conclusion of an attempt.
#[derive(Debug)]
pub(crate) struct Conclusion<S> {
    pub(crate) status: S,
    /// In the order in which it happened.
    pub(crate) events: Vec<Event>,
    pub(crate) next: Next,
}

/// When the object is looked at again, if nothing happens before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// At its interval.
    AtInterval,
    /// After a pause that grows with each failure.
    AfterBackoff,
    /// After the pause that the remote asked for.
    AfterPause(Duration),
    /// Not until it is changed.
    WhenChanged,
}

/// Something to tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) severity: Severity,
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) annotations: BTreeMap<String, String>,
}

/// The status after an attempt.
pub(crate) fn conclude<K: Kind>(
    object: &K,
    progress: &Progress,
    ending: Ending,
    address: &AdvertisedAddress,
    now: Timestamp,
) -> Conclusion<<K as HasStatus>::Status> {
    let mut draft = Draft::begin(object, progress, address, now);
    let (events, next) = match ending {
        Ending::UpToDate { revision } => {
            let (reason, message) = object.in_storage(&revision, None);
            if !progress.has_policies {
                draft.remove(&[POLICIES_MET]);
            }
            draft.succeed(&reason, &message);
            let artifact = object.artifact().filter(|_| has_failure(object.conditions()));
            let recovery = artifact.map(|artifact| success(object, artifact, &reason, None));
            (recovery.into_iter().collect(), Next::AtInterval)
        }
        Ending::Stored {
            record,
            included,
            headline,
            build,
            verified,
            met,
        } => {
            let artifact = address.artifact(&record);
            let is_new = !object
                .artifact()
                .is_some_and(|old| old.has_digest(&artifact.digest));
            let (in_storage, message) = object.in_storage(&record.revision, build.as_ref());
            let reason = match &build {
                None if is_new => NEW_ARTIFACT,
                _ => in_storage.as_str(),
            };
            let reason = (is_new || has_failure(object.conditions())).then_some(reason);
            let news = reason.map(|reason| success(object, &artifact, reason, headline.as_deref()));
            let events = build.as_ref().and_then(dependencies).into_iter().chain(news);
            draft.set_artifact(Some(artifact));
            object.note_settings(&mut draft.status);
            if let Some(build) = &build {
                object.note_build(build, &mut draft.status);
            }
            let included = included.iter().map(|record| address.artifact(record)).collect();
            K::note_included(included, &mut draft.status);
            match verified.map(|verified| verified.message) {
                // Let pass without being verified: nothing is said of it, and what was said before is over.
                Some(message) if message.is_empty() => draft.remove(&[SOURCE_VERIFIED]),
                Some(message) => draft.set(Fact::holds(SOURCE_VERIFIED, reasons::SUCCEEDED, message)),
                None => {}
            }
            if met.is_none() {
                draft.remove(&[POLICIES_MET]);
            }
            let warning = met.and_then(|met| draft.note_policies(&record.revision, met));
            let events = warning.into_iter().chain(events).collect();
            draft.succeed(&in_storage, &message);
            (events, Next::AtInterval)
        }
        Ending::Failed(failure) => {
            let (event, next) = draft.fail(&failure);
            (vec![event], next)
        }
    };
    draft.summarize();
    Conclusion {
        status: draft.status,
        events,
        next,
    }
}

/// The status in the middle of an attempt that takes long.
pub(crate) fn in_progress<K: Kind>(
    object: &K,
    progress: &Progress,
    address: &AdvertisedAddress,
    now: Timestamp,
) -> <K as HasStatus>::Status {
    let mut draft = Draft::begin(object, progress, address, now);
    let ready_is_unknown = conditions::is_unknown(draft.conditions(), READY);
    if ready_is_unknown || !progress.has_artifact {
        draft.set(Fact::is_unknown(READY, reasons::PROGRESSING, &progress.message));
    }
    draft.status
}

/// The status of an object that has this artifact again, before its remote is asked.
pub(crate) fn restored<K: Kind>(
    object: &K,
    record: &Record,
    address: &AdvertisedAddress,
    now: Timestamp,
) -> <K as HasStatus>::Status {
    let progress = Progress {
        message: "restored the artifact from the backup".to_owned(),
        artifact_disappeared: false,
        has_artifact: true,
        inputs: Vec::new(),
        has_policies: true,
    };
    let mut draft = Draft::begin(object, &progress, address, now);
    draft.set_artifact(Some(address.artifact(record)));
    object.note_settings(&mut draft.status);
    draft.set(Fact::is_unknown(READY, reasons::PROGRESSING, &progress.message));
    draft.status
}

/// The status of an object that is left alone: that this was seen, and nothing else.
pub(crate) fn suspended<K: Kind>(object: &K) -> <K as HasStatus>::Status {
    let mut status = object.status().cloned().unwrap_or_default();
    conditions::remove(status.conditions_mut(), STALLED);
    note_request(object, &mut status);
    if !status.conditions().is_empty() {
        status.set_observed_generation(object.meta().generation.unwrap_or_default());
    }
    status
}

/// A status being written.
struct Draft<'a, K: Kind> {
    object: &'a K,
    status: <K as HasStatus>::Status,
    generation: i64,
    has_artifact: bool,
    address: &'a AdvertisedAddress,
    now: Timestamp,
}

impl<'a, K: Kind> Draft<'a, K> {
    /// Status before the remote is asked.
    fn begin(object: &'a K, progress: &Progress, address: &'a AdvertisedAddress, now: Timestamp) -> Self {
        let status = object.status().cloned().unwrap_or_default();
        let generation = object.meta().generation.unwrap_or_default();
        let has_artifact = progress.has_artifact;
        let mut draft = Self {
            object,
            status,
            generation,
            has_artifact,
            address,
            now,
        };
        note_request(object, &mut draft.status);
        K::note_inputs(&progress.inputs, &mut draft.status);
        if progress.has_artifact {
            // The address of this process may be another than that of the one before.
            let artifact = object.artifact().cloned();
            draft.set_artifact(artifact.map(|known| Artifact {
                url: address.url(&known.path),
                ..known
            }));
        } else {
            draft.set_artifact(None);
            draft.remove(&[ARTIFACT_IN_STORAGE]);
        }
        draft.remove(&[STORAGE_OPERATION_FAILED]);
        // A failed verification is done again; a good one says something about the artifact that is there.
        if !object.wants_verification() || conditions::is_false(draft.conditions(), SOURCE_VERIFIED) {
            draft.remove(&[SOURCE_VERIFIED]);
        }
        if conditions::get(draft.conditions(), POLICIES_MET).is_some_and(is_refused) {
            draft.remove(&[POLICIES_MET]);
        }
        let (generation, now) = (draft.generation, draft.now);
        let list = draft.status.conditions_mut();
        conditions::reconciling(list, reasons::PROGRESSING, &progress.message, generation, now);
        draft
    }

    /// Sets the condition PoliciesMet of a new artifact. Returns the event if a policy warns.
    fn note_policies(&mut self, revision: &str, met: Met) -> Option<Event> {
        let Met { warnings, by } = met;
        if warnings.is_empty() {
            let message = format!("revision '{revision}' meets all that is demanded of it {by}");
            self.set(Fact::holds(POLICIES_MET, reasons::SUCCEEDED, message));
            return None;
        }
        let message = format!("revision '{revision}' {}", warnings.join("; "));
        self.set(Fact::does_not_hold(
            POLICIES_MET,
            POLICY_WARNING,
            format!("{message} {by}"),
        ));
        Some(Event {
            severity: Severity::Error,
            reason: POLICY_WARNING.to_owned(),
            message,
            annotations: BTreeMap::new(),
        })
    }

    fn succeed(&mut self, reason: &str, message: &str) {
        self.remove(&[
            RECONCILING,
            STALLED,
            FETCH_FAILED,
            BUILD_FAILED,
            INCLUDE_UNAVAILABLE,
            ARTIFACT_OUTDATED,
        ]);
        self.set(Fact::holds(ARTIFACT_IN_STORAGE, reason, message));
        self.status.set_observed_generation(self.generation);
    }

    fn fail(&mut self, failure: &Failure) -> (Event, Next) {
        let Failure { error, seen } = failure;
        let message = error.message();
        let (type_, reason) = error.condition();
        self.remove(&[FETCH_FAILED, BUILD_FAILED, INCLUDE_UNAVAILABLE]);
        if let Some(seen) = seen {
            self.note_new_revision(&seen.revision, &seen.message);
        }
        match type_ {
            Some(type_ @ (SOURCE_VERIFIED | POLICIES_MET)) => {
                self.set(Fact::does_not_hold(type_, reason, &message));
            }
            Some(type_) => self.set(Fact::holds(type_, reason, &message)),
            None => {}
        }
        if error.is_unverified_chart() {
            self.set(Fact::does_not_hold(
                SOURCE_VERIFIED,
                reasons::VERIFICATION_ERROR,
                &message,
            ));
        }
        let next = match error.disposition() {
            Disposition::Stalled => {
                let (generation, now) = (self.generation, self.now);
                conditions::stalled(self.status.conditions_mut(), reason, &message, generation, now);
                self.status.set_observed_generation(generation);
                Next::WhenChanged
            }
            Disposition::Retry => {
                self.retry_later();
                Next::AfterBackoff
            }
            Disposition::RetryAfter(pause) => {
                self.retry_later();
                Next::AfterPause(pause)
            }
            Disposition::Wait => {
                self.retry_later();
                Next::AtInterval
            }
        };
        let severity = match error.disposition() {
            Disposition::Wait => Severity::Trace,
            Disposition::Retry | Disposition::RetryAfter(_) | Disposition::Stalled => Severity::Error,
        };
        let event = Event {
            severity,
            reason: reason.to_owned(),
            message,
            annotations: BTreeMap::new(),
        };
        (event, next)
    }

    /// The remote has a revision that is not stored.
    fn note_new_revision(&mut self, revision: &str, message: &str) {
        let current = self.current_revision();
        if current.as_deref() == Some(revision) {
            return;
        }
        if current.is_some() {
            self.set(Fact::holds(ARTIFACT_OUTDATED, K::OUTDATED_REASON, message));
        }
        self.set(Fact::holds(
            RECONCILING,
            reasons::PROGRESSING,
            format!("building artifact: {message}"),
        ));
    }

    fn current_revision(&self) -> Option<String> {
        self.object
            .artifact()
            .filter(|_| self.has_artifact)
            .map(|artifact| artifact.revision.clone())
    }

    fn retry_later(&mut self) {
        let message =
            conditions::get(self.conditions(), RECONCILING).map(|condition| condition.message.clone());
        if let Some(message) = message {
            self.set(Fact::holds(RECONCILING, reasons::PROGRESSING_WITH_RETRY, message));
        }
    }

    /// Ready says what the weightiest of the other conditions says.
    fn summarize(&mut self) {
        if let Some(ready) = summary(self.conditions()) {
            self.set(ready);
        }
    }

    fn set_artifact(&mut self, artifact: Option<Artifact>) {
        let latest = artifact.as_ref().filter(|_| K::HAS_LATEST_URL);
        let latest = latest.map(|artifact| self.address.latest_url(&artifact.path, K::LATEST_NAME));
        K::set_artifact(&mut self.status, artifact, latest);
    }

    fn set(&mut self, fact: Fact) {
        conditions::set(self.status.conditions_mut(), fact, self.generation, self.now);
    }

    fn remove(&mut self, types: &[&str]) {
        self.status
            .conditions_mut()
            .retain(|condition| !types.contains(&condition.type_.as_str()));
    }

    fn conditions(&self) -> &[Condition] {
        self.status.conditions()
    }
}

/// Ready as the sum of the other conditions: bad news first, then what is not as it should be, then good news.
fn summary(list: &[Condition]) -> Option<Fact> {
    let weight = |condition: &Condition| match (condition.status.as_str(), is_negative(&condition.type_)) {
        (conditions::TRUE, true) => 0,
        (conditions::FALSE, false) => 1,
        (conditions::TRUE, false) => 2,
        (conditions::FALSE, true) => 3,
        _ => 4,
    };
    // What was refused says more than that something is still to be done (Flux's "bipolar" condition).
    let mut verdicts = [SOURCE_VERIFIED, POLICIES_MET]
        .iter()
        .filter_map(|type_| conditions::get(list, type_));
    if let Some(refused) = verdicts.find(|verdict| is_refused(verdict)) {
        return Some(Fact::does_not_hold(
            READY,
            &refused.reason,
            refused.message.clone(),
        ));
    }
    let in_order = SUMMARIZED.iter().filter_map(|type_| conditions::get(list, type_));
    let top = in_order.min_by_key(|condition| weight(condition))?;
    let fact = match weight(top) {
        0 | 1 => Fact::does_not_hold,
        2 | 3 => Fact::holds,
        _ => Fact::is_unknown,
    };
    Some(fact(READY, &top.reason, top.message.clone()))
}

/// Returns whether the revision was refused. A warning is no refusal.
fn is_refused(verdict: &Condition) -> bool {
    verdict.status == conditions::FALSE && verdict.reason != POLICY_WARNING
}

fn is_negative(type_: &str) -> bool {
    NEGATIVE.contains(&type_)
}

fn has_failure(list: &[Condition]) -> bool {
    FAILURES
        .iter()
        .any(|type_| conditions::get(list, type_).is_some())
}

fn note_request<K: Kind>(object: &K, status: &mut <K as HasStatus>::Status) {
    if let Some(token) = requested_at(object) {
        status.set_last_handled_reconcile_at(token);
    }
}

fn success<K: Kind>(object: &K, artifact: &Artifact, reason: &str, headline: Option<&str>) -> Event {
    let annotation = |name: &str, value: &str| (format!("{SOURCE_GROUP}/{name}"), value.to_owned());
    Event {
        severity: Severity::Info,
        reason: reason.to_owned(),
        message: object.announcement(artifact, headline),
        annotations: BTreeMap::from([
            annotation("revision", &artifact.revision),
            annotation("digest", &artifact.digest),
        ]),
    }
}

/// As in Flux, what a chart was completed with is told besides.
fn dependencies(build: &Build) -> Option<Event> {
    let number = build.resolved_dependencies;
    (number > 0).then(|| Event {
        severity: Severity::Trace,
        reason: "ResolvedDependencies".to_owned(),
        message: format!("resolved {number} chart dependencies"),
        annotations: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests;
