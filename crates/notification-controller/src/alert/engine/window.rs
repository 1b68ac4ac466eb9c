//! Messages that wait for others: a window after a message, and the period of a digest.

use std::collections::BTreeMap;
use std::time::Duration;

use event::Event;
use jiff::Timestamp;
use notifier::State;
use serde::{Deserialize, Serialize};

use super::Message;
use crate::alert::summary::{self, Line};

/// Messages that are kept; the others are counted.
const MOST_MESSAGES: usize = 100;
/// Objects of a digest that are kept; events of the others are counted.
const MOST_OBJECTS: usize = 300;
/// What is kept of a message.
const MOST_MESSAGE_BYTES: usize = 1_000;

/// What came after a message, to be told together.
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

    /// Adds a message. One that takes back another that was not told yet makes both unnecessary.
    pub(super) fn add(&mut self, mut message: Message) {
        let waiting = self
            .messages
            .iter()
            .position(|other| other.key == message.key && other.state == State::Firing);
        match (message.state, waiting) {
            (State::Resolved, Some(waiting)) => {
                self.messages.remove(waiting);
            }
            _ if self.messages.len() < MOST_MESSAGES => {
                shorten(&mut message.event);
                self.messages.push(message);
            }
            _ => self.more += 1,
        }
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

/// What happened in a period, by object.
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

    pub(super) fn add(&mut self, message: Message) {
        let mut last = message.event;
        shorten(&mut last);
        let error = u64::from(last.is_error());
        let room = self.objects.len() < MOST_OBJECTS;
        match self.objects.get_mut(&message.key) {
            Some(told) => {
                told.last = last;
                told.number += 1;
                told.errors += error;
            }
            None if room => {
                let told = Told {
                    last,
                    number: 1,
                    errors: error,
                };
                self.objects.insert(message.key, told);
            }
            None => self.more += 1,
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

fn shorten(event: &mut Event) {
    event
        .message
        .truncate(event.message.floor_char_boundary(MOST_MESSAGE_BYTES));
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
