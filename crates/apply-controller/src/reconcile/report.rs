//! Metadata of a run in `status.history`, beside the revision. Pure.
//!
//! Each report has a key of its own, and is bounded: a status is read by all who watch.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube_apply::{Applied, changes};

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

/// Keeps what an earlier run with the same outcome reported and this one has nothing to say about.
pub fn carry_over(earlier: &Reports, reports: &mut Reports) {
    for key in [CHANGES, BUILT, APPLIED] {
        if let Some(report) = earlier.get(key) {
            reports.entry(key.to_owned()).or_insert_with(|| report.clone());
        }
    }
}
