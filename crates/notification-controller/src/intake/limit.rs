//! Says of an event whether it was heard already: Flux's rate limit, one per key and interval. Pure.
//!
//! Windows follow each other from the first event of a key on, as in Flux: what comes steadily is told once in each. A key
//! remembers by which ways it came, since the same event comes by several, and only one that comes again by the same way
//! is a repetition that its sender should know of.
//!
//! A Kubernetes Event that counts several occurrences has the annotations of the first. It is compared by what is sure to be
//! right, its likeness, with what came before it, and what is posted right after it is the same ([`Keys`]).

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Keys that are remembered; some bytes each.
const MOST_KEYS: usize = 65_536;
/// Keys that are written down for a restart.
const MOST_SAVED: usize = 4_096;

/// So long an event may be posted after the Kubernetes Event that counts it: posting is tried several times.
const TWIN: i64 = 30_000;
/// The bit of a likeness whose window an event began that counts several; what it counts last is not posted yet.
const COUNTED: u8 = 4;

/// By which way an event came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over HTTP.
    Posted,
    /// As a Kubernetes Event, or from a status.
    Watched,
    /// As a Kubernetes Event whose count was raised.
    Counted,
}

/// By what an event is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// By all that tells events apart.
    pub identity: u64,
    /// By what is right even if its annotations are those of an earlier one.
    pub likeness: u64,
}

/// Whether it was heard already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No.
    New,
    /// Yes, by another way.
    Known,
    /// Yes, by the same way.
    Repeated,
}

/// Recently seen events.
#[derive(Debug)]
pub struct Limiter {
    interval: Duration,
    seen: HashMap<u64, Seen>,
}

/// A key and its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Begin of the window, in milliseconds.
    since: i64,
    ways: u8,
}

impl Way {
    fn bit(self) -> u8 {
        match self {
            Self::Posted => 1,
            Self::Watched | Self::Counted => 2,
        }
    }
}

impl Limiter {
    /// Nothing was heard yet.
    pub fn new(interval: Duration) -> Self {
        Self {
            interval,
            seen: HashMap::new(),
        }
    }

    /// Returns whether an event would be heard for the first time.
    pub fn is_news(&self, keys: Keys, way: Way, now: Timestamp) -> bool {
        let (interval, now) = (self.interval(), now.as_millisecond());
        let key = if way == Way::Counted {
            keys.likeness
        } else {
            keys.identity
        };
        let seen = self.seen.get(&key);
        interval == 0 || seen.is_none_or(|seen| now.saturating_sub(seen.since) >= interval)
    }

    /// Hears an event.
    pub fn hear(&mut self, keys: Keys, way: Way, now: Timestamp) -> Verdict {
        let now = now.as_millisecond();
        if self.interval() == 0 {
            return Verdict::New;
        }
        let (key, other) = match way {
            Way::Counted => (keys.likeness, None),
            Way::Posted | Way::Watched => (keys.identity, Some(keys.likeness)),
        };
        let verdict = self.hear_key(key, way, now);
        let Some(likeness) = other.filter(|_| verdict == Verdict::New) else {
            return verdict;
        };
        let is_counted = self
            .seen
            .get(&likeness)
            .is_some_and(|seen| seen.ways & COUNTED != 0 && now.saturating_sub(seen.since) < TWIN);
        self.begin(likeness, way, now);
        if way == Way::Posted && is_counted {
            Verdict::Known
        } else {
            Verdict::New
        }
    }

    fn hear_key(&mut self, key: u64, way: Way, now: i64) -> Verdict {
        let interval = self.interval();
        let Some(seen) = self.seen.get_mut(&key) else {
            self.begin(key, way, now);
            return Verdict::New;
        };
        let passed = now.saturating_sub(seen.since) / interval;
        if passed <= 0 {
            let again = seen.ways & way.bit() != 0;
            seen.ways |= way.bit();
            return if again { Verdict::Repeated } else { Verdict::Known };
        }
        let since = seen.since.saturating_add(passed * interval);
        // What is posted soon is looked for from now on.
        self.begin(key, way, if way == Way::Counted { now } else { since });
        Verdict::New
    }

    fn begin(&mut self, key: u64, way: Way, since: i64) {
        let counted = if way == Way::Counted { COUNTED } else { 0 };
        let ways = way.bit() | counted;
        if !self.seen.contains_key(&key) {
            self.make_room(since);
        }
        self.seen.insert(key, Seen { since, ways });
    }

    fn interval(&self) -> i64 {
        i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX)
    }

    /// Returns the newest keys, to store for a restart.
    pub fn saved(&self, now: Timestamp) -> Vec<(u64, Seen)> {
        let (interval, now) = (self.interval(), now.as_millisecond());
        let fresh = |seen: &Seen| now.saturating_sub(seen.since) < interval;
        let mut saved: Vec<_> = self
            .seen
            .iter()
            .filter(|(_, seen)| fresh(seen))
            .map(|(key, seen)| (*key, *seen))
            .collect();
        saved.sort_unstable_by_key(|(key, seen)| (std::cmp::Reverse(seen.since), *key));
        saved.truncate(MOST_SAVED);
        saved
    }

    /// Remembers what was saved.
    pub fn restore(&mut self, saved: Vec<(u64, Seen)>) {
        self.seen.extend(saved.into_iter().take(MOST_SAVED));
    }

    fn make_room(&mut self, now: i64) {
        if self.seen.len() < MOST_KEYS {
            return;
        }
        let interval = self.interval();
        self.seen
            .retain(|_, seen| now.saturating_sub(seen.since) < interval.saturating_mul(2));
        if self.seen.len() >= MOST_KEYS {
            let mut times: Vec<_> = self.seen.values().map(|seen| seen.since).collect();
            let middle = times.len() / 2;
            let (_, median, _) = times.select_nth_unstable(middle);
            let median = *median;
            self.seen.retain(|_, seen| seen.since > median);
        }
        if self.seen.len() >= MOST_KEYS {
            self.seen.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + seconds).unwrap()
    }

    fn keys(identity: u64) -> Keys {
        Keys {
            identity,
            likeness: identity + (1 << 32),
        }
    }

    /// The same but for revision or token.
    fn like(identity: u64, other: u64) -> Keys {
        Keys {
            identity,
            ..keys(other)
        }
    }

    #[test]
    fn one_is_told_in_each_window() {
        let mut limiter = Limiter::new(Duration::from_secs(300));
        let heard: Vec<_> = [0, 10, 299, 300, 310, 610, 1000, 1100]
            .map(|seconds| limiter.hear(keys(1), Way::Posted, at(seconds)) == Verdict::New)
            .into();
        assert_eq!(heard, [true, false, false, true, false, true, true, false]);
        assert_eq!(limiter.hear(keys(2), Way::Posted, at(1100)), Verdict::New);
    }

    #[test]
    fn the_same_by_two_ways_is_one_and_no_repetition() {
        for (first, second) in [(Way::Posted, Way::Watched), (Way::Watched, Way::Posted)] {
            let mut limiter = Limiter::new(Duration::from_secs(300));
            let heard = [first, second, second, first].map(|way| limiter.hear(keys(1), way, at(0)));
            assert_eq!(
                heard,
                [Verdict::New, Verdict::Known, Verdict::Repeated, Verdict::Repeated]
            );
        }
    }

    #[test]
    fn an_event_that_counts_several_is_told_once_whatever_its_annotations_say() {
        let minutes = Duration::from_secs(300);
        // The first occurrence, another revision, and then the Event of the first whose count is raised for it.
        let mut limiter = Limiter::new(minutes);
        assert_eq!(limiter.hear(keys(1), Way::Posted, at(0)), Verdict::New);
        assert_eq!(limiter.hear(keys(1), Way::Watched, at(0)), Verdict::Known);
        assert_eq!(limiter.hear(like(2, 1), Way::Posted, at(200)), Verdict::New);
        assert_eq!(limiter.hear(keys(1), Way::Counted, at(201)), Verdict::Known);
        assert_eq!(limiter.hear(keys(1), Way::Counted, at(400)), Verdict::Repeated);
        // The Event comes first: what is posted then is the same, once.
        let mut limiter = Limiter::new(minutes);
        assert_eq!(limiter.hear(keys(1), Way::Counted, at(0)), Verdict::New);
        assert_eq!(limiter.hear(like(2, 1), Way::Posted, at(5)), Verdict::Known);
        assert_eq!(limiter.hear(like(2, 1), Way::Posted, at(6)), Verdict::Repeated);
        assert_eq!(limiter.hear(like(3, 1), Way::Posted, at(7)), Verdict::New);
        // Later it is none of what was counted, and nothing else is like it.
        let mut limiter = Limiter::new(minutes);
        assert_eq!(limiter.hear(keys(1), Way::Counted, at(0)), Verdict::New);
        assert_eq!(limiter.hear(like(2, 1), Way::Posted, at(60)), Verdict::New);
        assert_eq!(limiter.hear(keys(3), Way::Posted, at(60)), Verdict::New);
        // What goes on is told once in each window.
        let mut limiter = Limiter::new(minutes);
        let heard: Vec<_> = [0, 100, 290, 310, 400, 620]
            .map(|seconds| limiter.hear(keys(1), Way::Counted, at(seconds)) == Verdict::New)
            .into();
        assert_eq!(heard, [true, false, false, true, false, true]);
    }

    #[test]
    fn news_are_what_would_be_heard_for_the_first_time() {
        let mut limiter = Limiter::new(Duration::from_secs(300));
        assert!(limiter.is_news(keys(1), Way::Posted, at(0)));
        limiter.hear(keys(1), Way::Posted, at(0));
        for way in [Way::Posted, Way::Watched, Way::Counted] {
            assert!(!limiter.is_news(keys(1), way, at(299)), "{way:?}");
            assert!(limiter.is_news(keys(1), way, at(300)), "{way:?}");
        }
        assert!(limiter.is_news(like(2, 1), Way::Posted, at(1)));
    }

    #[test]
    fn what_was_heard_survives_a_restart() {
        let mut before = Limiter::new(Duration::from_secs(300));
        before.hear(keys(1), Way::Posted, at(0));
        before.hear(keys(2), Way::Posted, at(400));
        let saved = before.saved(at(450));
        assert_eq!(saved.len(), 2);
        let mut after = Limiter::new(Duration::from_secs(300));
        after.restore(saved);
        assert_eq!(after.hear(keys(2), Way::Watched, at(460)), Verdict::Known);
        assert_eq!(after.hear(keys(1), Way::Watched, at(460)), Verdict::New);
    }

    #[test]
    fn however_much_comes_memory_is_bounded() {
        let mut limiter = Limiter::new(Duration::from_secs(300));
        for key in 0..200_000 {
            limiter.hear(keys(key), Way::Posted, at((key / 1_000) as i64));
        }
        assert!(limiter.seen.len() <= MOST_KEYS);
        assert_eq!(limiter.saved(at(200)).len(), MOST_SAVED);
    }
}
