//! The status of a ResourceSet, from what came of a run. Pure.

use std::time::Duration;

use api::flux_operator::{ResourceSet, ResourceSetStatus};
use api::meta::{Snapshot, condition_types, reasons, upsert_snapshot};
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use resource_set::Objects;
use sha2::{Digest as _, Sha256};

use super::Error;
use super::run::Applied;

/// Bytes of a message.
const LONGEST: usize = 8192;

/// A run that failed.
pub(super) struct Failure<'a> {
    pub(super) reason: &'static str,
    pub(super) message: &'a str,
    /// Only another spec helps.
    pub(super) is_final: bool,
    /// What was rendered, if it came so far.
    pub(super) revision: Option<String>,
    pub(super) took: Duration,
}

/// Digest of what was rendered.
pub(super) fn revision(steps: &[Objects]) -> String {
    let mut hasher = Sha256::new();
    for step in steps {
        hasher.update(&step.step);
        for object in &step.objects {
            hasher.update(b"\n");
            hasher.update(serde_json::to_vec(object.value()).unwrap_or_default());
        }
    }
    format!("sha256:{}", hex::encode(hasher.finalize()))
}

/// Says that objects are being applied.
pub(super) fn progressing(next: &mut ResourceSetStatus, object: &ResourceSet, message: &str, now: Timestamp) {
    let generation = object.metadata.generation.unwrap_or_default();
    let reconciling = Fact::holds(condition_types::RECONCILING, reasons::PROGRESSING, message);
    conditions::set(&mut next.conditions, reconciling, generation, now);
    let ready = Fact::is_unknown(condition_types::READY, reasons::PROGRESSING, message);
    conditions::set(&mut next.conditions, ready, generation, now);
    conditions::remove(&mut next.conditions, condition_types::STALLED);
}

/// What is said of a success.
pub(super) fn applied_message(next: &ResourceSetStatus, applied: &Applied) -> String {
    let count = next
        .inventory
        .as_ref()
        .map_or(0, |inventory| inventory.entries.len());
    let short = applied.revision.get(..19).unwrap_or(&applied.revision);
    let objects = if count == 1 { "object" } else { "objects" };
    let healthy = if applied.waited { ", all healthy" } else { "" };
    format!("applied {count} {objects}{healthy}, revision {short}")
}

/// Records a success.
pub(super) fn succeeded(
    next: &mut ResourceSetStatus,
    object: &ResourceSet,
    applied: &Applied,
    message: &str,
    took: Duration,
    now: Timestamp,
) {
    let generation = object.metadata.generation.unwrap_or_default();
    let ready = Fact::holds(condition_types::READY, reasons::RECONCILIATION_SUCCEEDED, message);
    conditions::set(&mut next.conditions, ready, generation, now);
    for ended in [
        condition_types::RECONCILING,
        condition_types::STALLED,
        condition_types::FROZEN,
    ] {
        conditions::remove(&mut next.conditions, ended);
    }
    next.observed_generation = Some(generation);
    next.last_applied_revision = Some(applied.revision.clone());
    let known = next.history.first();
    let is_same = known.is_some_and(|known| {
        (known.digest.as_str(), known.last_reconciled_status.as_str())
            == (&applied.revision, reasons::RECONCILIATION_SUCCEEDED)
    });
    // A reconcile that changed nothing writes nothing.
    if applied.changed || !is_same {
        remember(
            next,
            applied.revision.clone(),
            reasons::RECONCILIATION_SUCCEEDED,
            took,
            now,
        );
    }
}

/// Records a failure.
pub(super) fn failed(
    next: &mut ResourceSetStatus,
    object: &ResourceSet,
    failure: Failure<'_>,
    now: Timestamp,
) {
    let generation = object.metadata.generation.unwrap_or_default();
    let Failure { reason, message, .. } = failure;
    conditions::set(
        &mut next.conditions,
        Fact::does_not_hold(condition_types::READY, reason, message),
        generation,
        now,
    );
    for ended in [
        condition_types::RECONCILING,
        condition_types::STALLED,
        condition_types::FROZEN,
    ] {
        conditions::remove(&mut next.conditions, ended);
    }
    if failure.is_final {
        let stalled = Fact::holds(condition_types::STALLED, reason, message);
        conditions::set(&mut next.conditions, stalled, generation, now);
    }
    next.observed_generation = Some(generation);
    if let Some(revision) = failure.revision {
        remember(next, revision, reason, failure.took, now);
    }
}

fn remember(next: &mut ResourceSetStatus, digest: String, status: &str, took: Duration, now: Timestamp) {
    let snapshot = Snapshot {
        digest,
        first_reconciled: Time(now),
        last_reconciled: Time(now),
        last_reconciled_duration: took.into(),
        last_reconciled_status: status.to_owned(),
        total_reconciliations: 1,
        metadata: Default::default(),
    };
    upsert_snapshot(&mut next.history, snapshot);
}

/// The words of an error, as a condition has them.
pub(super) fn message(error: &Error) -> String {
    let mut text = error_chain::chain(error);
    if text.len() > LONGEST {
        let end = text.floor_char_boundary(LONGEST);
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(revision: &str, changed: bool) -> Applied {
        Applied {
            revision: revision.to_owned(),
            changed,
            waited: false,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn succeed(next: &mut ResourceSetStatus, applied: &Applied, second: i64) {
        let object = ResourceSet::default();
        succeeded(
            next,
            &object,
            applied,
            "applied",
            Duration::from_secs(1),
            at(second),
        );
    }

    #[test]
    fn a_run_that_changes_nothing_leaves_the_status_as_it_is() {
        let mut next = ResourceSetStatus::default();
        succeed(&mut next, &applied("sha256:a", true), 1);
        let before = next.clone();
        succeed(&mut next, &applied("sha256:a", false), 2);
        assert_eq!(next, before);
        succeed(&mut next, &applied("sha256:a", true), 3);
        assert_eq!(next.history[0].total_reconciliations, 2);
    }

    #[test]
    fn a_failure_is_remembered_beside_the_last_success() {
        let mut next = ResourceSetStatus::default();
        succeed(&mut next, &applied("sha256:a", true), 1);
        let failure = Failure {
            reason: reasons::BUILD_FAILED,
            message: "no",
            is_final: true,
            revision: Some("sha256:b".to_owned()),
            took: Duration::ZERO,
        };
        failed(&mut next, &ResourceSet::default(), failure, at(2));
        assert!(conditions::is_stalled(&next.conditions));
        assert_eq!(next.last_applied_revision.as_deref(), Some("sha256:a"));
        let statuses: Vec<_> = next
            .history
            .iter()
            .map(|entry| entry.last_reconciled_status.as_str())
            .collect();
        assert_eq!(
            statuses,
            [reasons::BUILD_FAILED, reasons::RECONCILIATION_SUCCEEDED]
        );
        succeed(&mut next, &applied("sha256:a", false), 3);
        assert!(!conditions::is_stalled(&next.conditions));
    }
}
