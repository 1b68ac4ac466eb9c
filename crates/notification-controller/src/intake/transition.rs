//! Status as events: a Ready that turned False and of which no event tells. Pure.
//!
//! A controller may be killed between its status and its event, and recorders drop events when there are many.

use event::{Event, InvolvedObject, Severity, keys};
use jiff::Timestamp;

use crate::objects::Ready;

/// A dependency that is not ready is no failure of the object, nor is a Freeze.
const WAITING: [&str; 2] = ["DependencyNotReady", "Frozen"];

/// Transition of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The object is ready, and was not or was not known to be.
    Ready,
    /// The object failed, in another way than before.
    Failed(Box<Event>),
}

/// Observed fields of an object.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The object.
    pub object: InvolvedObject,
    /// Its condition Ready.
    pub ready: Ready,
    /// The revision that it is about.
    pub revision: Option<String>,
    /// The controller that it is of.
    pub since: Option<Timestamp>,
}

/// Says what an object turned to, if that is worth telling.
pub fn transition(before: Option<&Ready>, now: &Observed) -> Option<Transition> {
    if before == Some(&now.ready) {
        return None;
    }
    match &now.ready {
        Ready::True => Some(Transition::Ready),
        Ready::False { reason, message } if !WAITING.contains(&&**reason) => {
            Some(Transition::Failed(Box::new(failure(now, reason, message))))
        }
        Ready::False { .. } | Ready::Unknown => None,
    }
}

fn failure(now: &Observed, reason: &str, message: &str) -> Event {
    let group = now.object.group();
    let revision = now.revision.iter();
    Event {
        involved_object: now.object.clone(),
        severity: Severity::Error,
        timestamp: now.since,
        message: message.to_owned(),
        reason: reason.to_owned(),
        metadata: revision
            .map(|revision| (format!("{group}/{}", keys::REVISION), revision.clone()))
            .collect(),
        reporting_controller: crate::flags::NAME.to_owned(),
        reporting_instance: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failing(reason: &str, message: &str) -> Ready {
        Ready::False {
            reason: reason.to_owned(),
            message: message.to_owned(),
        }
    }

    fn observed(ready: Ready) -> Observed {
        let object = InvolvedObject {
            kind: "Kustomization".to_owned(),
            api_version: "kustomize.toolkit.fluxcd.io/v1".to_owned(),
            ..InvolvedObject::default()
        };
        Observed {
            object,
            ready,
            revision: Some("main@sha1:1".to_owned()),
            since: None,
        }
    }

    #[test]
    fn what_turns_false_is_an_error_with_reason_message_and_revision() {
        for before in [
            None,
            Some(Ready::True),
            Some(Ready::Unknown),
            Some(failing("BuildFailed", "other")),
        ] {
            let Some(Transition::Failed(event)) =
                transition(before.as_ref(), &observed(failing("BuildFailed", "broken")))
            else {
                panic!("{before:?}");
            };
            assert!(event.is_error());
            assert_eq!(
                (event.reason.as_str(), event.message.as_str()),
                ("BuildFailed", "broken")
            );
            assert_eq!(event.of_group("revision"), Some("main@sha1:1"));
        }
    }

    #[test]
    fn nothing_is_told_of_what_is_the_same_works_on_or_waits() {
        let same = failing("BuildFailed", "broken");
        assert_eq!(transition(Some(&same), &observed(same.clone())), None);
        assert_eq!(transition(Some(&same), &observed(Ready::Unknown)), None);
        assert_eq!(
            transition(None, &observed(failing("DependencyNotReady", "waits"))),
            None
        );
        assert_eq!(transition(Some(&Ready::True), &observed(Ready::True)), None);
        assert_eq!(
            transition(Some(&same), &observed(Ready::True)),
            Some(Transition::Ready)
        );
    }
}
