//! Messages that wait for others: a window after a message, and the period of a digest.

use std::collections::BTreeMap;
use std::time::Duration;

use event::{Event, Severity};
use jiff::Timestamp;
use notifier::State;
use serde::{Deserialize, Serialize};

use super::keep::shorten;
use super::message::Message;
use crate::alert::summary::{self, Line};

/// Messages that are kept; the others are counted.
const MOST_MESSAGES: usize = 100;
/// Objects of a digest that are kept; events of the others are counted.
const MOST_OBJECTS: usize = 300;
/// Bytes kept of a message.
const MOST_MESSAGE_BYTES: usize = 1_000;

/// Events after a message, to be sent together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Window {
    due: Timestamp,
    messages: Vec<Message>,
    more: usize,
}

impl Window {
    pub(super) fn new(due: Timestamp) -> Self {
        Self {
            due,
            messages: Vec::new(),
            more: 0,
        }
    }

    pub(super) fn due(&self) -> Timestamp {
        self.due
    }

    /// Adds a message; false if there is no room and it is only counted. That something is over always has room: it is told
    /// of what was told before, and that is bounded.
    pub(super) fn add(&mut self, mut message: Message) -> bool {
        if self.messages.len() >= MOST_MESSAGES && message.state != State::Resolved {
            self.more += 1;
            return false;
        }
        shorten(&mut message.event, MOST_MESSAGE_BYTES);
        self.messages.push(message);
        true
    }

    /// Takes back the errors of an object that were not told yet.
    pub(super) fn withdraw(&mut self, object: &str) {
        self.messages
            .retain(|message| message.key != object || !message.event.is_error());
    }

    /// Objects whose errors are told with it.
    pub(super) fn failing(&self) -> impl Iterator<Item = &str> {
        let errors = self.messages.iter().filter(|message| message.event.is_error());
        errors.map(|message| message.key.as_str())
    }

    /// All of it as one; None if nothing came.
    pub(super) fn message(mut self, group: &str) -> Option<Message> {
        if self.messages.len() == 1 && self.more == 0 {
            return self.messages.pop();
        }
        let events: Vec<_> = self.messages.into_iter().map(|message| message.event).collect();
        (!events.is_empty()).then(|| Message {
            event: summary::group(&events, self.more),
            state: State::Event,
            key: group.to_owned(),
            events,
        })
    }
}

/// Events of a period, by object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Digest {
    due: Timestamp,
    period: Duration,
    objects: BTreeMap<String, Told>,
    more: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Told {
    last: Event,
    number: u64,
    errors: u64,
}

impl Digest {
    pub(super) fn new(due: Timestamp, period: Duration) -> Self {
        Self {
            due,
            period,
            objects: BTreeMap::new(),
            more: 0,
        }
    }

    pub(super) fn due(&self) -> Timestamp {
        self.due
    }

    /// Adds a message; false if there is no room and it is only counted, which is never so of what is over.
    pub(super) fn add(&mut self, message: Message) -> bool {
        let is_over = message.state == State::Resolved;
        let mut last = message.event;
        shorten(&mut last, MOST_MESSAGE_BYTES);
        let errors = u64::from(last.is_error());
        let has_room = self.objects.len() < MOST_OBJECTS;
        if let Some(told) = self.objects.get_mut(&message.key) {
            told.last = last;
            told.number += 1;
            told.errors += errors;
            return true;
        }
        if !has_room && !is_over {
            self.more += 1;
            return false;
        }
        let told = Told {
            last,
            number: 1,
            errors,
        };
        self.objects.insert(message.key, told);
        true
    }

    /// Takes that objects are there no more: those that failed do not fail any longer.
    pub(super) fn gone(&mut self, is_gone: impl Fn(&str) -> bool) {
        let failing = self
            .objects
            .iter_mut()
            .filter(|(object, told)| told.last.is_error() && is_gone(object));
        for (_, Told { last, .. }) in failing {
            last.severity = Severity::Info;
            last.message = format!("deleted; it had failed with: {}", last.message);
        }
    }

    pub(super) fn message(self, group: &str) -> Option<Message> {
        if self.objects.is_empty() {
            return None;
        }
        let lines: Vec<_> = self.objects.values().map(Told::line).collect();
        let period = go_duration(self.period);
        Some(Message {
            event: summary::digest(&lines, self.more, &period),
            state: State::Event,
            key: group.to_owned(),
            events: self.objects.values().map(|told| told.last.clone()).collect(),
        })
    }
}

impl Told {
    fn line(&self) -> Line<'_> {
        Line {
            last: &self.last,
            number: self.number,
            errors: self.errors,
        }
    }
}

/// As people write it: `15m`, `1h30m`.
fn go_duration(duration: Duration) -> String {
    let (hours, minutes, seconds) = (
        duration.as_secs() / 3600,
        duration.as_secs() / 60 % 60,
        duration.as_secs() % 60,
    );
    let parts = [(hours, "h"), (minutes, "m"), (seconds, "s")];
    parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, unit)| format!("{number}{unit}"))
        .collect()
}
