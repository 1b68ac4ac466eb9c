//! Metadata of a run in `status.history`, beside the revision. Pure.
//!
//! Each report has a key of its own, and is bounded: a status is read by all who watch.

use std::collections::BTreeMap;

use kube_apply::{Applied, changes};

/// Reports by key.
pub type Reports = BTreeMap<String, String>;

/// Which fields of which objects the newest run that changed anything has changed, from what to what.
pub const CHANGES: &str = "windlass.dev/changes";

/// Bytes of it.
const LONGEST: usize = 4096;

/// Tells what an apply changed in objects that were there before; None when that is nothing.
pub fn changes(applied: &Applied) -> Option<String> {
    let objects = applied
        .changes
        .iter()
        .map(|change| (change.id.to_string(), &change.fields));
    Some(changes::report(objects, LONGEST)).filter(|report| !report.is_empty())
}

/// Keeps what an earlier run with the same outcome reported and this one has nothing to say about.
pub fn carry_over(earlier: &Reports, reports: &mut Reports) {
    if let Some(changes) = earlier.get(CHANGES) {
        reports
            .entry(CHANGES.to_owned())
            .or_insert_with(|| changes.clone());
    }
}
