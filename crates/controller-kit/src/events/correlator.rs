//! Which of many occurrences are written, and how: the rules of client-go's event correlator.
//!
//! Pure, with the time as an argument. (1) Ten occurrences within ten minutes that differ in their message only
//! become one event that says so. (2) An occurrence that was written already, with the same annotations, raises a count. (3) About one
//! object 25 events of a type are written at once, and then one per five minutes.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::occurrence::Occurrence;

const AGGREGATE_AFTER: usize = 10;
const AGGREGATE_INTERVAL: Duration = Duration::from_secs(600);
const SPAM_BURST: f64 = 25.0;
const SPAM_REFILL: f64 = 1.0 / 300.0;
/// As in client-go. Keys are kept as hashes, so that long messages take no memory.
const MOST_ENTRIES: usize = 4096;

/// Event to write.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Write {
    /// Under this key the written event is remembered ([`Correlator::written`]).
    pub(super) key: u64,
    pub(super) occurrence: Occurrence,
    /// The event to raise the count of; None for a new one.
    pub(super) existing: Option<String>,
    pub(super) count: i32,
    pub(super) first: Timestamp,
}

#[derive(Default)]
pub(super) struct Correlator {
    hasher: RandomState,
    similar: Recent<Similar>,
    written: Recent<Written>,
    budgets: Recent<Budget>,
}

/// Occurrences that differ in their message only.
struct Similar {
    messages: HashSet<u64>,
    last: Instant,
}

struct Written {
    name: String,
    count: i32,
    first: Timestamp,
}

struct Budget {
    tokens: f64,
    since: Instant,
}

impl Correlator {
    /// Decides about an occurrence; None if it is not to be written.
    pub(super) fn correlate(
        &mut self,
        occurrence: Occurrence,
        now: Instant,
        time: Timestamp,
    ) -> Option<Write> {
        let spam_key = self
            .hasher
            .hash_one((subject(&occurrence), occurrence.event_type));
        let (key, occurrence) = self.aggregate(occurrence, now);
        let known = self.written.get_mut(key, now).map(|written| {
            // Counted even if the budget is spent, so that the next one that is written tells the truth.
            written.count = written.count.saturating_add(1);
            (written.name.clone(), written.count, written.first)
        });
        if !self.spend(spam_key, now) {
            return None;
        }
        let (existing, count, first) =
            known.map_or((None, 1, time), |(name, count, first)| (Some(name), count, first));
        Some(Write {
            key,
            occurrence,
            existing,
            count,
            first,
        })
    }

    /// Remembers what the API server has now.
    pub(super) fn written(&mut self, write: &Write, name: String, now: Instant) {
        self.written.insert(
            write.key,
            Written {
                name,
                count: write.count,
                first: write.first,
            },
            now,
        );
    }

    fn aggregate(&mut self, mut occurrence: Occurrence, now: Instant) -> (u64, Occurrence) {
        let group = self
            .hasher
            .hash_one((subject(&occurrence), occurrence.event_type, &occurrence.reason));
        let message = self.hasher.hash_one(&occurrence.message);
        // Unlike in client-go: who reads the annotations of an event, such as its revision, must not read those of an earlier occurrence.
        let combined = self.hasher.hash_one((group, &occurrence.annotations));
        let exact = self.hasher.hash_one((combined, message));
        let fresh = || Similar {
            messages: HashSet::new(),
            last: now,
        };
        let similar = self.similar.get_or_insert(group, now, fresh);
        if now.saturating_duration_since(similar.last) > AGGREGATE_INTERVAL {
            similar.messages.clear();
        }
        similar.last = now;
        similar.messages.insert(message);
        if similar.messages.len() < AGGREGATE_AFTER {
            return (exact, occurrence);
        }
        similar.messages.remove(&message);
        occurrence.message = format!("(combined from similar events): {}", occurrence.message);
        (combined, occurrence)
    }

    fn spend(&mut self, key: u64, now: Instant) -> bool {
        let budget = self.budgets.get_or_insert(key, now, || Budget {
            tokens: SPAM_BURST,
            since: now,
        });
        let elapsed = now.saturating_duration_since(budget.since).as_secs_f64();
        budget.tokens = (budget.tokens + elapsed * SPAM_REFILL).min(SPAM_BURST);
        budget.since = now;
        let enough = budget.tokens >= 1.0;
        if enough {
            budget.tokens -= 1.0;
        }
        enough
    }
}

/// Key of the object that an event is about.
fn subject(occurrence: &Occurrence) -> [&Option<String>; 5] {
    let object = &occurrence.object;
    [
        &object.api_version,
        &object.kind,
        &object.namespace,
        &object.name,
        &object.uid,
    ]
}

/// A map that forgets what was not used for longest.
struct Recent<V> {
    entries: HashMap<u64, (Instant, V)>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
        }
    }
}

impl<V> Recent<V> {
    fn get_mut(&mut self, key: u64, now: Instant) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(&key)?;
        *used = now;
        Some(value)
    }

    fn get_or_insert(&mut self, key: u64, now: Instant, fresh: impl FnOnce() -> V) -> &mut V {
        self.make_room(key);
        let (used, value) = self.entries.entry(key).or_insert_with(|| (now, fresh()));
        *used = now;
        value
    }

    fn insert(&mut self, key: u64, value: V, now: Instant) {
        self.make_room(key);
        self.entries.insert(key, (now, value));
    }

    /// Forgets the older half at once, so that a full map is not searched for each new entry.
    fn make_room(&mut self, key: u64) {
        if self.entries.len() < MOST_ENTRIES || self.entries.contains_key(&key) {
            return;
        }
        let mut times: Vec<Instant> = self.entries.values().map(|(used, _)| *used).collect();
        let middle = times.len() / 2;
        let (_, median, _) = times.select_nth_unstable(middle);
        let median = *median;
        self.entries.retain(|_, (used, _)| *used > median);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ObjectReference;

    use super::*;

    struct Bench {
        correlator: Correlator,
        start: Instant,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                correlator: Correlator::default(),
                start: Instant::now(),
            }
        }

        /// Runs one occurrence through, and pretends that the API server took what came out.
        fn at(&mut self, seconds: u64, object: &str, reason: &str, message: &str) -> Option<Write> {
            self.run(seconds, occurrence(object, reason, message))
        }

        /// The same with a revision.
        fn at_revision(&mut self, seconds: u64, revision: &str, message: &str) -> Option<Write> {
            let mut occurrence = occurrence("a", "Failed", message);
            occurrence
                .annotations
                .insert("revision".to_owned(), revision.to_owned());
            self.run(seconds, occurrence)
        }

        fn run(&mut self, seconds: u64, occurrence: Occurrence) -> Option<Write> {
            let now = self.start + Duration::from_secs(seconds);
            let time = Timestamp::from_second(i64::try_from(seconds).expect("small")).expect("in range");
            let object = occurrence.object.name.clone().unwrap_or_default();
            let write = self.correlator.correlate(occurrence, now, time)?;
            let name = write
                .existing
                .clone()
                .unwrap_or_else(|| format!("{object}.{seconds}"));
            self.correlator.written(&write, name, now);
            Some(write)
        }
    }

    fn occurrence(object: &str, reason: &str, message: &str) -> Occurrence {
        Occurrence {
            object: ObjectReference {
                name: Some(object.to_owned()),
                ..ObjectReference::default()
            },
            event_type: "Warning",
            reason: reason.to_owned(),
            message: message.to_owned(),
            annotations: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn a_repeat_raises_the_count_of_the_first() {
        let mut bench = Bench::new();
        let first = bench.at(1, "a", "Failed", "boom").expect("it is written");
        assert_eq!((first.existing, first.count), (None, 1));
        for (seconds, count) in [(2, 2), (3, 3)] {
            let write = bench.at(seconds, "a", "Failed", "boom").expect("it is written");
            assert_eq!((write.existing.as_deref(), write.count), (Some("a.1"), count));
            assert_eq!(write.first.as_second(), 1);
        }
    }

    #[test]
    fn other_objects_reasons_and_messages_are_other_events() {
        let mut bench = Bench::new();
        for (object, reason, message) in [("a", "R", "m"), ("b", "R", "m"), ("a", "Q", "m"), ("a", "R", "n")]
        {
            let write = bench.at(1, object, reason, message).expect("it is written");
            assert_eq!(
                (write.existing, write.count),
                (None, 1),
                "{object} {reason} {message}"
            );
        }
    }

    #[test]
    fn many_messages_of_one_reason_become_one_event() {
        let mut bench = Bench::new();
        for number in 1..10 {
            let write = bench
                .at(number, "a", "Failed", &format!("try {number}"))
                .expect("it is written");
            assert_eq!(write.occurrence.message, format!("try {number}"));
        }
        let tenth = bench.at(10, "a", "Failed", "try 10").expect("it is written");
        assert_eq!(tenth.occurrence.message, "(combined from similar events): try 10");
        assert_eq!((tenth.existing, tenth.count), (None, 1));
        let next = bench.at(11, "a", "Failed", "try 11").expect("it is written");
        assert_eq!((next.existing.as_deref(), next.count), (Some("a.10"), 2));
        let later = bench
            .at(11 + 601, "a", "Failed", "try 12")
            .expect("it is written");
        assert_eq!(
            later.occurrence.message, "try 12",
            "ten minutes of silence start over"
        );
    }

    #[test]
    fn the_annotations_of_an_event_are_those_of_all_that_it_counts() {
        let mut bench = Bench::new();
        for (seconds, revision, existing, count) in [
            (1, "1", None, 1),
            (2, "2", None, 1),
            (3, "2", Some("a.2"), 2),
            (4, "1", Some("a.1"), 2),
        ] {
            let write = bench
                .at_revision(seconds, revision, "boom")
                .expect("it is written");
            assert_eq!(
                (write.existing.as_deref(), write.count),
                (existing, count),
                "{seconds}"
            );
        }
        for number in 5..14 {
            bench.at_revision(number, "2", &format!("try {number}"));
        }
        for (seconds, revision, existing) in
            [(14, "2", Some("a.13")), (15, "3", None), (16, "3", Some("a.15"))]
        {
            let write = bench
                .at_revision(seconds, revision, &format!("try {seconds}"))
                .expect("it is written");
            assert!(write.occurrence.message.starts_with("(combined"), "{seconds}");
            assert_eq!(write.existing.as_deref(), existing, "{seconds}");
        }
    }

    #[test]
    fn an_object_that_fails_without_end_is_held_back() {
        let mut bench = Bench::new();
        let written = (0..100)
            .filter(|_| bench.at(1, "a", "Failed", "boom").is_some())
            .count();
        assert_eq!(written, 25);
        assert!(
            bench.at(1, "b", "Failed", "boom").is_some(),
            "others are not held back"
        );
        let write = bench
            .at(302, "a", "Failed", "boom")
            .expect("one per five minutes");
        assert_eq!(write.count, 101, "what was held back is counted");
        assert!(bench.at(303, "a", "Failed", "boom").is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let mut recent = Recent::default();
        let start = Instant::now();
        for number in 0..100_000_u64 {
            recent.insert(number, number, start + Duration::from_millis(number));
            assert!(recent.entries.len() <= MOST_ENTRIES);
        }
        assert_eq!(
            recent.get_mut(99_999, start),
            Some(&mut 99_999),
            "the newest is there"
        );
        assert_eq!(recent.get_mut(0, start), None);
    }
}
