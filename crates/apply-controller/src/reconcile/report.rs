//! Metadata of a run in `status.history`, beside the revision. Pure.
//!
//! Each report has a key of its own, and is bounded: a status is read by all who watch.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use delivery_statement::FETCHED;
use jiff::Timestamp;
use kube_apply::{Applied, changes};
use remote_base::Fetched;

/// Reports by key.
pub type Reports = BTreeMap<String, String>;

/// Which fields of which objects the newest run that changed anything has changed, from what to what.
pub const CHANGES: &str = "windlass.dev/changes";

/// When the newest run that changed anything had built, and had applied, in milliseconds: how long each step of a delivery took is
/// told by these beside the times of the source and of the outcome.
pub const BUILT: &str = "windlass.dev/built";
/// See [`BUILT`].
pub const APPLIED: &str = "windlass.dev/applied";

/// Bytes of the changes.
const LONGEST: usize = 4096;

/// Bytes of what was fetched.
const LONGEST_FETCHED: usize = 1024;

/// Tells what an apply changed in objects that were there before; None when that is nothing.
pub fn changes(applied: &Applied) -> Option<String> {
    let objects = applied
        .changes
        .iter()
        .map(|change| (change.id.to_string(), &change.fields));
    Some(changes::report(objects, LONGEST)).filter(|report| !report.is_empty())
}

/// The reports of a run that has applied, which were built at a time.
pub fn of_apply(applied: &Applied, changes: Option<String>, built: Timestamp, now: Timestamp) -> Reports {
    let mut reports = Reports::new();
    reports.extend(changes.map(|text| (CHANGES.to_owned(), text)));
    if applied.changed().next().is_some() {
        reports.insert(BUILT.to_owned(), milliseconds(built));
        reports.insert(APPLIED.to_owned(), milliseconds(now));
    }
    reports
}

fn milliseconds(time: Timestamp) -> String {
    format!("{time:.3}")
}

/// What was fetched from elsewhere for a run: an address and its revision each. None if nothing was.
pub fn of_fetched(fetched: &Fetched) -> Option<(String, String)> {
    let mut text = String::new();
    for (at, (address, revision)) in fetched.iter().enumerate() {
        let line = format!("{address} {revision}\n");
        if text.len() + line.len() > LONGEST_FETCHED {
            _ = writeln!(text, "and {} more", fetched.len() - at);
            break;
        }
        text.push_str(&line);
    }
    (!text.is_empty()).then(|| (FETCHED.to_owned(), text.trim_end().to_owned()))
}

/// Keeps what an earlier run with the same outcome reported and this one has nothing to say about.
pub fn carry_over(earlier: &Reports, reports: &mut Reports) {
    for key in [CHANGES, BUILT, APPLIED] {
        if let Some(report) = earlier.get(key) {
            reports.entry(key.to_owned()).or_insert_with(|| report.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fetched_is_told_within_bounds() {
        assert_eq!(of_fetched(&Fetched::new()), None);
        let fetched = |count: usize| -> Fetched {
            let one = |n| (format!("https://example.com/{n:03}"), "main@sha1:1".to_owned());
            (0..count).map(one).collect()
        };
        let text = |count| of_fetched(&fetched(count)).unwrap().1;
        assert_eq!(
            text(2),
            "https://example.com/000 main@sha1:1\nhttps://example.com/001 main@sha1:1"
        );
        assert!(text(64).len() < LONGEST_FETCHED + 20);
        assert!(text(64).ends_with("and 36 more"), "{}", text(64));
    }
}
