//! Status of a HelmRelease before its release is examined: a pure function of the previous status and of what
//! prevents progress. Statements about the release itself are in `release`.

use api::helm::HelmReleaseStatus;
use api::meta::{Condition, condition_types, reasons};
use controller_kit::conditions::{self, Fact};
use jiff::Timestamp;
use reconcile_kit::freezes;
use reconcile_kit::writer::Frame;

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
    /// Something that is needed could not be had; it is tried again.
    Failed {
        /// Reason of Ready.
        reason: &'static str,
        /// Message of Ready.
        message: String,
    },
    /// A newer run takes the place of one that was broken off.
    Canceled {
        /// Actor that began it.
        by: String,
    },
}

/// Returns the status after a report.
pub fn next(previous: &HelmReleaseStatus, frame: Frame<'_>, report: Report) -> HelmReleaseStatus {
    let mut status = previous.clone();
    if let Some(requested_at) = frame.requested_at {
        status.last_handled_reconcile_at = Some(requested_at.to_owned());
    }
    match report {
        // Dependants ask whether the newest generation was observed, and there is nothing else to do about this one.
        Report::Suspended => status.observed_generation = Some(frame.generation),
        Report::Stalled { reason, message } => {
            freezes::thawed(&mut status.conditions, frame.now);
            conditions::remove(&mut status.conditions, condition_types::RECONCILING);
            set(&mut status, frame, not_ready(reason, message.clone()));
            set(
                &mut status,
                frame,
                Fact::holds(condition_types::STALLED, reason, message),
            );
            status.observed_generation = Some(frame.generation);
        }
        Report::Blocked { reason, message } | Report::Failed { reason, message } => {
            // Something else is in the way now.
            freezes::thawed(&mut status.conditions, frame.now);
            conditions::remove(&mut status.conditions, condition_types::STALLED);
            set(&mut status, frame, not_ready(reason, message));
            let waits = Fact::holds(
                condition_types::RECONCILING,
                reasons::PROGRESSING_WITH_RETRY,
                "Fulfilling prerequisites",
            );
            set(&mut status, frame, waits);
        }
        Report::Canceled { by } => {
            let message = format!("New reconciliation triggered by {by}");
            set(
                &mut status,
                frame,
                not_ready(reasons::HEALTH_CHECK_CANCELED, message),
            );
        }
    }
    status
}

/// Reasons of Ready that say what was in the way, and nothing of the release.
const OBSTACLES: [&str; 7] = [
    reasons::FROZEN,
    "SourceNotReady",
    "ValuesError",
    "RESTClientError",
    reasons::ACCESS_DENIED,
    reasons::ARTIFACT_FAILED,
    reasons::DEPENDENCY_NOT_READY,
];

/// Returns whether a release that is not ready for this reason waits for something that is not its own, or for a newer run.
pub fn waits(reason: &str) -> bool {
    let others = [
        "SourceNotReady",
        reasons::DEPENDENCY_NOT_READY,
        reasons::ARTIFACT_FAILED,
    ];
    [reasons::HEALTH_CHECK_CANCELED, reasons::FROZEN].contains(&reason) || others.contains(&reason)
}

/// Takes back what is not in the way any more, now that a run begins.
pub fn unobstructed(status: &mut HelmReleaseStatus, generation: i64, now: Timestamp) {
    conditions::remove(&mut status.conditions, condition_types::STALLED);
    let ready = conditions::get(&status.conditions, condition_types::READY);
    if ready.is_some_and(|ready| OBSTACLES.contains(&ready.reason.as_str())) {
        let fact = Fact::is_unknown(
            condition_types::READY,
            reasons::PROGRESSING,
            "reconciliation in progress",
        );
        conditions::set(&mut status.conditions, fact, generation, now);
    }
}

/// Says what the action that is under way waits for, behind Flux's words for it.
pub fn waiting(previous: &HelmReleaseStatus, present: &str) -> HelmReleaseStatus {
    /// How what is said of an action begins; see `release::drive`.
    const RUNNING: &str = "Running '";
    const WAITING: &str = ", waiting for: [";
    let mut status = previous.clone();
    let running = |condition: &&mut Condition| {
        let is_one = matches!(
            condition.type_.as_str(),
            condition_types::READY | condition_types::RECONCILING
        );
        is_one && condition.reason == reasons::PROGRESSING && condition.message.starts_with(RUNNING)
    };
    for condition in status.conditions.iter_mut().filter(running) {
        let action = condition.message.split(WAITING).next().unwrap_or_default();
        condition.message = format!("{action}, {present}");
    }
    status
}

/// Keeps the time since when an object is stalled, where a run has ended as the one before: it says nothing new.
pub fn still_stalled(status: &mut HelmReleaseStatus, before: &HelmReleaseStatus) {
    let stalled = |condition: &&Condition| condition.type_ == condition_types::STALLED;
    let Some(before) = before.conditions.iter().find(stalled) else {
        return;
    };
    let now = status
        .conditions
        .iter_mut()
        .find(|condition| stalled(&&**condition));
    if let Some(now) = now
        && now.status == before.status
    {
        now.last_transition_time = before.last_transition_time.clone();
    }
}

fn not_ready(reason: &str, message: String) -> Fact {
    Fact::does_not_hold(condition_types::READY, reason, message)
}

fn set(status: &mut HelmReleaseStatus, frame: Frame<'_>, fact: Fact) {
    conditions::set(&mut status.conditions, fact, frame.generation, frame.now);
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Frame<'static> = Frame {
        generation: 2,
        requested_at: Some("asked"),
        now: Timestamp::UNIX_EPOCH,
    };

    fn after(report: Report) -> HelmReleaseStatus {
        next(&HelmReleaseStatus::default(), FRAME, report)
    }

    fn ready(status: &HelmReleaseStatus) -> (&str, &str) {
        let ready = conditions::get(&status.conditions, condition_types::READY).unwrap();
        (&ready.status, &ready.reason)
    }

    #[test]
    fn a_mistake_is_observed_and_an_obstacle_is_not() {
        let (reason, message) = ("AccessDenied", "no".to_owned());
        let stalled = after(Report::Stalled { reason, message });
        assert_eq!(
            (stalled.observed_generation, ready(&stalled)),
            (Some(2), ("False", "AccessDenied"))
        );
        assert!(conditions::is_stalled(&stalled.conditions));
        let (reason, message) = ("SourceNotReady", "not yet".to_owned());
        let blocked = next(&stalled, FRAME, Report::Blocked { reason, message });
        assert!(
            !conditions::is_stalled(&blocked.conditions) && conditions::is_reconciling(&blocked.conditions)
        );
        let fresh = after(Report::Suspended);
        assert_eq!(fresh.last_handled_reconcile_at.as_deref(), Some("asked"));
        assert!(fresh.conditions.is_empty());
        assert_eq!(fresh.observed_generation, Some(2));
    }

    #[test]
    fn what_an_action_waits_for_is_said_behind_the_action() {
        let mut status = HelmReleaseStatus::default();
        let running = "Running 'install' action with timeout of 5m0s";
        for fact in [
            Fact::is_unknown(condition_types::READY, reasons::PROGRESSING, running),
            Fact::holds(condition_types::RECONCILING, reasons::PROGRESSING, running),
            Fact::holds("Released", "InstallSucceeded", running),
        ] {
            conditions::set(&mut status.conditions, fact, 1, Timestamp::UNIX_EPOCH);
        }
        let first = waiting(&status, "waiting for: [a]");
        let second = waiting(&first, "waiting for: [b]");
        let said = |type_| {
            conditions::get(&second.conditions, type_)
                .unwrap()
                .message
                .as_str()
        };
        assert_eq!(
            said(condition_types::READY),
            format!("{running}, waiting for: [b]")
        );
        assert_eq!(
            said(condition_types::RECONCILING),
            format!("{running}, waiting for: [b]")
        );
        assert_eq!(said("Released"), running);
    }

    #[test]
    fn who_is_stalled_as_before_is_so_since_then() {
        let stalled = |at: i64| {
            let frame = Frame {
                now: Timestamp::from_second(at).unwrap(),
                ..FRAME
            };
            let (reason, message) = ("RetriesExceeded", "no".to_owned());
            next(
                &HelmReleaseStatus::default(),
                frame,
                Report::Stalled { reason, message },
            )
        };
        let (before, mut now) = (stalled(1), stalled(2));
        still_stalled(&mut now, &HelmReleaseStatus::default());
        let since = |status: &HelmReleaseStatus| {
            let stalled = conditions::get(&status.conditions, condition_types::STALLED).unwrap();
            stalled.last_transition_time.clone()
        };
        assert_ne!(since(&now), since(&before));
        still_stalled(&mut now, &before);
        assert_eq!(since(&now), since(&before));
    }

    #[test]
    fn an_obstacle_is_taken_back_and_what_became_of_the_release_is_not() {
        let (reason, message) = ("ValuesError", "no".to_owned());
        let mut status = after(Report::Failed { reason, message });
        unobstructed(&mut status, 2, Timestamp::UNIX_EPOCH);
        assert_eq!(ready(&status), ("Unknown", "Progressing"));
        let (reason, message) = ("InstallFailed", "no".to_owned());
        let mut status = after(Report::Failed { reason, message });
        unobstructed(&mut status, 2, Timestamp::UNIX_EPOCH);
        assert_eq!(ready(&status), ("False", "InstallFailed"));
    }
}
