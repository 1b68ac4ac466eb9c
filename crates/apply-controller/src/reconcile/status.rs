//! The status of a Kustomization: a pure function of the previous one and of what happened.
//!
//! Every condition of this controller is written here, also those that report progress before a long step.

mod held;

use std::time::Duration;

use api::kustomize::{KustomizationStatus, ResourceInventory};
use api::meta::{Snapshot, TRUE, condition_types, reasons, upsert_snapshot};
use controller_kit::conditions::{self, Fact};
use delivery_statement::METADATA;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use reconcile_kit::freezes;
use reconcile_kit::writer::Frame;

use super::report::{self, Reports};
pub use held::{RolledBack, named};

/// Entries of the history that keep their statements.
const WITH_STATEMENT: usize = 2;

/// Outcome of a reconcile, as far as the status shows it.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// The object was suspended.
    Suspended,
    /// Cannot work until the spec changes.
    Stalled {
        /// Reason of Ready and Stalled.
        reason: &'static str,
        /// Message of both.
        message: String,
    },
    /// Waits for another object.
    Blocked {
        /// Reason of Ready.
        reason: &'static str,
        /// Message of Ready.
        message: String,
    },
    /// About to change the cluster: the inventory names all that may exist from now on.
    Applying {
        /// Revision that is applied.
        revision: String,
        /// Newest revision of the source.
        attempted: String,
        /// All that was managed before, and all that will be.
        inventory: ResourceInventory,
        /// How long this may take.
        timeout: Duration,
        /// Something newer waits for the end of a Freeze.
        is_frozen: bool,
    },
    /// All is applied and pruned; health is being waited for.
    Waiting {
        /// Revision that was applied.
        revision: String,
        /// Newest revision of the source.
        attempted: String,
        /// Objects that are managed now.
        inventory: ResourceInventory,
        /// How long this may take.
        timeout: Duration,
        /// Object that is waited for, and why it takes so long, once that was looked up.
        present: Option<String>,
        /// Something newer waits for the end of a Freeze.
        is_frozen: bool,
    },
    /// Something new waits for the end of a Freeze.
    Frozen {
        /// What, until when and why.
        message: String,
    },
    /// Others apply objects of ours, too.
    Rivals(Option<String>),
    /// A step failed.
    Failed(Failure),
    /// All is as the source says.
    Succeeded(Success),
    /// All is as the last revision that was healthy says; that of the source is held.
    RolledBack(Box<RolledBack>),
}

/// How a run failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// Reason of Ready.
    pub reason: &'static str,
    /// Message of Ready.
    pub message: String,
    /// Revision that was attempted; None if not even the artifact could be read.
    pub revision: Option<String>,
    /// Objects that are managed now; None if the run ended before it changed them.
    pub inventory: Option<ResourceInventory>,
    /// A revision is held, and stays so.
    pub is_held: bool,
    /// Something newer waits for the end of a Freeze.
    pub is_frozen: bool,
    /// Entry for the history; None if nothing was built.
    pub history: Option<Entry>,
}

/// How a run succeeded.
#[derive(Debug, Clone, PartialEq)]
pub struct Success {
    /// Revision that was applied.
    pub revision: String,
    /// Revision at the origin of the artifact.
    pub origin_revision: Option<String>,
    /// Objects that are managed now; None if they did not change.
    pub inventory: Option<ResourceInventory>,
    /// Whether health was asked for, and how long it took.
    pub health: Health,
    /// Entry for the history.
    pub history: Entry,
    /// That others apply objects of ours, too.
    pub rivals: Option<String>,
    /// Nothing was changed, found or asked for: a status that says all this already stays as it is.
    pub quiet: bool,
}

/// Health checks of a successful run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The spec does not ask for it.
    NotAsked,
    /// All was found healthy after this time.
    Passed(Duration),
    /// As it was: nothing was applied, nothing was asked.
    Unchanged,
}

/// One line of `status.history`.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Digest of the built objects.
    pub checksum: String,
    /// How long the run took.
    pub duration: Duration,
    /// Revision that was built.
    pub revision: String,
    /// Revision at the origin of the artifact.
    pub origin_revision: Option<String>,
    /// Further reports of the run.
    pub reports: Reports,
}

impl Entry {
    /// Tells more of the run.
    pub fn with(self, reports: Reports) -> Self {
        Self { reports, ..self }
    }
}

/// Returns the status after a report.
pub fn next(previous: &KustomizationStatus, frame: Frame<'_>, report: Report) -> KustomizationStatus {
    let mut status = previous.clone();
    if let Some(requested_at) = frame.requested_at {
        status.last_handled_reconcile_at = Some(requested_at.to_owned());
    }
    match report {
        Report::Suspended => suspended(&mut status, frame),
        Report::Stalled { reason, message } => {
            freezes::thawed(&mut status.conditions, frame.now);
            conditions::remove(&mut status.conditions, condition_types::RECONCILING);
            set(
                &mut status,
                frame,
                Fact::does_not_hold(condition_types::READY, reason, message.clone()),
            );
            set(
                &mut status,
                frame,
                Fact::holds(condition_types::STALLED, reason, message),
            );
            status.observed_generation = Some(frame.generation);
        }
        Report::Blocked { reason, message } => {
            // Something else is in the way now.
            freezes::thawed(&mut status.conditions, frame.now);
            conditions::remove(&mut status.conditions, condition_types::STALLED);
            set(
                &mut status,
                frame,
                Fact::does_not_hold(condition_types::READY, reason, message),
            );
            retried(&mut status, frame);
        }
        Report::Applying {
            revision,
            attempted,
            inventory,
            timeout,
            is_frozen,
        } => {
            tried(&mut status, frame, (&revision, &attempted), is_frozen);
            status.inventory = Some(inventory);
            progressing(
                &mut status,
                frame,
                &format!("Applying revision {revision} with a timeout of {}", go(timeout)),
                None,
            );
            status.last_attempted_revision = Some(attempted);
        }
        Report::Waiting {
            revision,
            attempted,
            inventory,
            timeout,
            present,
            is_frozen,
        } => {
            tried(&mut status, frame, (&revision, &attempted), is_frozen);
            status.inventory = Some(inventory);
            let mut message = format!(
                "Running health checks for revision {revision} with a timeout of {}",
                go(timeout)
            );
            progressing(&mut status, frame, &message, present.as_deref());
            if let Some(present) = present {
                message = format!("{message}, {present}");
            }
            set(
                &mut status,
                frame,
                Fact::is_unknown(condition_types::HEALTHY, reasons::PROGRESSING, message),
            );
            status.last_attempted_revision = Some(attempted);
        }
        Report::Frozen { message } => {
            let is_delivered = status.last_applied_revision.is_some();
            freezes::report(&mut status.conditions, frame, &message, is_delivered);
        }
        Report::Rivals(told) => rivals(&mut status, frame, told.as_deref()),
        Report::Failed(failure) => failed(&mut status, frame, failure),
        Report::Succeeded(success) => succeeded(&mut status, frame, success),
        Report::RolledBack(rolled_back) => held::rolled_back(&mut status, frame, *rolled_back),
    }
    status
}

/// What the source has is tried: nothing is held any more, and nothing waits.
fn tried(
    status: &mut KustomizationStatus,
    frame: Frame<'_>,
    (revision, attempted): (&str, &str),
    is_frozen: bool,
) {
    if is_frozen {
        return;
    }
    freezes::thawed(&mut status.conditions, frame.now);
    if revision == attempted {
        conditions::remove(&mut status.conditions, condition_types::HELD);
    }
}

/// Says what is under way, in words of Flux; after them, what it waits for at present.
fn progressing(status: &mut KustomizationStatus, frame: Frame<'_>, message: &str, present: Option<&str>) {
    conditions::remove(&mut status.conditions, condition_types::STALLED);
    let with_present = |message: &str| match present {
        Some(present) => format!("{message}, {present}"),
        None => message.to_owned(),
    };
    let ready = Fact::is_unknown(
        condition_types::READY,
        reasons::PROGRESSING,
        with_present("Reconciliation in progress"),
    );
    set(status, frame, ready);
    set(
        status,
        frame,
        Fact::holds(
            condition_types::RECONCILING,
            reasons::PROGRESSING,
            with_present(message),
        ),
    );
}

/// Says of a Ready that holds which objects others apply, too.
fn rivals(status: &mut KustomizationStatus, frame: Frame<'_>, told: Option<&str>) {
    let ready = conditions::get(&status.conditions, condition_types::READY);
    let Some(ready) = ready.filter(|ready| ready.status == TRUE) else {
        return;
    };
    let message = format!(
        "{}{}",
        crate::memory::rivals::without_rivals(&ready.message),
        told.unwrap_or_default()
    );
    let fact = Fact::holds(condition_types::READY, &ready.reason.clone(), message);
    set(status, frame, fact);
}

/// Message of Ready for a success.
fn applied(success: &Success) -> String {
    let rivals = success.rivals.as_deref().unwrap_or_default();
    format!("Applied revision: {}{rivals}", success.revision)
}

/// Notes that the newest generation was observed: dependants ask for that, and suspending makes a new one.
fn suspended(status: &mut KustomizationStatus, frame: Frame<'_>) {
    if conditions::is_ready(&status.conditions) {
        status.observed_generation = Some(frame.generation);
    }
}

fn failed(status: &mut KustomizationStatus, frame: Frame<'_>, failure: Failure) {
    conditions::remove(&mut status.conditions, condition_types::STALLED);
    if !failure.is_held {
        conditions::remove(&mut status.conditions, condition_types::HELD);
    }
    if !failure.is_frozen {
        conditions::remove(&mut status.conditions, condition_types::FROZEN);
    }
    if let Some(revision) = failure.revision {
        status.last_attempted_revision = Some(revision);
    }
    if let Some(inventory) = failure.inventory {
        // Nothing was applied yet: there is no inventory.
        status.inventory = Some(inventory).filter(|inventory| !inventory.entries.is_empty());
    }
    if let Some(entry) = failure.history {
        remember(status, frame, entry, failure.reason);
    }
    if failure.reason == reasons::HEALTH_CHECK_FAILED {
        set(
            status,
            frame,
            Fact::does_not_hold(condition_types::HEALTHY, failure.reason, failure.message.clone()),
        );
    }
    let message = format!("retrying: {}", failure.message);
    set(
        status,
        frame,
        Fact::does_not_hold(condition_types::READY, failure.reason, failure.message),
    );
    set(
        status,
        frame,
        Fact::holds(
            condition_types::RECONCILING,
            reasons::PROGRESSING_WITH_RETRY,
            message,
        ),
    );
}

fn succeeded(status: &mut KustomizationStatus, frame: Frame<'_>, success: Success) {
    if success.quiet && says_already(status, frame, &success) {
        return;
    }
    for gone in [
        condition_types::STALLED,
        condition_types::RECONCILING,
        condition_types::HELD,
        condition_types::FROZEN,
    ] {
        conditions::remove(&mut status.conditions, gone);
    }
    match success.health {
        Health::NotAsked => conditions::remove(&mut status.conditions, condition_types::HEALTHY),
        Health::Passed(after) => {
            let message = format!("Health check passed in {}", go(after));
            set(
                status,
                frame,
                Fact::holds(condition_types::HEALTHY, reasons::SUCCEEDED, message),
            );
        }
        Health::Unchanged => {}
    }
    let message = applied(&success);
    set(
        status,
        frame,
        Fact::holds(condition_types::READY, reasons::RECONCILIATION_SUCCEEDED, message),
    );
    remember(status, frame, success.history, reasons::RECONCILIATION_SUCCEEDED);
    if let Some(inventory) = success.inventory {
        status.inventory = Some(inventory);
    }
    status.last_attempted_revision = Some(success.revision.clone());
    status.last_applied_revision = Some(success.revision);
    status.last_applied_origin_revision = success.origin_revision;
    status.observed_generation = Some(frame.generation);
}

/// At the interval of an object that is as it should be there is nothing new to say; Flux would count it in the history.
fn says_already(status: &KustomizationStatus, frame: Frame<'_>, success: &Success) -> bool {
    status.observed_generation == Some(frame.generation)
        && conditions::is_ready(&status.conditions)
        && conditions::get(&status.conditions, condition_types::READY)
            .is_some_and(|ready| ready.message == applied(success))
        && status.last_applied_revision.as_ref() == Some(&success.revision)
        && status.last_applied_origin_revision == success.origin_revision
        && (success.inventory.is_none() || status.inventory == success.inventory)
        && match success.health {
            Health::NotAsked => conditions::get(&status.conditions, condition_types::HEALTHY).is_none(),
            Health::Passed(_) => conditions::is_true(&status.conditions, condition_types::HEALTHY),
            Health::Unchanged => true,
        }
}

/// A status that said "in progress" says "to be retried" once something is in the way (Flux's `finalizeStatus`).
fn retried(status: &mut KustomizationStatus, frame: Frame<'_>) {
    let reconciling = status
        .conditions
        .iter()
        .find(|c| c.type_ == condition_types::RECONCILING);
    if let Some(message) = reconciling.map(|c| c.message.clone()) {
        set(
            status,
            frame,
            Fact::holds(
                condition_types::RECONCILING,
                reasons::PROGRESSING_WITH_RETRY,
                message,
            ),
        );
    }
}

fn set(status: &mut KustomizationStatus, frame: Frame<'_>, fact: Fact) {
    conditions::set(&mut status.conditions, fact, frame.generation, frame.now);
}

fn remember(status: &mut KustomizationStatus, frame: Frame<'_>, entry: Entry, outcome: &str) {
    let mut metadata = entry.reports;
    metadata.insert("revision".to_owned(), entry.revision);
    if let Some(origin) = entry.origin_revision {
        metadata.insert("originRevision".to_owned(), origin);
    }
    let same = |s: &&Snapshot| s.digest == entry.checksum && s.last_reconciled_status == outcome;
    if let Some(earlier) = status.history.iter().find(same) {
        report::carry_over(&earlier.metadata, &mut metadata);
    }
    let now = Time(whole_seconds(frame.now));
    let snapshot = Snapshot {
        digest: entry.checksum,
        first_reconciled: now.clone(),
        last_reconciled: now,
        last_reconciled_duration: entry.duration.into(),
        last_reconciled_status: outcome.to_owned(),
        total_reconciliations: 1,
        metadata,
    };
    upsert_snapshot(&mut status.history, snapshot);
    // They are long, and the ledger has them all.
    for old in status.history.iter_mut().skip(WITH_STATEMENT) {
        old.metadata.remove(METADATA);
    }
}

fn go(duration: Duration) -> String {
    api::meta::Duration::from(duration).to_string()
}

/// Kubernetes writes times to the second.
fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: Timestamp = Timestamp::UNIX_EPOCH;

    fn frame() -> Frame<'static> {
        Frame {
            generation: 2,
            requested_at: Some("asked"),
            now: BEFORE + jiff::SignedDuration::from_secs(90),
        }
    }

    fn inventory(ids: &[&str]) -> ResourceInventory {
        let entry = |id: &&str| api::kustomize::ResourceRef {
            id: (*id).to_owned(),
            version: "v1".to_owned(),
        };
        ResourceInventory {
            entries: ids.iter().map(entry).collect(),
        }
    }

    fn entry(revision: &str) -> Entry {
        Entry {
            checksum: "sha256:1".to_owned(),
            duration: Duration::from_millis(1500),
            revision: revision.to_owned(),
            origin_revision: None,
            reports: Reports::from([("more".to_owned(), "told".to_owned())]),
        }
    }

    fn success(revision: &str, health: Health, quiet: bool) -> Report {
        Report::Succeeded(Success {
            revision: revision.to_owned(),
            origin_revision: None,
            inventory: Some(inventory(&["a"])),
            health,
            history: entry(revision),
            rivals: None,
            quiet,
        })
    }

    fn failure(reason: &'static str) -> Report {
        Report::Failed(Failure {
            reason,
            message: "it broke".to_owned(),
            revision: Some("r2".to_owned()),
            inventory: None,
            is_held: false,
            is_frozen: false,
            history: Some(entry("r2")),
        })
    }

    fn rolled_back(history: Option<Entry>) -> Report {
        Report::RolledBack(Box::new(RolledBack {
            revision: "r1".to_owned(),
            origin_revision: None,
            held: "r2".to_owned(),
            why: "web is not there".to_owned(),
            by_hand: false,
            since: Some(BEFORE),
            release: "windlass release kustomization/app -n ns".to_owned(),
            stays: vec!["Job/ns/once".to_owned()],
            inventory: inventory(&["a"]),
            health: Health::Passed(Duration::from_secs(1)),
            history,
        }))
    }

    #[test]
    fn of_many_objects_the_first_are_named() {
        let objects: Vec<_> = (0..23).map(|n| format!("Job/ns/{n}")).collect();
        assert!(named(&objects).ends_with("Job/ns/18, Job/ns/19 and 3 more"));
        assert_eq!(named(&objects[..2]), "Job/ns/0, Job/ns/1");
    }

    #[test]
    fn a_revision_that_is_held_is_told_until_another_is_tried() {
        let failed = next(
            &KustomizationStatus::default(),
            frame(),
            failure(reasons::HEALTH_CHECK_FAILED),
        );
        let status = next(&failed, frame(), rolled_back(Some(entry("r1"))));
        assert_eq!(
            shown(&status),
            [
                "Ready=False HealthCheckFailed",
                "Healthy=True Succeeded",
                "Held=True RolledBack"
            ]
        );
        assert_eq!(
            status.conditions[0].message,
            "revision r2 has been held since 1970-01-01T00:00:00Z: web is not there. Revision r1, the last that was healthy, is applied \
             instead, until there is a newer one or this one is released (windlass release kustomization/app -n ns). These objects \
             stayed as they were: Job/ns/once."
        );
        assert_eq!(status.last_applied_revision.as_deref(), Some("r1"));
        assert_eq!(status.last_attempted_revision.as_deref(), Some("r2"));
        assert_eq!(status.history[0].last_reconciled_status, reasons::ROLLED_BACK);
        // At the interval there is nothing new to say.
        assert_eq!(next(&status, frame(), rolled_back(None)), status);
        let trying = |revision: &str, attempted: &str| Report::Applying {
            revision: revision.into(),
            attempted: attempted.into(),
            inventory: inventory(&["a"]),
            timeout: Duration::from_secs(1),
            is_frozen: false,
        };
        let is_held =
            |status: &KustomizationStatus| conditions::is_true(&status.conditions, condition_types::HELD);
        assert!(is_held(&next(&status, frame(), trying("r1", "r2"))));
        assert!(!is_held(&next(&status, frame(), trying("r3", "r3"))));
        assert!(!is_held(&next(
            &status,
            frame(),
            success("r2", Health::NotAsked, false)
        )));
        assert!(!is_held(&next(&status, frame(), failure(reasons::BUILD_FAILED))));
    }

    #[test]
    fn a_rollback_by_hand_says_what_the_source_has_and_how_it_ends() {
        let Report::RolledBack(by_health) = rolled_back(Some(entry("r1"))) else {
            unreachable!()
        };
        let by_hand = RolledBack {
            by_hand: true,
            why: "carts are empty".to_owned(),
            stays: Vec::new(),
            ..*by_health
        };
        let report = Report::RolledBack(Box::new(by_hand));
        let status = next(&KustomizationStatus::default(), frame(), report);
        assert_eq!(
            shown(&status),
            [
                "Ready=False RolledBack",
                "Healthy=True Succeeded",
                "Held=True RolledBack"
            ]
        );
        assert_eq!(
            status.conditions[0].message,
            "rolled back by hand to revision r1 since 1970-01-01T00:00:00Z: carts are empty. The source has revision r2, which is \
             not applied until it is released (windlass release kustomization/app -n ns)."
        );
    }

    /// The conditions as `Type=Status Reason`, in their order.
    fn shown(status: &KustomizationStatus) -> Vec<String> {
        status
            .conditions
            .iter()
            .map(|c| format!("{}={} {}", c.type_, c.status, c.reason))
            .collect()
    }

    #[test]
    fn a_run_goes_through_its_conditions() {
        let status = KustomizationStatus::default();
        let timeout = Duration::from_secs(60);
        let applying = Report::Applying {
            revision: "r1".into(),
            attempted: "r1".into(),
            inventory: inventory(&["a"]),
            timeout,
            is_frozen: false,
        };
        let status = next(&status, frame(), applying);
        assert_eq!(
            shown(&status),
            ["Reconciling=True Progressing", "Ready=Unknown Progressing"]
        );
        assert_eq!(status.inventory, Some(inventory(&["a"])));
        assert_eq!(status.observed_generation, None);

        let waiting = Report::Waiting {
            revision: "r1".into(),
            attempted: "r1".into(),
            inventory: inventory(&["a"]),
            timeout,
            present: Some("waiting for: [x]".into()),
            is_frozen: false,
        };
        let status = next(&status, frame(), waiting);
        let messages: Vec<_> = status.conditions.iter().map(|c| c.message.as_str()).collect();
        let checks = "Running health checks for revision r1 with a timeout of 1m0s, waiting for: [x]";
        assert_eq!(
            messages,
            [checks, "Reconciliation in progress, waiting for: [x]", checks]
        );
        assert_eq!(
            shown(&status),
            [
                "Reconciling=True Progressing",
                "Ready=Unknown Progressing",
                "Healthy=Unknown Progressing"
            ]
        );

        let status = next(&status, frame(), success("r1", Health::Passed(timeout), false));
        assert_eq!(
            shown(&status),
            ["Ready=True ReconciliationSucceeded", "Healthy=True Succeeded"]
        );
        assert_eq!(status.conditions[0].message, "Applied revision: r1");
        assert_eq!(status.conditions[1].message, "Health check passed in 1m0s");
        assert_eq!(status.last_applied_revision.as_deref(), Some("r1"));
        assert_eq!(status.last_handled_reconcile_at.as_deref(), Some("asked"));
        assert_eq!((status.observed_generation, status.history.len()), (Some(2), 1));
        let told: Vec<_> = status.history[0].metadata.iter().collect();
        let expected = [("more", "told"), ("revision", "r1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        assert_eq!(told, expected.iter().map(|(k, v)| (k, v)).collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_keeps_what_was_applied_and_says_that_it_is_retried() {
        let good = next(
            &KustomizationStatus::default(),
            frame(),
            success("r1", Health::NotAsked, false),
        );
        let status = next(&good, frame(), failure(reasons::BUILD_FAILED));
        assert_eq!(
            shown(&status),
            ["Reconciling=True ProgressingWithRetry", "Ready=False BuildFailed"]
        );
        assert_eq!(status.inventory, good.inventory);
        assert_eq!(status.last_applied_revision.as_deref(), Some("r1"));
        assert_eq!(status.last_attempted_revision.as_deref(), Some("r2"));
        assert_eq!(status.history.len(), 2);
        let status = next(&status, frame(), failure(reasons::HEALTH_CHECK_FAILED));
        assert!(shown(&status).contains(&"Healthy=False HealthCheckFailed".to_owned()));
    }

    #[test]
    fn what_is_blocked_was_not_tried() {
        let report = || Report::Blocked {
            reason: reasons::DEPENDENCY_NOT_READY,
            message: "no".into(),
        };
        let status = next(&KustomizationStatus::default(), frame(), report());
        assert_eq!(shown(&status), ["Ready=False DependencyNotReady"]);
        let failed = next(&status, frame(), failure(reasons::BUILD_FAILED));
        assert_eq!(
            shown(&next(&failed, frame(), report())),
            [
                "Reconciling=True ProgressingWithRetry",
                "Ready=False DependencyNotReady"
            ]
        );
    }

    #[test]
    fn stalled_and_reconciling_exclude_each_other() {
        let failed = next(
            &KustomizationStatus::default(),
            frame(),
            failure(reasons::BUILD_FAILED),
        );
        let stalled = Report::Stalled {
            reason: reasons::ACCESS_DENIED,
            message: "no".into(),
        };
        let status = next(&failed, frame(), stalled);
        assert_eq!(
            shown(&status),
            ["Stalled=True AccessDenied", "Ready=False AccessDenied"]
        );
        assert_eq!(status.observed_generation, Some(2));
        let status = next(&status, frame(), success("r1", Health::NotAsked, false));
        assert_eq!(shown(&status), ["Ready=True ReconciliationSucceeded"]);
    }

    #[test]
    fn a_quiet_success_writes_nothing_unless_it_mends_something() {
        let good = next(
            &KustomizationStatus::default(),
            frame(),
            success("r1", Health::NotAsked, false),
        );
        assert_eq!(next(&good, frame(), success("r1", Health::NotAsked, true)), good);
        assert_ne!(
            next(&good, frame(), success("r1", Health::NotAsked, false)),
            good,
            "the history counts on"
        );
        assert_ne!(next(&good, frame(), success("r2", Health::NotAsked, true)), good);
        let failed = next(&good, frame(), failure(reasons::BUILD_FAILED));
        assert_eq!(
            shown(&next(&failed, frame(), success("r1", Health::NotAsked, true))),
            ["Ready=True ReconciliationSucceeded"]
        );
    }

    #[test]
    fn what_changed_is_told_until_something_else_changes() {
        let run = |checksum: &str, changes: Option<&str>| {
            let reports = changes.into_iter().flat_map(|text| {
                let at = format!("at {text}");
                [
                    (report::CHANGES.to_owned(), text.to_owned()),
                    (report::BUILT.to_owned(), at),
                ]
            });
            let Report::Succeeded(mut success) = success("r1", Health::NotAsked, false) else {
                unreachable!()
            };
            success.history = entry("r1").with(reports.collect());
            success.history.checksum = checksum.to_owned();
            Report::Succeeded(success)
        };
        let told = |status: &KustomizationStatus| status.history[0].metadata.get(report::CHANGES).cloned();
        let mut status = next(
            &KustomizationStatus::default(),
            frame(),
            run("a", Some("x: 1 → 2")),
        );
        assert_eq!(told(&status).as_deref(), Some("x: 1 → 2"));
        status = next(&status, frame(), run("a", None));
        assert_eq!(told(&status).as_deref(), Some("x: 1 → 2"));
        status = next(&status, frame(), run("a", Some("x: 3 → 2")));
        assert_eq!(told(&status).as_deref(), Some("x: 3 → 2"));
        assert_eq!(status.history[0].metadata[report::BUILT], "at x: 3 → 2");
        status = next(&status, frame(), run("b", None));
        assert_eq!(told(&status), None);
        assert_eq!(status.history[0].metadata["revision"], "r1");
    }
}
