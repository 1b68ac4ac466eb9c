//! Makes few messages of many events: holds back, folds, groups, digests, and says when it is over. Pure: the time and what is
//! known of objects are arguments, so an hour of an outage is a test of a millisecond.
//!
//! ```text
//! event ──▶ hold (still failing after …?) ──▶ fold (does what it depends on fail?) ──▶ open (told already?) ──▶ digest or group ──▶ message
//! ```
//!
//! An Alert without annotations has no engine: each event is a message.

mod keep;
mod message;
mod open;
mod window;

use std::collections::BTreeMap;
use std::time::Duration;

use event::Event;
use jiff::{SignedDuration, Timestamp};
use notifier::State;
use serde::{Deserialize, Serialize};

use super::options::Options;
use keep::shorten;
use open::{Failure, Noted, Open};
use window::{Digest, Window};

pub use message::Message;

/// Objects that are held back; further ones are told at once.
const MOST_HELD: usize = 500;
/// Bytes kept of a message that is held back.
const MOST_HELD_BYTES: usize = 2_000;

/// Facts about objects, by `Kind/namespace/name`.
pub trait Facts {
    /// Returns whether it fails; None if that is not known.
    fn is_failing(&self, object: &str) -> Option<bool>;
    /// Returns the objects that it depends on: its source and its dependencies.
    fn parents(&self, object: &str) -> Vec<String>;
}

/// Input of a step besides the state.
pub struct Setting<'a> {
    /// Options of the Alert.
    pub options: &'a Options,
    /// Facts about objects.
    pub facts: &'a dyn Facts,
    /// The Provider opens and closes incidents by object, so that they are not to be mixed.
    pub by_object: bool,
    /// Subject of messages about several objects: the Alert.
    pub group: &'a str,
    /// The time.
    pub now: Timestamp,
}

/// State of an Alert's unfinished work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Engine {
    /// Errors that are told if they last, by object.
    held: BTreeMap<String, Held>,
    /// Objects that fail.
    open: Open,
    /// Events since the last message.
    window: Option<Window>,
    /// Digest to send at the end of the period.
    digest: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Held {
    event: Event,
    due: Timestamp,
}

/// Where a message goes.
enum Place {
    /// It is told, now or at a time that nothing changes.
    Told,
    /// It is told unless it is taken back.
    Waits,
    /// There was no room: it is only counted.
    Counted,
}

impl Engine {
    /// Takes an event.
    pub fn take(&mut self, event: Event, setting: &Setting<'_>) -> Vec<Message> {
        let object = event.involved_object.to_string();
        if !event.is_error() {
            return self.succeed(&object, event, setting);
        }
        if let Some(hold) = setting.options.hold
            && !self.open.has(&object)
            && (self.held.len() < MOST_HELD || self.held.contains_key(&object))
        {
            let due = later(setting.now, hold);
            let held = self.held.entry(object).or_insert_with(|| Held {
                event: Event::default(),
                due,
            });
            held.event = event;
            shorten(&mut held.event, MOST_HELD_BYTES);
            return Vec::new();
        }
        self.fail(object, event, setting)
    }

    /// Takes that an object is ready.
    pub fn ready(&mut self, object: &str, setting: &Setting<'_>) -> Vec<Message> {
        let Some(failure) = self.recover(object, setting) else {
            return Vec::new();
        };
        let resolved = failure.over("ready again", setting.now);
        self.send_or_hold(
            Message {
                state: State::Resolved,
                ..Message::plain(resolved)
            },
            setting,
        )
    }

    /// Takes that objects are there no more. Nothing else would tell that they do not fail any longer.
    pub fn gone(&mut self, is_gone: impl Fn(&str) -> bool, setting: &Setting<'_>) -> Vec<Message> {
        if let Some(digest) = &mut self.digest {
            digest.gone(&is_gone);
        }
        let begun = self.held.keys().chain(self.open.objects());
        let gone: Vec<_> = begun.filter(|object| is_gone(object)).cloned().collect();
        let mut messages = Vec::new();
        for object in gone {
            if let Some(failure) = self.recover(&object, setting) {
                let message = Message {
                    state: State::Resolved,
                    ..Message::plain(failure.over("deleted", setting.now))
                };
                messages.extend(self.send_or_hold(message, setting));
            }
        }
        messages
    }

    /// Does what is due.
    pub fn tick(&mut self, setting: &Setting<'_>) -> Vec<Message> {
        let mut messages = Vec::new();
        let due: Vec<_> = self
            .held
            .extract_if(.., |_, held| held.due <= setting.now)
            .collect();
        for (object, held) in due {
            if setting.facts.is_failing(&object) != Some(false) {
                messages.extend(self.fail(object, held.event, setting));
            }
        }
        if let Some(window) = self.window.take_if(|window| window.due() <= setting.now)
            && let Some(message) = self.close_window(window, setting)
        {
            self.window = setting
                .options
                .group_window
                .map(|length| Window::new(later(setting.now, length)));
            messages.push(message);
        }
        if let Some(digest) = self.digest.take_if(|digest| digest.due() <= setting.now) {
            messages.extend(digest.message(setting.group));
        }
        messages
    }

    /// When there is something to do.
    pub fn deadline(&self) -> Option<Timestamp> {
        let held = self.held.values().map(|held| held.due).min();
        let window = self.window.as_ref().map(Window::due);
        let digest = self.digest.as_ref().map(Digest::due);
        [held, window, digest].into_iter().flatten().min()
    }

    /// Returns whether it has begun nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// An event that is no error. If it says that the object works again, that is what is told.
    fn succeed(&mut self, object: &str, event: Event, setting: &Setting<'_>) -> Vec<Message> {
        let mut message = Message::plain(event);
        if says_success(&message.event.reason) && self.recover(object, setting).is_some() {
            message.state = State::Resolved;
        }
        self.send_or_hold(message, setting)
    }

    /// Notes that an object works again. Returns what it failed with if people wait to be told: they were told of the failure.
    fn recover(&mut self, object: &str, setting: &Setting<'_>) -> Option<Failure> {
        self.held.remove(object);
        let failure = self.open.close(object)?;
        if !setting.options.resolve {
            return None;
        }
        if let Some(window) = &mut self.window {
            window.withdraw(object);
        }
        failure.was_told().then_some(failure)
    }

    fn fail(&mut self, object: String, event: Event, setting: &Setting<'_>) -> Vec<Message> {
        let Options {
            fold, resolve, hold, ..
        } = *setting.options;
        if fold && self.is_folded(&object, setting) {
            return Vec::new();
        }
        let noted = if fold || resolve || hold.is_some() {
            self.open.fail(&object, &event)
        } else {
            Noted::New
        };
        // What is told when it is over, or stands for others, need not be told again while it lasts.
        if noted == Noted::Known && (resolve || self.open.stands_in(&object)) {
            return Vec::new();
        }
        // Of what no one remembers it is not told when it is over: no incident is opened that would stay.
        let state = if resolve && noted != Noted::NoRoom {
            State::Firing
        } else {
            State::Event
        };
        self.send_or_hold(
            Message {
                state,
                ..Message::plain(event)
            },
            setting,
        )
    }

    /// Makes a failure part of one that was told: of what the object depends on, or of the first that depends on the same.
    fn is_folded(&mut self, object: &str, setting: &Setting<'_>) -> bool {
        let parents = setting.facts.parents(object);
        let failing =
            |parent: &&String| self.open.gathers(parent) || setting.facts.is_failing(parent) == Some(true);
        match parents.iter().find(failing) {
            Some(parent) => self.open.fold(parent, object),
            None => false,
        }
    }

    /// Says it now, or keeps it to be said with others.
    fn send_or_hold(&mut self, message: Message, setting: &Setting<'_>) -> Vec<Message> {
        let error = message.event.is_error().then(|| message.key.clone());
        let (said, place) = self.place(message, setting);
        match (error, place) {
            (Some(object), Place::Told) => self.open.note_reported(&object),
            (Some(object), Place::Counted) => self.open.missed(&object),
            (Some(_), Place::Waits) | (None, _) => {}
        }
        said
    }

    fn place(&mut self, message: Message, setting: &Setting<'_>) -> (Vec<Message>, Place) {
        let now = setting.now;
        if setting.by_object {
            return (vec![message], Place::Told);
        }
        if let Some(period) = setting.options.digest {
            let digest = self
                .digest
                .get_or_insert_with(|| Digest::new(later(now, period), period));
            // It says of each object what failed and how it ended, so nothing need be taken back.
            let place = if digest.add(message) {
                Place::Told
            } else {
                Place::Counted
            };
            return (Vec::new(), place);
        }
        let Some(length) = setting.options.group_window else {
            return (vec![message], Place::Told);
        };
        let Some(window) = &mut self.window else {
            self.window = Some(Window::new(later(now, length)));
            return (vec![message], Place::Told);
        };
        let place = if window.add(message) {
            Place::Waits
        } else {
            Place::Counted
        };
        (Vec::new(), place)
    }

    /// Sends the events of a window as one message. After that they can no longer be withdrawn.
    fn close_window(&mut self, window: Window, setting: &Setting<'_>) -> Option<Message> {
        for object in window.failing() {
            self.open.note_reported(object);
        }
        window.message(setting.group)
    }
}

/// Reasons by which Flux's controllers say that an object works.
fn says_success(reason: &str) -> bool {
    const REASONS: [&str; 7] = [
        "ReconciliationSucceeded",
        "InstallSucceeded",
        "UpgradeSucceeded",
        "TestSucceeded",
        "NewArtifact",
        "ArtifactUpToDate",
        "Succeeded",
    ];
    REASONS.contains(&reason)
}

fn later(now: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    now.saturating_add(by).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
