//! Objects that fail, and whether people know.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use event::{Event, Severity, keys};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::keep::shorten;

/// Objects that are remembered; of further ones it is not told when they are ready again.
const MOST_OBJECTS: usize = 500;
/// Folded objects that are counted.
const MOST_FOLDED: usize = 500;
/// Bytes kept of a message.
const MOST_MESSAGE_BYTES: usize = 1_000;

/// Objects that fail, by `Kind/namespace/name`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Open {
    failures: BTreeMap<String, Failure>,
    /// Of what fails and is not told of itself: the first of its dependents, which was told and stands for all.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    stand_ins: BTreeMap<String, String>,
}

/// An object that fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Failure {
    /// The event that was sent, or is waiting.
    event: Event,
    /// Hash of the way in which it fails; None if the next failure is reported in any case.
    way: Option<u64>,
    /// It was told. What waits to be told is not, and may yet be taken back.
    told: bool,
    /// Dependents that fail, too.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    folded: BTreeSet<String>,
}

/// How a failure was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    /// It is a new one, or fails in another way.
    New,
    /// It fails in the same way already.
    Known,
    /// There are too many: no one will remember it.
    NoRoom,
}

impl Open {
    /// Returns whether it fails.
    pub(super) fn has(&self, object: &str) -> bool {
        self.failures.contains_key(object)
    }

    /// Returns whether failures of what depends on it are part of its own, or of the first of them.
    pub(super) fn gathers(&self, object: &str) -> bool {
        self.has(object) || self.stand_ins.contains_key(object)
    }

    /// Returns whether it stands for something that it depends on.
    pub(super) fn stands_in(&self, object: &str) -> bool {
        self.stand_ins.values().any(|first| first == object)
    }

    /// Objects that fail, and those for which others stand.
    pub(super) fn objects(&self) -> impl Iterator<Item = &String> {
        self.failures.keys().chain(self.stand_ins.keys())
    }

    /// Notes a failure.
    pub(super) fn fail(&mut self, object: &str, event: &Event) -> Noted {
        let way = Some(way(event));
        // It is told of by itself from now on.
        self.stand_ins.remove(object);
        if let Some(failure) = self.failures.get_mut(object) {
            if failure.way == way {
                return Noted::Known;
            }
            failure.way = way;
            failure.event = kept(event);
            return Noted::New;
        }
        if self.failures.len() >= MOST_OBJECTS {
            return Noted::NoRoom;
        }
        let failure = Failure {
            event: kept(event),
            way,
            told: false,
            folded: BTreeSet::new(),
        };
        self.failures.insert(object.to_owned(), failure);
        Noted::New
    }

    /// Notes what fails with `parent`. False if it is the one to be told: nothing was yet, and the Alert may not be about
    /// the parent at all.
    pub(super) fn fold(&mut self, parent: &str, object: &str) -> bool {
        if let Some(failure) = self.failures.get_mut(parent) {
            if failure.folded.len() < MOST_FOLDED {
                failure.folded.insert(object.to_owned());
            }
            return true;
        }
        if let Some(first) = self.stand_ins.get(parent) {
            return first != object;
        }
        if self.stand_ins.len() < MOST_OBJECTS {
            self.stand_ins.insert(parent.to_owned(), object.to_owned());
        }
        false
    }

    /// Notes that people were told that it fails.
    pub(super) fn note_reported(&mut self, object: &str) {
        if let Some(failure) = self.failures.get_mut(object) {
            failure.told = true;
        }
    }

    /// Notes that it could not be told how it fails: the next time, it is to be.
    pub(super) fn missed(&mut self, object: &str) {
        if let Some(failure) = self.failures.get_mut(object) {
            failure.way = None;
        }
    }

    /// Notes that it fails no longer, and returns how it did. What it stood for is told by another if that fails on.
    pub(super) fn close(&mut self, object: &str) -> Option<Failure> {
        self.stand_ins
            .retain(|parent, first| parent != object && first != object);
        self.failures.remove(object)
    }
}

impl Failure {
    /// Returns whether people were told.
    pub(super) fn was_told(&self) -> bool {
        self.told
    }

    /// Builds the event for the end of an outage, and how it ended.
    pub(super) fn over(self, how: &str, now: Timestamp) -> Event {
        let others = match self.folded.len() {
            0 => String::new(),
            number => format!(" ({number} objects that depend on it failed too)"),
        };
        Event {
            severity: Severity::Info,
            reason: "Resolved".to_owned(),
            message: format!("{how}{others}; it had failed with: {}", self.event.message),
            timestamp: Some(now),
            ..self.event
        }
    }
}

fn kept(event: &Event) -> Event {
    let mut event = event.clone();
    shorten(&mut event, MOST_MESSAGE_BYTES);
    event
}

fn way(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&event.reason, &event.message, event.metadata.get(keys::REVISION)).hash(&mut hasher);
    hasher.finish()
}
