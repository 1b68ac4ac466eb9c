//! Deliveries: one queue for each Provider, in order, tried until they are taken or too old. Pure: the time is an argument.
//!
//! Namespaces share what there is: of attempts at once and of memory, none takes what others need.
//!
//! [`run`] carries out what is due; `store.rs` of the crate keeps it across restarts.

pub mod run;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;

use controller_kit::ObjectKey;
use event::Event;
use jiff::{SignedDuration, Timestamp};
use notifier::{Retry, Thread};
use serde::{Deserialize, Serialize};

use crate::alert::engine::Message;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that is ours to choose.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Memory limit for the queue of one Provider.
const MOST_QUEUE_BYTES: usize = 6 << 20;
/// Memory limit for all queues.
const MOST_BYTES: usize = 8 << 20;
/// Providers of one namespace that are spoken to at once: slow ones of a tenant leave room for those of others.
const MOST_IN_NAMESPACE: usize = 8;
/// Threads that are remembered for a Provider, and how long.
const MOST_THREADS: usize = 200;
/// Memory of an event beside its texts.
const OVERHEAD_BYTES: usize = 512;
/// Memory of a pair of metadata beside its texts.
const PAIR_BYTES: usize = 64;

/// Something to be said by a Provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The Alert that wants it said; its Provider is in its namespace.
    pub alert: Alert,
    /// The message.
    pub message: Message,
    /// The name of a commit's status, for the types that set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status: Option<String>,
    /// When it was put here.
    pub since: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// Not to be tried before.
    pub not_before: Timestamp,
}

/// An Alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
}

/// All queues.
#[derive(Debug, Default)]
pub struct Outbox {
    queues: BTreeMap<ObjectKey, Queue>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Delivery>,
    bytes: usize,
    /// The first is being tried.
    in_flight: bool,
    /// When it last had a turn.
    turn: Timestamp,
    threads: BTreeMap<String, Kept>,
}

/// A thread, and when it was last used, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    thread: Thread,
    used: i64,
}

/// Stored form of a queue.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Namespace of the Provider.
    pub namespace: String,
    /// Name of the Provider.
    pub name: String,
    /// Waiting deliveries.
    #[serde(default)]
    pub waiting: VecDeque<Delivery>,
    /// Threads by what they are about.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, Kept>,
}

/// Outcome of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was said.
    Said(Option<Thread>),
    /// It was not, and whether to try again.
    Failed(Retry),
    /// It need not be said any more: the Alert or the Provider is gone or suspended.
    Withdrawn,
}

/// Consequence for a delivery.
#[derive(Debug, Clone, PartialEq)]
pub enum Fate {
    /// It is over.
    Done,
    /// It is tried again.
    Waits,
    /// It is given up.
    Dropped(Box<Delivery>),
}

impl Outbox {
    /// Puts a delivery last in the queue of a Provider. Returns those that had to go for it, the oldest.
    pub fn push(&mut self, provider: &ObjectKey, delivery: Delivery) -> Vec<(ObjectKey, Delivery)> {
        let size = size(&delivery);
        let queue = self.queues.entry(provider.clone()).or_default();
        queue.waiting.push_back(delivery);
        queue.bytes += size;
        self.bytes += size;
        let mut dropped = Vec::new();
        while self
            .queues
            .get(provider)
            .is_some_and(|queue| queue.bytes > MOST_QUEUE_BYTES)
        {
            let Some(delivery) = self.drop_oldest(provider) else {
                break;
            };
            dropped.push((provider.clone(), delivery));
        }
        while self.bytes > MOST_BYTES {
            let Some(provider) = self.first_to_yield() else {
                break;
            };
            let Some(delivery) = self.drop_oldest(&provider) else {
                break;
            };
            dropped.push((provider, delivery));
        }
        dropped
    }

    /// Returns the deliveries to try now, those that have waited longest first. Only the first of each queue:
    /// messages are sent in order.
    pub fn due(&mut self, now: Timestamp, most: usize) -> Vec<(ObjectKey, Delivery)> {
        let mut busy = self.busy();
        let mut ready: Vec<_> = self
            .queues
            .iter_mut()
            .filter_map(|(provider, queue)| {
                let since = queue.next().filter(|since| *since <= now)?;
                Some((since, provider, queue))
            })
            .collect();
        // A long queue does not come before others for having waited, but for when it last had a turn.
        ready.sort_by_key(|(since, _, queue)| (*since).max(queue.turn));
        let mut begun = Vec::new();
        for (_, provider, queue) in ready {
            if begun.len() >= most {
                break;
            }
            let busy = busy.entry(provider.namespace.clone()).or_default();
            if *busy < MOST_IN_NAMESPACE
                && let Some(first) = queue.waiting.front()
            {
                *busy += 1;
                queue.in_flight = true;
                begun.push((provider.clone(), first.clone()));
            }
        }
        begun
    }

    /// Takes what came of an attempt.
    pub fn finish(
        &mut self,
        provider: &ObjectKey,
        outcome: Outcome,
        now: Timestamp,
        window: Duration,
    ) -> Fate {
        let Some(queue) = self.queues.get_mut(provider) else {
            return Fate::Done;
        };
        queue.in_flight = false;
        queue.turn = now;
        if let Outcome::Failed(retry) = outcome
            && let Some(pause) = queue
                .waiting
                .front()
                .and_then(|first| pause(retry, first, now, window))
            && let Some(first) = queue.waiting.front_mut()
        {
            first.attempts += 1;
            first.not_before = later(now, pause);
            return Fate::Waits;
        }
        let Some(delivery) = queue.waiting.pop_front() else {
            return Fate::Done;
        };
        let size = size(&delivery);
        queue.bytes = queue.bytes.saturating_sub(size);
        self.bytes = self.bytes.saturating_sub(size);
        if let Outcome::Said(Some(thread)) = &outcome {
            queue.keep(delivery.message.key.clone(), thread.clone(), now);
        }
        if queue.waiting.is_empty() && queue.threads.is_empty() {
            self.queues.remove(provider);
        }
        match outcome {
            Outcome::Failed(_) => Fate::Dropped(Box::new(delivery)),
            Outcome::Said(_) | Outcome::Withdrawn => Fate::Done,
        }
    }

    /// The thread of what a message is about.
    pub fn thread(&self, provider: &ObjectKey, key: &str) -> Option<Thread> {
        let kept = self.queues.get(provider)?.threads.get(key)?;
        Some(kept.thread.clone())
    }

    /// When there is something to be tried next. What is in flight, or in a namespace that has as much in flight as it may,
    /// becomes due by the end of an attempt.
    pub fn deadline(&self) -> Option<Timestamp> {
        let busy = self.busy();
        let is_full = |provider: &ObjectKey| {
            busy.get(&provider.namespace)
                .is_some_and(|busy| *busy >= MOST_IN_NAMESPACE)
        };
        let queues = self.queues.iter().filter(|(provider, _)| !is_full(provider));
        queues.filter_map(|(_, queue)| queue.next()).min()
    }

    /// How many wait.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.queues.values().map(|queue| queue.waiting.len()).sum()
    }

    /// Returns the queues to store.
    pub fn saved(&self) -> Vec<Saved> {
        let saved = |(key, queue): (&ObjectKey, &Queue)| Saved {
            namespace: key.namespace.clone(),
            name: key.name.clone(),
            waiting: queue.waiting.clone(),
            threads: queue.threads.clone(),
        };
        self.queues.iter().map(saved).collect()
    }

    /// Takes what was written down.
    pub fn restore(&mut self, saved: Vec<Saved>) {
        for Saved {
            namespace,
            name,
            waiting,
            threads,
        } in saved
        {
            let key = ObjectKey::new(namespace, name);
            if !threads.is_empty() {
                self.queues.entry(key.clone()).or_default().threads = threads;
            }
            for mut delivery in waiting {
                // What stood in the way may be over.
                delivery.not_before = delivery.since;
                self.push(&key, delivery);
            }
        }
    }

    /// How many Providers of each namespace are spoken to.
    fn busy(&self) -> HashMap<String, usize> {
        let mut busy = HashMap::new();
        for (provider, _) in self.queues.iter().filter(|(_, queue)| queue.in_flight) {
            *busy.entry(provider.namespace.clone()).or_default() += 1;
        }
        busy
    }

    /// Of the namespace for which most waits, the Provider for which most waits.
    fn first_to_yield(&self) -> Option<ObjectKey> {
        let mut namespaces: BTreeMap<&str, usize> = BTreeMap::new();
        for (provider, queue) in &self.queues {
            *namespaces.entry(&provider.namespace).or_default() += queue.droppable();
        }
        let (namespace, _) = namespaces.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let queues = self
            .queues
            .iter()
            .filter(|(provider, _)| provider.namespace == namespace);
        let largest = queues.max_by_key(|(_, queue)| queue.droppable())?;
        Some(largest.0.clone())
    }

    /// Drops the oldest that is not being tried.
    fn drop_oldest(&mut self, provider: &ObjectKey) -> Option<Delivery> {
        let queue = self.queues.get_mut(provider)?;
        let delivery = queue.waiting.remove(usize::from(queue.in_flight))?;
        let size = size(&delivery);
        queue.bytes = queue.bytes.saturating_sub(size);
        self.bytes = self.bytes.saturating_sub(size);
        Some(delivery)
    }
}

impl Queue {
    /// When the first is to be tried, unless that is done already.
    fn next(&self) -> Option<Timestamp> {
        let first = self.waiting.front().filter(|_| !self.in_flight)?;
        Some(first.not_before)
    }

    /// The bytes of what is not being tried.
    fn droppable(&self) -> usize {
        let tried = self.waiting.front().filter(|_| self.in_flight).map_or(0, size);
        self.bytes.saturating_sub(tried)
    }

    fn keep(&mut self, key: String, thread: Thread, now: Timestamp) {
        self.threads.insert(
            key,
            Kept {
                thread,
                used: now.as_second(),
            },
        );
        if self.threads.len() > MOST_THREADS
            && let Some(oldest) = self
                .threads
                .iter()
                .min_by_key(|(_, kept)| kept.used)
                .map(|(key, _)| key.clone())
        {
            self.threads.remove(&oldest);
        }
    }
}

/// How long to wait before the next attempt; None if there is to be none. The last attempt is at the end of the window,
/// however long the pause would be.
fn pause(retry: Retry, delivery: &Delivery, now: Timestamp, window: Duration) -> Option<Duration> {
    let pause = match retry {
        Retry::Never => return None,
        Retry::After(pause) => pause,
        Retry::Backoff => {
            let doubled = FIRST_PAUSE.saturating_mul(1 << delivery.attempts.min(16));
            doubled.min(LONGEST_PAUSE)
        }
    };
    let left = later(delivery.since, window).duration_since(now);
    let left = Duration::try_from(left).ok().filter(|left| !left.is_zero())?;
    Some(pause.min(left))
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// Approximate memory of a delivery.
fn size(delivery: &Delivery) -> usize {
    let Delivery {
        alert,
        message,
        commit_status,
        since: _,
        attempts: _,
        not_before: _,
    } = delivery;
    let texts = [&alert.namespace, &alert.name, &alert.uid, &message.key];
    let texts = texts.into_iter().chain(commit_status).map(String::len);
    let events = std::iter::once(&message.event).chain(&message.events);
    texts.sum::<usize>() + events.map(size_of_event).sum::<usize>()
}

fn size_of_event(event: &Event) -> usize {
    let Event {
        involved_object: object,
        severity,
        timestamp: _,
        message,
        reason,
        metadata,
        reporting_controller,
        reporting_instance,
    } = event;
    let texts = [
        severity.as_str(),
        message,
        reason,
        reporting_controller,
        reporting_instance,
        &object.kind,
        &object.namespace,
        &object.name,
        &object.uid,
        &object.api_version,
        &object.resource_version,
        &object.field_path,
    ];
    let texts: usize = texts.iter().map(|text| text.len()).sum();
    let metadata = metadata
        .iter()
        .map(|(key, value)| PAIR_BYTES + key.len() + value.len());
    OVERHEAD_BYTES + texts + metadata.sum::<usize>()
}

#[cfg(test)]
mod tests;
