//! Unfinished work that a restart must not lose: seen keys, engines, deliveries, bookmarks.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use controller_kit::ObjectKey;
use event::Event;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::alert::engine::Engine;
use crate::intake::clean;
use crate::intake::limit::{Limiter, Seen, Verdict, Way};
use crate::outbox::{self, Outbox};

/// So long an event may come after the status that it tells of.
const GRACE: SignedDuration = SignedDuration::from_secs(10);
/// So long before a status its event may have come.
const BEFORE: SignedDuration = SignedDuration::from_secs(30);
/// Objects of which it is remembered when an event told of them.
const MOST_TOLD: usize = 10_000;
/// Statuses that wait for their event.
const MOST_SUSPECTS: usize = 5_000;

/// Unfinished work.
#[derive(Debug)]
pub struct Desk {
    limiter: Limiter,
    engines: BTreeMap<ObjectKey, Engine>,
    /// Messages to send.
    pub outbox: Outbox,
    /// How far the Events of each controller were taken, by resource version.
    pub bookmarks: BTreeMap<String, u64>,
    /// When we were there last; None at the very first start.
    pub last: Option<Timestamp>,
    /// When an event last told that an object fails, by the hash of its name: anybody may post long ones.
    told: HashMap<u64, Timestamp>,
    hasher: RandomState,
    /// Failures that an event may yet tell of.
    suspects: BTreeMap<String, Suspect>,
}

#[derive(Debug)]
struct Suspect {
    event: Event,
    since: Timestamp,
}

/// Stored form.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// When it was written.
    pub last: Option<Timestamp>,
    /// How far the Events of each controller were taken.
    pub bookmarks: BTreeMap<String, u64>,
    /// Keys heard lately.
    pub seen: Vec<(u64, Seen)>,
    /// Engines of Alerts, by namespace and name.
    pub engines: Vec<(String, String, Engine)>,
    /// Messages to send.
    pub outbox: Vec<outbox::Saved>,
}

impl Desk {
    /// An empty one.
    pub fn new(rate_limit_interval: Duration) -> Self {
        Self {
            limiter: Limiter::new(rate_limit_interval),
            engines: BTreeMap::new(),
            outbox: Outbox::default(),
            bookmarks: BTreeMap::new(),
            last: None,
            told: HashMap::new(),
            hasher: RandomState::new(),
            suspects: BTreeMap::new(),
        }
    }

    /// Takes what was written down.
    pub fn restore(&mut self, saved: Saved) {
        self.last = saved.last;
        self.bookmarks = saved.bookmarks;
        self.limiter.restore(saved.seen);
        self.outbox.restore(saved.outbox);
        let engines = saved.engines.into_iter();
        self.engines = engines
            .map(|(namespace, name, engine)| (ObjectKey::new(namespace, name), engine))
            .collect();
    }

    /// Returns the state to store.
    pub fn saved(&self, now: Timestamp) -> Saved {
        let engines = self.engines.iter();
        Saved {
            last: Some(now),
            bookmarks: self.bookmarks.clone(),
            seen: self.limiter.saved(now),
            engines: engines
                .map(|(key, engine)| (key.namespace.clone(), key.name.clone(), engine.clone()))
                .collect(),
            outbox: self.outbox.saved(),
        }
    }

    /// Returns whether an event that was cleaned would be heard for the first time.
    pub fn is_news(&self, event: &Event, way: Way, now: Timestamp) -> bool {
        self.limiter.is_news(clean::keys(event), way, now)
    }

    /// Hears an event that was cleaned.
    pub fn hear(&mut self, event: &Event, way: Way, now: Timestamp) -> Verdict {
        if self.told.len() >= MOST_TOLD {
            self.told.retain(|_, time| now.duration_since(*time) < BEFORE);
            if self.told.len() >= MOST_TOLD {
                self.told.clear();
            }
        }
        if event.is_error() {
            let object = self.hasher.hash_one(event.involved_object.to_string());
            self.told.insert(object, now);
        }
        self.limiter.hear(clean::keys(event), way, now)
    }

    /// Lets an Alert's engine do something.
    pub fn engine<T>(&mut self, alert: &ObjectKey, act: impl FnOnce(&mut Engine) -> T) -> T {
        let engine = self.engines.entry(alert.clone()).or_default();
        let result = act(engine);
        if engine.is_empty() {
            self.engines.remove(alert);
        }
        result
    }

    /// Forgets what an Alert has begun.
    pub fn drop_engine(&mut self, alert: &ObjectKey) {
        self.engines.remove(alert);
    }

    /// Drops the engines of Alerts that are gone, or want none.
    pub fn keep_engines(&mut self, is_there: impl Fn(&ObjectKey) -> bool) {
        self.engines.retain(|key, _| is_there(key));
    }

    /// Waits whether an event tells of a failure that a status shows.
    pub fn suspect(&mut self, event: Event, now: Timestamp) {
        if self.suspects.len() < MOST_SUSPECTS {
            self.suspects
                .insert(event.involved_object.to_string(), Suspect { event, since: now });
        }
    }

    /// The object is ready.
    pub fn clear_suspect(&mut self, object: &str) {
        self.suspects.remove(object);
    }

    /// Objects that are there no more.
    pub fn clear_suspects(&mut self, is_gone: impl Fn(&str) -> bool) {
        self.suspects.retain(|object, _| !is_gone(object));
    }

    /// Failures of which no event told in time.
    pub fn due_suspects(&mut self, now: Timestamp) -> Vec<Event> {
        let due: Vec<_> = self
            .suspects
            .extract_if(.., |_, suspect| now.duration_since(suspect.since) >= GRACE)
            .collect();
        let untold = due.into_iter().filter(|(object, suspect)| {
            let told = self.told.get(&self.hasher.hash_one(object));
            told.is_none_or(|told| suspect.since.duration_since(*told) > BEFORE)
        });
        untold.map(|(_, suspect)| suspect.event).collect()
    }

    /// When there is something to do but deliveries.
    pub fn deadline(&self) -> Option<Timestamp> {
        let engines = self.engines.values().filter_map(Engine::deadline).min();
        let suspects = self.suspects.values().map(|suspect| suspect.since + GRACE).min();
        engines.into_iter().chain(suspects).min()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(name: &str, severity: &str) -> Event {
        let object = json!({"kind": "Kustomization", "namespace": "apps", "name": name});
        serde_json::from_value(json!({"involvedObject": object, "severity": severity, "message": "broken"}))
            .unwrap()
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    #[test]
    fn a_failure_is_told_by_its_status_only_if_no_event_tells_of_it() {
        let mut desk = Desk::new(Duration::from_secs(300));
        desk.hear(&event("before", "error"), Way::Posted, at(-5));
        desk.hear(&event("long-ago", "error"), Way::Posted, at(-60));
        desk.hear(&event("other", "info"), Way::Posted, at(0));
        for name in ["before", "long-ago", "after", "silent", "other", "healed"] {
            desk.suspect(event(name, "error"), at(0));
        }
        desk.hear(&event("after", "error"), Way::Watched, at(8));
        desk.clear_suspect("Kustomization/apps/healed");
        assert_eq!(desk.deadline(), Some(at(10)));
        assert!(desk.due_suspects(at(9)).is_empty());
        let told: Vec<_> = desk
            .due_suspects(at(10))
            .into_iter()
            .map(|event| event.involved_object.name)
            .collect();
        assert_eq!(told, ["long-ago", "other", "silent"]);
        assert_eq!(desk.deadline(), None);
    }
}
