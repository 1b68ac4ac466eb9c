//! Objects that fail and were told of.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use event::{Event, Severity, keys};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Objects that are remembered; of further ones it is not told when they are ready again.
const MOST_OBJECTS: usize = 500;
/// Folded objects that are counted.
const MOST_FOLDED: usize = 500;
/// What is kept of a message.
const MOST_MESSAGE_BYTES: usize = 1_000;

/// Objects that fail and were told of, by `Kind/namespace/name`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Open(BTreeMap<String, Failure>);

/// An object that fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Failure {
    /// What was told.
    event: Event,
    /// What is the same if it fails in the same way again.
    way: u64,
    /// What depends on it and fails too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    folded: BTreeSet<String>,
}

impl Open {
    pub(super) fn has(&self, object: &str) -> bool {
        self.0.contains_key(object)
    }

    /// Notes a failure; false if it fails in the same way already.
    pub(super) fn fail(&mut self, object: &str, event: &Event) -> bool {
        let way = way(event);
        match self.0.get_mut(object) {
            Some(failure) if failure.way == way => false,
            Some(failure) => {
                failure.way = way;
                failure.event = kept(event);
                true
            }
            None => {
                if self.0.len() < MOST_OBJECTS {
                    let failure = Failure {
                        event: kept(event),
                        way,
                        folded: BTreeSet::new(),
                    };
                    self.0.insert(object.to_owned(), failure);
                }
                true
            }
        }
    }

    /// Notes what fails with `parent`; false if nothing was told of that yet, and so this is to be told.
    pub(super) fn fold(&mut self, parent: &str, object: &str, event: &Event) -> bool {
        if let Some(failure) = self.0.get_mut(parent) {
            if failure.folded.len() < MOST_FOLDED {
                failure.folded.insert(object.to_owned());
            }
            return true;
        }
        if self.0.len() < MOST_OBJECTS {
            // The first that depends on it stands for it: the Alert may not be about the parent at all.
            let failure = Failure {
                event: kept(event),
                way: 0,
                folded: BTreeSet::from([object.to_owned()]),
            };
            self.0.insert(parent.to_owned(), failure);
        }
        false
    }

    pub(super) fn close(&mut self, object: &str) -> Option<Failure> {
        self.0.remove(object)
    }
}

impl Failure {
    /// What is told when it is over.
    pub(super) fn resolved(self, now: Timestamp) -> Event {
        let others = match self.folded.len() {
            0 => String::new(),
            number => format!(" ({number} objects that depend on it failed too)"),
        };
        Event {
            severity: Severity::Info,
            reason: "Resolved".to_owned(),
            message: format!("ready again{others}; it had failed with: {}", self.event.message),
            timestamp: Some(now),
            ..self.event
        }
    }
}

fn kept(event: &Event) -> Event {
    let mut event = event.clone();
    event
        .message
        .truncate(event.message.floor_char_boundary(MOST_MESSAGE_BYTES));
    event
}

fn way(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&event.reason, &event.message, event.metadata.get(keys::REVISION)).hash(&mut hasher);
    hasher.finish()
}
