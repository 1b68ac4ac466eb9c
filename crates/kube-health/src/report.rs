//! Results of a wait, and their messages.
//!
//! The wording at the start, and `Kind/namespace/name status: 'Status'` for each object, are Flux's (pkg/ssa
//! `WaitForSet`), because people and tools search for them; what follows the status is ours.

use std::fmt;

use manifest::ObjectId;

use crate::text::one_line;
use crate::verdict::Status;
use crate::why::Cause;

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All objects are Current.
    Healthy,
    /// At least one object has failed, and waiting longer would not help.
    Unhealthy(Report),
    /// Time ran out; the report names every object that is not Current.
    TimedOut(Report),
}

impl Outcome {
    /// Returns the report of a wait that did not succeed.
    pub fn report(&self) -> Option<&Report> {
        match self {
            Self::Healthy => None,
            Self::Unhealthy(report) | Self::TimedOut(report) => Some(report),
        }
    }
}

/// Why a wait did not succeed, or has not yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// An object failed.
    Stalled,
    /// Time ran out.
    TimedOut,
    /// It did not: this is what a wait looks like that goes on.
    NotYet,
}

/// The objects that kept a wait from succeeding, in the order of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Why the wait did not succeed.
    pub ending: Ending,
    /// The objects to blame.
    pub objects: Vec<ObjectReport>,
}

/// One object that is not healthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectReport {
    /// Which object.
    pub id: ObjectId,
    /// How it was when the wait ended.
    pub status: Status,
    /// The verdict's message; may be empty.
    pub message: String,
    /// The first cause found in its Pods and Events; None for kinds without Pods, or when nothing was found.
    pub why: Option<Cause>,
}

/// Characters of a message that go into a report; objects are foreign and may say anything.
const MESSAGE_LIMIT: usize = 400;
/// Characters of a whole report: conditions hold 32,768, and the caller has words to add.
const REPORT_LIMIT: usize = 20_000;
/// Objects that a brief report names.
const NAMED: usize = 3;

impl Report {
    /// Says in one line what a wait that goes on waits for, for conditions: the first objects are named, the others counted.
    pub fn brief(&self) -> String {
        let named = self.objects.iter().take(NAMED).map(ToString::to_string);
        let mut parts: Vec<_> = named.collect();
        if self.objects.len() > NAMED {
            parts.push(format!("and {} more", self.objects.len() - NAMED));
        }
        format!("waiting for: [{}]", parts.join(", "))
    }
}

impl fmt::Display for ObjectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} status: '{}'", self.id, self.status)?;
        // The last event on a Job, say, tells what its condition has told already.
        let why = self.why.as_ref().map(|cause| cause.text.as_str());
        let why = why.filter(|why| !self.message.contains(why));
        let parts = [Some(self.message.as_str()), why].into_iter().flatten();
        for part in parts.filter(|part| !part.is_empty()) {
            write!(f, ": {}", one_line(part, MESSAGE_LIMIT))?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.ending {
            Ending::Stalled => "failed early due to stalled resources: [",
            Ending::TimedOut => "timeout waiting for: [",
            Ending::NotYet => "waiting for: [",
        })?;
        let mut written = 0;
        for (index, object) in self.objects.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            let text = object.to_string();
            if written + text.len() > REPORT_LIMIT {
                write!(f, "{separator}and {} more", self.objects.len() - index)?;
                break;
            }
            written += text.len();
            write!(f, "{separator}{text}")?;
        }
        f.write_str("]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::Kind;

    fn object(name: &str, message: &str, why: Option<&str>) -> ObjectReport {
        ObjectReport {
            id: ObjectId {
                group: "apps".into(),
                kind: "Deployment".into(),
                namespace: "default".into(),
                name: name.into(),
            },
            status: Status::InProgress,
            message: message.into(),
            why: why.map(|text| Cause {
                kind: Kind::Crash,
                pod: None,
                container: None,
                text: text.to_owned(),
            }),
        }
    }

    #[test]
    fn a_report_starts_as_fluxs_does_and_goes_on_with_the_cause() {
        let report = Report {
            ending: Ending::TimedOut,
            objects: vec![
                object("web", "1 of 3 replicas available", Some("pod web-1: x")),
                object("db", "", None),
            ],
        };
        assert_eq!(
            report.to_string(),
            "timeout waiting for: [Deployment/default/web status: 'InProgress': 1 of 3 replicas available: \
             pod web-1: x, Deployment/default/db status: 'InProgress']"
        );
    }

    #[test]
    fn a_cause_that_the_message_has_told_is_not_told_again() {
        let object = object(
            "web",
            "failed: BackoffLimitExceeded: it is",
            Some("BackoffLimitExceeded: it is"),
        );
        assert_eq!(
            object.to_string(),
            "Deployment/default/web status: 'InProgress': failed: BackoffLimitExceeded: it is"
        );
    }

    #[test]
    fn what_is_waited_for_is_told_in_one_line() {
        let objects = (0..5).map(|i| object(&format!("web-{i}"), "0 of 2 replicas", None));
        let report = Report {
            ending: Ending::NotYet,
            objects: objects.collect(),
        };
        let told = report.brief();
        assert!(
            told.starts_with("waiting for: [Deployment/default/web-0 status: 'InProgress': 0 of 2 replicas"),
            "{told}"
        );
        assert!(told.ends_with(", and 2 more]"), "{told}");
    }

    #[test]
    fn a_long_report_is_cut_at_whole_objects() {
        let objects: Vec<_> = (0..1000)
            .map(|i| object(&format!("web-{i}"), &"x".repeat(1000), None))
            .collect();
        let text = Report {
            ending: Ending::Stalled,
            objects,
        }
        .to_string();
        assert!(text.len() < REPORT_LIMIT + 1000, "{}", text.len());
        assert!(
            text.starts_with("failed early due to stalled resources: ["),
            "{text}"
        );
        assert!(text.ends_with(" more]"), "{text}");
    }
}
