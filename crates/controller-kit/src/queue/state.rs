//! State of the queue for each key: pure bookkeeping, with the time as an argument.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use tokio::time::Instant;

use super::lanes::{Lane, Lanes};
use crate::metrics::QueueSnapshot;

/// A deadline; the number keeps deadlines of the same moment apart and in order.
type Deadline = (Instant, u64);

pub(super) struct State<K> {
    /// Keys that wait for a worker.
    ready: Lanes<K>,
    /// Every key of which something is known.
    entries: HashMap<K, Entry>,
    /// How many keys of each lane are being worked on; none of them is 0.
    running: HashMap<String, usize>,
    deadlines: BTreeMap<Deadline, K>,
    next_number: u64,
}

#[derive(Default)]
struct Entry {
    /// Since when work is asked for that has not begun.
    waiting_since: Option<Instant>,
    running_since: Option<Instant>,
    deadline: Option<Deadline>,
    failures: u32,
}

impl Entry {
    fn is_blank(&self) -> bool {
        self.waiting_since.is_none()
            && self.running_since.is_none()
            && self.deadline.is_none()
            && self.failures == 0
    }
}

impl<K> Default for State<K> {
    fn default() -> Self {
        Self {
            ready: Lanes::default(),
            entries: HashMap::new(),
            running: HashMap::new(),
            deadlines: BTreeMap::new(),
            next_number: 0,
        }
    }
}

impl<K> State<K> {
    pub(super) fn snapshot(&self, now: Instant) -> QueueSnapshot {
        let running = self.entries.values().filter_map(|entry| entry.running_since);
        let ages: Vec<Duration> = running
            .map(|since| now.saturating_duration_since(since))
            .collect();
        QueueSnapshot {
            depth: self.ready.len(),
            active: ages.len(),
            unfinished: ages.iter().sum(),
            longest: ages.iter().max().copied().unwrap_or_default(),
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first_key_value().map(|((at, _), _)| *at)
    }
}

impl<K: Hash + Eq + Clone + Lane> State<K> {
    /// Asks for work on the key; false if that was asked already.
    pub(super) fn add(&mut self, key: K, now: Instant) -> bool {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.waiting_since.is_some() {
            return false;
        }
        entry.waiting_since = Some(now);
        if entry.running_since.is_none() {
            self.ready.push(key);
        }
        true
    }

    /// Asks for work on the key at a time, unless it has an earlier deadline.
    pub(super) fn add_at(&mut self, key: K, at: Instant) {
        let entry = self.entries.entry(key.clone()).or_default();
        match entry.deadline {
            Some((earlier, _)) if earlier <= at => return,
            Some(later) => drop(self.deadlines.remove(&later)),
            None => {}
        }
        let deadline = (at, self.next_number);
        self.next_number += 1;
        entry.deadline = Some(deadline);
        self.deadlines.insert(deadline, key);
    }

    /// Adds the keys whose deadline has come; gives the number of those that were not waiting yet.
    pub(super) fn promote(&mut self, now: Instant) -> usize {
        let mut added = 0;
        while let Some(first) = self.deadlines.first_entry()
            && first.key().0 <= now
        {
            let key = first.remove();
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.deadline = None;
            }
            added += usize::from(self.add(key, now));
        }
        added
    }

    /// Takes the key whose turn it is, for work; also gives how long it waited.
    pub(super) fn take(&mut self, now: Instant) -> Option<(K, Duration)> {
        let key = self.ready.pop(|_| true)?;
        Some(self.begin(key, now))
    }

    /// Takes the next key of a lane of which nothing is worked on while another has several: a tenant whose runs are long does
    /// not hold up the others.
    pub(super) fn take_held_up(&mut self, now: Instant) -> Option<(K, Duration)> {
        let running = &self.running;
        if !running.values().any(|running| *running > 1) {
            return None;
        }
        let key = self.ready.pop(|lane| !running.contains_key(lane))?;
        Some(self.begin(key, now))
    }

    fn begin(&mut self, key: K, now: Instant) -> (K, Duration) {
        *self.running.entry(key.lane().to_owned()).or_default() += 1;
        let entry = self.entries.entry(key.clone()).or_default();
        let waited = entry
            .waiting_since
            .take()
            .map(|since| now.saturating_duration_since(since));
        entry.running_since = Some(now);
        if let Some(deadline) = entry.deadline.take() {
            self.deadlines.remove(&deadline);
        }
        (key, waited.unwrap_or_default())
    }

    /// Ends work on the key, and queues it if it was added meanwhile; gives how long the work took.
    pub(super) fn finish(&mut self, key: &K, now: Instant) -> Duration {
        let Some(entry) = self.entries.get_mut(key) else {
            return Duration::ZERO;
        };
        let began = entry.running_since.take();
        if began.is_some()
            && let Some(running) = self.running.get_mut(key.lane())
        {
            *running -= 1;
            if *running == 0 {
                self.running.remove(key.lane());
            }
        }
        if entry.waiting_since.is_some() {
            self.ready.push(key.clone());
        }
        self.drop_blank(key);
        began
            .map(|since| now.saturating_duration_since(since))
            .unwrap_or_default()
    }

    /// Counts a failure; gives the number of those that went before.
    pub(super) fn fail(&mut self, key: K) -> u32 {
        let entry = self.entries.entry(key).or_default();
        let earlier = entry.failures;
        entry.failures = earlier.saturating_add(1);
        earlier
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.failures = 0;
            self.drop_blank(key);
        }
    }

    pub(super) fn failures(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    pub(super) fn is_waiting(&self, key: &K) -> bool {
        self.entries
            .get(key)
            .is_some_and(|entry| entry.waiting_since.is_some())
    }

    /// Keys come and go with objects: what nothing is known of any more takes no memory.
    fn drop_blank(&mut self, key: &K) {
        if self.entries.get(key).is_some_and(Entry::is_blank) {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ObjectKey;

    fn taken(state: &mut State<&'static str>, now: Instant) -> Vec<&'static str> {
        std::iter::from_fn(|| state.take(now).map(|(key, _)| key)).collect()
    }

    #[test]
    fn keys_come_in_the_order_in_which_they_were_added() {
        let (mut state, now) = (State::default(), Instant::now());
        for key in ["a", "b", "a", "c", "b"] {
            state.add(key, now);
        }
        assert_eq!(taken(&mut state, now), ["a", "b", "c"]);
    }

    #[test]
    fn a_key_added_while_it_runs_comes_once_more_at_the_end_of_the_line() {
        let (mut state, now) = (State::default(), Instant::now());
        state.add("a", now);
        assert_eq!(taken(&mut state, now), ["a"]);
        assert!(state.add("a", now));
        assert!(!state.add("a", now));
        state.add("b", now);
        assert_eq!(taken(&mut state, now), ["b"], "a runs still");
        state.finish(&"a", now);
        assert_eq!(taken(&mut state, now), ["a"]);
        state.finish(&"a", now);
        assert_eq!(taken(&mut state, now), [""; 0]);
    }

    #[test]
    fn the_earliest_deadline_holds() {
        let (mut state, now) = (State::default(), Instant::now());
        let seconds = |seconds| now + Duration::from_secs(seconds);
        state.add_at("a", seconds(5));
        state.add_at("a", seconds(3));
        state.add_at("a", seconds(9));
        assert_eq!(state.next_deadline(), Some(seconds(3)));
        assert_eq!(state.promote(seconds(2)), 0);
        assert_eq!(state.promote(seconds(3)), 1);
        assert_eq!(state.next_deadline(), None);
        assert_eq!(taken(&mut state, seconds(3)), ["a"]);
    }

    #[test]
    fn a_run_takes_the_place_of_deadlines_set_before_it() {
        let (mut state, now) = (State::default(), Instant::now());
        let seconds = |seconds| now + Duration::from_secs(seconds);
        state.add_at("a", seconds(5));
        state.add("a", now);
        assert_eq!(taken(&mut state, now), ["a"]);
        assert_eq!(state.next_deadline(), None);
        state.add_at("a", seconds(7)); // set while it runs, so it holds
        state.finish(&"a", now);
        assert_eq!(state.next_deadline(), Some(seconds(7)));
    }

    #[test]
    fn deadlines_of_one_moment_keep_their_order() {
        let (mut state, now) = (State::default(), Instant::now());
        for key in ["c", "a", "b"] {
            state.add_at(key, now);
        }
        assert_eq!(state.promote(now), 3);
        assert_eq!(taken(&mut state, now), ["c", "a", "b"]);
    }

    #[test]
    fn nothing_is_kept_of_a_key_that_is_done() {
        let (mut state, now) = (State::default(), Instant::now());
        state.add("a", now);
        state.fail("a");
        taken(&mut state, now);
        state.finish(&"a", now);
        assert_eq!(state.failures(&"a"), 1, "failures outlive a run");
        state.forget(&"a");
        assert!(
            state.entries.is_empty()
                && state.running.is_empty()
                && state.deadlines.is_empty()
                && state.ready.is_empty()
        );
    }

    #[test]
    fn a_tenant_that_fills_the_workers_does_not_hold_up_the_others() {
        let (mut state, now) = (State::default(), Instant::now());
        let key = |namespace: &str, name: &str| ObjectKey::new(namespace, name);
        (0..5).for_each(|number| assert!(state.add(key("large", &number.to_string()), now)));
        let held_up = |state: &mut State<ObjectKey>| state.take_held_up(now).map(|(key, _)| key.to_string());
        state.take(now);
        state.add(key("a", "1"), now);
        state.add(key("b", "1"), now);
        assert_eq!(held_up(&mut state), None, "nobody has more than one");
        let taken = |state: &mut State<ObjectKey>| state.take(now).map(|(key, _)| key.to_string());
        assert_eq!(taken(&mut state).as_deref(), Some("large/1"));
        assert_eq!(held_up(&mut state).as_deref(), Some("a/1"));
        assert_eq!(held_up(&mut state).as_deref(), Some("b/1"));
        assert_eq!(
            held_up(&mut state),
            None,
            "what is left is of the lane that has several"
        );
        assert_eq!(taken(&mut state).as_deref(), Some("large/2"));
    }

    #[test]
    fn the_snapshot_tells_what_waits_and_what_runs() {
        let (mut state, now) = (State::default(), Instant::now());
        let seconds = |seconds| now + Duration::from_secs(seconds);
        state.add("a", now);
        state.take(now);
        state.add("b", now);
        state.take(seconds(2));
        state.add("c", now);
        let expected = QueueSnapshot {
            depth: 1,
            active: 2,
            unfinished: Duration::from_secs(8),
            longest: Duration::from_secs(5),
        };
        assert_eq!(state.snapshot(seconds(5)), expected);
    }
}
