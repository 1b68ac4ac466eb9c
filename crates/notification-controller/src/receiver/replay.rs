//! Calls that come again.
//!
//! A service that got no answer sends a call again, and whoever has seen a signed call can. What it asks for was done
//! already: within a while it is answered and not done again. After that it is, for a person may press "Redeliver" and
//! mean it. Only what was done is remembered: a call that failed, was given up or is still under way says nothing of the
//! next.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

/// Calls that are remembered; more push the oldest out.
const MOST_CALLS: usize = 20_000;

type Fingerprint = [u8; 32];

/// Recent calls.
#[derive(Debug)]
pub struct Replays {
    window: Duration,
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    under_way: HashSet<Fingerprint>,
    done: HashSet<Fingerprint>,
    order: VecDeque<(Instant, Fingerprint)>,
}

/// Whether a call came already.
#[derive(Debug)]
pub enum Begun<'a> {
    /// It is new, or was not done.
    New(Mark<'a>),
    /// It is being acted on, and may yet fail.
    UnderWay,
    /// It was done.
    Done,
}

/// A call that is being acted on. It may come again once this is dropped, unless it was done.
#[derive(Debug)]
pub struct Mark<'a> {
    replays: &'a Replays,
    fingerprint: Fingerprint,
}

impl Replays {
    /// Remembers calls for so long; no time remembers none.
    pub fn new(window: Duration) -> Self {
        Self {
            window,
            calls: Mutex::default(),
        }
    }

    /// Begins a call to a Receiver, known by its UID.
    pub fn begin(&self, receiver: &str, call: &[u8], now: Instant) -> Begun<'_> {
        let mut hash = Sha256::new();
        hash.update(receiver.as_bytes());
        hash.update([0]);
        hash.update(call);
        let fingerprint = hash.finalize().into();
        let mark = || Mark {
            replays: self,
            fingerprint,
        };
        if self.window.is_zero() {
            return Begun::New(mark());
        }
        let mut calls = self.calls();
        calls.drop_old(now, self.window);
        if calls.done.contains(&fingerprint) {
            Begun::Done
        } else if calls.under_way.insert(fingerprint) {
            Begun::New(mark())
        } else {
            Begun::UnderWay
        }
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mark<'_> {
    /// Remembers that the call was done.
    pub fn done(self, now: Instant) {
        let Replays { window, .. } = *self.replays;
        if window.is_zero() {
            return;
        }
        let mut calls = self.replays.calls();
        calls.drop_old(now, window);
        calls.done.insert(self.fingerprint);
        calls.order.push_back((now, self.fingerprint));
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        self.replays.calls().under_way.remove(&self.fingerprint);
    }
}

impl Calls {
    fn drop_old(&mut self, now: Instant, window: Duration) {
        while let Some((at, fingerprint)) = self.order.front() {
            let is_old = now.saturating_duration_since(*at) >= window;
            if !is_old && self.order.len() < MOST_CALLS {
                break;
            }
            self.done.remove(fingerprint);
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Does a call; false if it is not to be done.
    fn act(replays: &Replays, receiver: &str, call: &[u8], now: Instant) -> bool {
        match replays.begin(receiver, call, now) {
            Begun::New(mark) => {
                mark.done(now);
                true
            }
            Begun::UnderWay | Begun::Done => false,
        }
    }

    #[test]
    fn a_call_is_acted_on_once_in_a_while() {
        let (replays, start) = (Replays::new(MINUTE), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(act(&replays, "uid", b"push", at(0)));
        assert!(!act(&replays, "uid", b"push", at(59)));
        assert!(act(&replays, "uid", b"another", at(1)));
        assert!(act(&replays, "another", b"push", at(1)));
        assert!(act(&replays, "uid", b"push", at(60)));
        assert!(!act(&replays, "uid", b"push", at(61)));
    }

    #[test]
    fn a_call_that_was_not_done_may_come_again_once_it_has_ended() {
        let (replays, now) = (Replays::new(MINUTE), Instant::now());
        let Begun::New(mark) = replays.begin("uid", b"push", now) else {
            panic!("it is new");
        };
        // However long it takes.
        let later = now + 2 * MINUTE;
        assert!(matches!(replays.begin("uid", b"push", later), Begun::UnderWay));
        assert!(matches!(replays.begin("uid", b"push", later), Begun::UnderWay));
        drop(mark);
        let Begun::New(mark) = replays.begin("uid", b"push", later) else {
            panic!("it is new again");
        };
        mark.done(later);
        assert!(matches!(replays.begin("uid", b"push", later), Begun::Done));
        assert!(replays.calls().under_way.is_empty());
    }

    #[test]
    fn memory_is_bounded_and_may_be_none() {
        let (replays, now) = (Replays::new(MINUTE), Instant::now());
        for number in 0..MOST_CALLS as u32 + 5 {
            assert!(act(&replays, "uid", &number.to_be_bytes(), now));
        }
        let calls = replays.calls();
        assert_eq!((calls.done.len(), calls.order.len()), (MOST_CALLS, MOST_CALLS));
        let never = Replays::new(Duration::ZERO);
        let (first, second) = (never.begin("uid", b"a", now), never.begin("uid", b"a", now));
        assert!(matches!((first, second), (Begun::New(_), Begun::New(_))));
        assert!(act(&never, "uid", b"a", now) && act(&never, "uid", b"a", now));
    }
}
