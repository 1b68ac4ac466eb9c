//! Which artifacts have been kept long enough.

use std::time::Duration;

use jiff::Timestamp;

use super::error::Result;
use super::record::Stored;
use super::state::{Inner, Options};

/// Summary of a garbage collection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Collected {
    /// Artifacts.
    pub records: usize,
    /// Bytes of the files that no one needs without them.
    pub bytes: u64,
}

pub(super) fn collect(inner: &Inner, now: Timestamp) -> Result<Collected> {
    let mut state = inner.lock();
    let mut garbage = Vec::new();
    for stored in state.objects.values_mut() {
        let times: Vec<Timestamp> = stored.iter().map(|stored| stored.stored_at).collect();
        garbage.extend(stored.drain(..expendable(&times, now, &inner.options)));
    }
    let before = state.references.bytes();
    let mut collected = Collected::default();
    let mut failure = None;
    for Stored { record, .. } in garbage {
        match inner.forget(&mut state, &record) {
            Ok(()) => collected.records += 1,
            Err(error) => failure = Some(error),
        }
    }
    collected.bytes = before - state.references.bytes();
    failure.map_or(Ok(collected), Err)
}

/// How many of an object's artifacts, whose times of storing are given oldest first, can go. Never the last.
fn expendable(stored_at: &[Timestamp], now: Timestamp, options: &Options) -> usize {
    let expired = |pair: &[Timestamp]| age(pair[1], now) > options.retention_ttl;
    let by_age = stored_at.windows(2).take_while(|pair| expired(pair)).count();
    let by_count = stored_at.len().saturating_sub(options.retention_records.max(1));
    by_age.max(by_count)
}

/// Zero for a time that lies ahead, which a clock that was set back makes.
fn age(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(time)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_surplus_artifacts_go_and_the_current_one_stays() {
        // (seconds at which each was stored, retention time, retention count) at second 1000 -> how many go
        let table: &[(&[i64], u64, usize, usize)] = &[
            (&[], 60, 2, 0),
            (&[0], 60, 2, 0),
            (&[0], 0, 0, 0),
            (&[0, 100], 60, 2, 1),
            (&[0, 950], 60, 2, 0),
            (&[0, 940], 60, 2, 0),
            (&[0, 939], 60, 2, 1),
            (&[0, 990, 995], 60, 2, 1),
            (&[0, 990, 995], 60, 3, 0),
            (&[0, 100, 200, 999], 60, 10, 2),
            (&[0, 100, 200, 999], 10_000, 10, 0),
            (&[990, 991, 992, 993], 60, 1, 3),
            (&[990, 991, 992, 993], 60, 0, 3),
            // A clock that was set back: the future is young.
            (&[0, 2000], 60, 2, 0),
            (&[0, 2000, 100], 60, 3, 0),
        ];
        for (stored_at, ttl, retention_records, expected) in table {
            let times: Vec<_> = stored_at
                .iter()
                .map(|second| Timestamp::from_second(*second).unwrap())
                .collect();
            let options = Options {
                retention_ttl: Duration::from_secs(*ttl),
                retention_records: *retention_records,
            };
            let actual = expendable(&times, Timestamp::from_second(1000).unwrap(), &options);
            assert_eq!(
                actual, *expected,
                "{stored_at:?} ttl {ttl} records {retention_records}"
            );
        }
    }
}
