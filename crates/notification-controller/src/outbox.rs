//! Deliveries: one queue for each Provider, in order, tried until they are taken or too old. Pure: the time is an argument.
//!
//! [`run`] carries out what is due; `store.rs` of the crate keeps it across restarts.

pub mod run;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use controller_kit::ObjectKey;
use jiff::{SignedDuration, Timestamp};
use notifier::{Retry, Thread};
use serde::{Deserialize, Serialize};

use crate::alert::engine::Message;

/// The pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that is ours to choose.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// What waits for one Provider takes no more memory than this.
const MOST_QUEUE_BYTES: usize = 6 << 20;
/// What waits for all Providers takes no more memory than this.
const MOST_BYTES: usize = 8 << 20;
/// Threads that are remembered for a Provider, and how long.
const MOST_THREADS: usize = 200;
/// What a delivery takes beside its texts.
const OVERHEAD_BYTES: usize = 512;

/// Something to be said by a Provider.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Delivery {
    /// The Alert that wants it said; its Provider is in its namespace.
    pub alert: Alert,
    /// What is said.
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
    threads: BTreeMap<String, Kept>,
}

/// A thread, and when it was last used, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    thread: Thread,
    used: i64,
}

/// What is written down of a queue.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Saved {
    /// Namespace of the Provider.
    pub namespace: String,
    /// Name of the Provider.
    pub name: String,
    /// What waits.
    #[serde(default)]
    pub waiting: VecDeque<Delivery>,
    /// Threads by what they are about.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub threads: BTreeMap<String, Kept>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was said.
    Said(Option<Thread>),
    /// It was not, and whether to try again.
    Failed(Retry),
    /// It need not be said any more: the Alert or the Provider is gone or suspended.
    Withdrawn,
}

/// What became of a delivery.
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
            let largest = self
                .queues
                .iter()
                .max_by_key(|(_, queue)| queue.bytes)
                .map(|(key, _)| key.clone());
            let Some(largest) = largest else { break };
            let Some(delivery) = self.drop_oldest(&largest) else {
                break;
            };
            dropped.push((largest, delivery));
        }
        dropped
    }

    /// What is to be tried now. The first of each queue only: they are said in order.
    pub fn due(&mut self, now: Timestamp, most: usize) -> Vec<(ObjectKey, Delivery)> {
        let ready = self.queues.iter_mut().filter(|(_, queue)| {
            let first = queue.waiting.front();
            !queue.in_flight && first.is_some_and(|first| first.not_before <= now)
        });
        let begun = ready.take(most).filter_map(|(provider, queue)| {
            let first = queue.waiting.front()?.clone();
            queue.in_flight = true;
            Some((provider.clone(), first))
        });
        begun.collect()
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

    /// When there is something to be tried next; of what is in flight, nothing is known.
    pub fn deadline(&self) -> Option<Timestamp> {
        let idle = self.queues.values().filter(|queue| !queue.in_flight);
        idle.filter_map(|queue| Some(queue.waiting.front()?.not_before))
            .min()
    }

    /// How many wait.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.queues.values().map(|queue| queue.waiting.len()).sum()
    }

    /// What is written down.
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

/// How long to wait before the next attempt; None if there is to be none.
fn pause(retry: Retry, delivery: &Delivery, now: Timestamp, window: Duration) -> Option<Duration> {
    let pause = match retry {
        Retry::Never => return None,
        Retry::After(pause) => pause,
        Retry::Backoff => {
            let doubled = FIRST_PAUSE.saturating_mul(1 << delivery.attempts.min(16));
            doubled.min(LONGEST_PAUSE)
        }
    };
    (later(now, pause) <= later(delivery.since, window)).then_some(pause)
}

fn later(time: Timestamp, by: Duration) -> Timestamp {
    let by = SignedDuration::try_from(by).unwrap_or(SignedDuration::MAX);
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn size(delivery: &Delivery) -> usize {
    let of = |event: &event::Event| {
        let metadata: usize = event
            .metadata
            .iter()
            .map(|(key, value)| key.len() + value.len())
            .sum();
        OVERHEAD_BYTES + event.message.len() + metadata
    };
    let message = &delivery.message;
    of(&message.event) + message.events.iter().map(of).sum::<usize>()
}

#[cfg(test)]
mod tests;
