//! The status of a Receiver. Pure.

use api::meta::reasons;
use api::notification::ReceiverStatus;
use controller_kit::conditions::{self, READY, RECONCILING, STALLED};
use jiff::Timestamp;

use super::compile::Invalid;
use crate::served::REASON;

/// The reason when there is no token.
const TOKEN_NOT_FOUND: &str = "TokenNotFound";

/// Outcome of a reconcile.
#[derive(Debug, Clone, Copy)]
pub enum Report<'a> {
    /// Calls are taken at this path.
    Ready {
        /// The path.
        path: &'a str,
    },
    /// Calls are taken at this path, but kinds that they are to wake are not served.
    Unserved {
        /// The path.
        path: &'a str,
        /// Which kinds.
        message: &'a str,
    },
    /// There is no token; it is looked for again.
    NoToken {
        /// Why.
        message: &'a str,
        /// It may be that there is one, and that it cannot be read just now.
        may_pass: bool,
    },
    /// Nothing can be done before the spec changes.
    Invalid(&'a Invalid),
    /// Nothing is to be done.
    Suspended,
}

/// Further input of a status.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Generation of the object.
    pub generation: i64,
    /// The annotation by which a person asked for it.
    pub requested_at: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// Message for an invalid spec, as condition and event.
pub fn terminal(invalid: &Invalid) -> String {
    format!(
        "Reconciliation failed terminally due to configuration error: {}",
        invalid.message
    )
}

/// The status that follows.
pub fn next(previous: &ReceiverStatus, frame: Frame<'_>, report: Report<'_>) -> ReceiverStatus {
    let mut status = previous.clone();
    let Frame { generation, now, .. } = frame;
    if let Some(requested) = frame.requested_at {
        status.last_handled_reconcile_at = Some(requested.to_owned());
    }
    let list = &mut status.conditions;
    match report {
        Report::Ready { path } => {
            let message = format!("Receiver initialized for path: {path}");
            conditions::remove(list, STALLED);
            conditions::remove(list, RECONCILING);
            conditions::mark_true(list, READY, reasons::SUCCEEDED, message, generation, now);
            status.webhook_path = Some(path.to_owned());
            status.observed_generation = Some(generation);
        }
        Report::Unserved { path, message } => {
            conditions::remove(list, STALLED);
            conditions::remove(list, RECONCILING);
            conditions::mark_false(list, READY, REASON, message, generation, now);
            status.webhook_path = Some(path.to_owned());
            status.observed_generation = Some(generation);
        }
        Report::NoToken { message, may_pass } => {
            conditions::mark_false(list, READY, TOKEN_NOT_FOUND, message, generation, now);
            let progress = "Reconciliation in progress";
            conditions::reconciling(list, reasons::PROGRESSING_WITH_RETRY, progress, generation, now);
            if !may_pass {
                status.webhook_path = None;
            }
        }
        Report::Invalid(invalid) => {
            let message = terminal(invalid);
            conditions::mark_false(list, READY, invalid.reason, message.clone(), generation, now);
            conditions::stalled(list, invalid.reason, message, generation, now);
            status.observed_generation = Some(generation);
        }
        Report::Suspended => {}
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(reports: &[Report<'_>]) -> ReceiverStatus {
        let frame = Frame {
            generation: 3,
            requested_at: Some("now"),
            now: Timestamp::UNIX_EPOCH,
        };
        let start = ReceiverStatus::default();
        reports
            .iter()
            .fold(start, |status, report| next(&status, frame, *report))
    }

    fn none(may_pass: bool) -> Report<'static> {
        let message = "none";
        Report::NoToken { message, may_pass }
    }

    fn condition_lines(status: &ReceiverStatus) -> Vec<String> {
        let line = |condition: &api::meta::Condition| {
            format!(
                "{} {} {}: {}",
                condition.type_, condition.status, condition.reason, condition.message
            )
        };
        status.conditions.iter().map(line).collect()
    }

    #[test]
    fn a_receiver_of_kinds_that_are_not_served_keeps_its_path() {
        let unserved = Report::Unserved {
            path: "/hook/a",
            message: "no ImagePolicy",
        };
        let status = after(&[Report::Ready { path: "/hook/b" }, unserved]);
        assert_eq!(
            condition_lines(&status),
            ["Ready False KindNotServed: no ImagePolicy"]
        );
        assert_eq!(status.webhook_path.as_deref(), Some("/hook/a"));
    }

    #[test]
    fn a_ready_receiver_tells_its_path() {
        let status = after(&[none(false), Report::Ready { path: "/hook/a" }, Report::Suspended]);
        assert_eq!(
            condition_lines(&status),
            ["Ready True Succeeded: Receiver initialized for path: /hook/a"]
        );
        assert_eq!(status.webhook_path.as_deref(), Some("/hook/a"));
        assert_eq!(status.observed_generation, Some(3));
        assert_eq!(status.last_handled_reconcile_at.as_deref(), Some("now"));
    }

    #[test]
    fn without_a_token_there_is_no_path() {
        for (may_pass, path) in [(false, None), (true, Some("/hook/a"))] {
            let status = after(&[Report::Ready { path: "/hook/a" }, none(may_pass)]);
            assert_eq!(
                condition_lines(&status),
                [
                    "Reconciling True ProgressingWithRetry: Reconciliation in progress",
                    "Ready False TokenNotFound: none",
                ]
            );
            // One that cannot be read just now may still be what it was.
            assert_eq!(status.webhook_path.as_deref(), path);
        }
    }

    #[test]
    fn a_spec_that_is_of_no_use_is_stalled() {
        let invalid = Invalid {
            reason: "ValidationFailed",
            message: "no".to_owned(),
        };
        let status = after(&[none(false), Report::Invalid(&invalid)]);
        let message = "Reconciliation failed terminally due to configuration error: no";
        assert_eq!(
            condition_lines(&status),
            [
                format!("Stalled True ValidationFailed: {message}"),
                format!("Ready False ValidationFailed: {message}"),
            ]
        );
        assert_eq!(status.observed_generation, Some(3));
    }
}
