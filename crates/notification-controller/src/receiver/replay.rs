//! Calls that come again.
//!
//! A service that got no answer sends a call again, and whoever has seen a signed call can. What it asks for was done
//! already: within a while it is answered and not done again. After that it is, for a person may press "Redeliver" and
//! mean it. A call that failed is not remembered.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

/// Calls that are remembered; more push the oldest out.
const MOST_CALLS: usize = 20_000;

type Fingerprint = [u8; 32];

/// What came lately.
#[derive(Debug)]
pub struct Replays {
    window: Duration,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    at: HashMap<Fingerprint, Instant>,
    order: VecDeque<(Instant, Fingerprint)>,
}

/// A call that is being acted on.
#[derive(Debug, Clone, Copy)]
pub struct Mark(Fingerprint);

impl Replays {
    /// Remembers calls for so long; no time remembers none.
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            calls: Mutex::default(),
        }
    }

    /// Marks a call to a Receiver, known by its UID. None if it came already.
    pub fn begin(&self, receiver: &str, call: &[u8], now: Instant) -> Option<Mark> {
        let mut hash = Sha256::new();
        hash.update(receiver.as_bytes());
        hash.update([0]);
        hash.update(call);
        let fingerprint = hash.finalize().into();
        if self.window.is_zero() {
            return Some(Mark(fingerprint));
        }
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.drop_old(now, self.window);
        if calls.at.contains_key(&fingerprint) {
            return None;
        }
        calls.at.insert(fingerprint, now);
        calls.order.push_back((now, fingerprint));
        Some(Mark(fingerprint))
    }

    /// Forgets a call that could not be acted on: it may come again.
    pub fn forget(&self, Mark(fingerprint): Mark) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.at.remove(&fingerprint);
    }
}

impl Calls {
    fn drop_old(&mut self, now: Instant, window: Duration) {
        while let Some((at, fingerprint)) = self.order.front().copied() {
            let is_old = now.saturating_duration_since(at) >= window;
            if !is_old && self.order.len() < MOST_CALLS {
                break;
            }
            self.order.pop_front();
            // It may have been forgotten and come again meanwhile.
            if self.at.get(&fingerprint) == Some(&at) {
                self.at.remove(&fingerprint);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_acted_on_once_in_a_while() {
        let (replays, start) = (Replays::new(Duration::from_secs(60)), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(replays.begin("uid", b"push", at(0)).is_some());
        assert!(replays.begin("uid", b"push", at(59)).is_none());
        assert!(replays.begin("uid", b"another", at(1)).is_some());
        assert!(replays.begin("another", b"push", at(1)).is_some());
        assert!(replays.begin("uid", b"push", at(60)).is_some());
        assert!(replays.begin("uid", b"push", at(61)).is_none());
    }

    #[test]
    fn a_call_that_failed_may_come_again() {
        let (replays, now) = (Replays::new(Duration::from_secs(60)), Instant::now());
        let mark = replays.begin("uid", b"push", now).unwrap();
        replays.forget(mark);
        let later = now + Duration::from_secs(30);
        assert!(replays.begin("uid", b"push", later).is_some());
        // The first mark's time is over, the second's is not.
        assert!(
            replays
                .begin("uid", b"push", now + Duration::from_secs(70))
                .is_none()
        );
    }

    #[test]
    fn memory_is_bounded_and_may_be_none() {
        let (replays, now) = (Replays::new(Duration::from_secs(60)), Instant::now());
        for number in 0..MOST_CALLS as u32 + 5 {
            assert!(replays.begin("uid", &number.to_be_bytes(), now).is_some());
        }
        assert_eq!(replays.calls.lock().unwrap().at.len(), MOST_CALLS);
        let never = Replays::new(Duration::ZERO);
        assert!(never.begin("uid", b"a", now).is_some() && never.begin("uid", b"a", now).is_some());
    }
}
