//! Says of an event whether it was heard already: Flux's rate limit, one per key and interval. Pure.
//!
//! Windows follow each other from the first event of a key on, as in Flux: what comes steadily is told once in each. A key
//! remembers by which ways it came, since the same event comes by several, and only one that comes again by the same way
//! is a repetition that its sender should know of.

use std::collections::HashMap;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Keys that are remembered; some bytes each.
const MOST_KEYS: usize = 65_536;
/// Keys that are written down for a restart.
const MOST_SAVED: usize = 4_096;

/// By which way an event came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Over HTTP.
    Posted,
    /// As a Kubernetes Event, or from a status.
    Watched,
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

/// What was heard lately.
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
            Self::Watched => 2,
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

    /// Hears an event.
    pub fn hear(&mut self, key: u64, way: Way, now: Timestamp) -> Verdict {
        let interval = i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX);
        let now = now.as_millisecond();
        if interval == 0 {
            return Verdict::New;
        }
        if let Some(seen) = self.seen.get_mut(&key) {
            let passed = now.saturating_sub(seen.since) / interval;
            if passed <= 0 {
                let again = seen.ways & way.bit() != 0;
                seen.ways |= way.bit();
                return if again { Verdict::Repeated } else { Verdict::Known };
            }
            seen.since = seen.since.saturating_add(passed * interval);
            seen.ways = way.bit();
            return Verdict::New;
        }
        self.make_room(now, interval);
        let ways = way.bit();
        self.seen.insert(key, Seen { since: now, ways });
        Verdict::New
    }

    /// What is to be known after a restart: the newest.
    pub fn saved(&self, now: Timestamp) -> Vec<(u64, Seen)> {
        let interval = i64::try_from(self.interval.as_millis()).unwrap_or(i64::MAX);
        let now = now.as_millisecond();
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

    fn make_room(&mut self, now: i64, interval: i64) {
        if self.seen.len() < MOST_KEYS {
            return;
        }
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

    #[test]
    fn one_is_told_in_each_window() {
        let mut limiter = Limiter::new(Duration::from_secs(300));
        let heard: Vec<_> = [0, 10, 299, 300, 310, 610, 1000, 1100]
            .map(|seconds| limiter.hear(1, Way::Posted, at(seconds)) == Verdict::New)
            .into();
        assert_eq!(heard, [true, false, false, true, false, true, true, false]);
        assert_eq!(limiter.hear(2, Way::Posted, at(1100)), Verdict::New);
    }

    #[test]
    fn the_same_by_two_ways_is_one_and_no_repetition() {
        for (first, second) in [(Way::Posted, Way::Watched), (Way::Watched, Way::Posted)] {
            let mut limiter = Limiter::new(Duration::from_secs(300));
            let heard = [first, second, second, first].map(|way| limiter.hear(1, way, at(0)));
            assert_eq!(
                heard,
                [Verdict::New, Verdict::Known, Verdict::Repeated, Verdict::Repeated]
            );
        }
    }

    #[test]
    fn what_was_heard_survives_a_restart() {
        let mut before = Limiter::new(Duration::from_secs(300));
        before.hear(1, Way::Posted, at(0));
        before.hear(2, Way::Posted, at(400));
        let saved = before.saved(at(450));
        assert_eq!(saved.len(), 1);
        let mut after = Limiter::new(Duration::from_secs(300));
        after.restore(saved);
        assert_eq!(after.hear(2, Way::Watched, at(460)), Verdict::Known);
        assert_eq!(after.hear(1, Way::Watched, at(460)), Verdict::New);
    }

    #[test]
    fn however_much_comes_memory_is_bounded() {
        let mut limiter = Limiter::new(Duration::from_secs(300));
        for key in 0..200_000 {
            limiter.hear(key, Way::Posted, at((key / 1_000) as i64));
        }
        assert!(limiter.seen.len() <= MOST_KEYS);
        assert_eq!(limiter.saved(at(200)).len(), MOST_SAVED);
    }
}
