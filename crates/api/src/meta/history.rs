//! History of reconciliations: the last few distinct outcomes, most recent first.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Duration;

/// How many snapshots a history keeps.
pub const HISTORY_LIMIT: usize = 5;

/// Reconciliation result of a set of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Checksum of the objects, as `<algorithm>:<hex>`.
    pub digest: String,

    /// Time of the first reconciliation with this result.
    pub first_reconciled: Time,

    /// Time of the last reconciliation with this result.
    pub last_reconciled: Time,

    /// Duration of the last reconciliation with this result.
    pub last_reconciled_duration: Duration,

    /// Result, as the reason of the Ready condition.
    pub last_reconciled_status: String,

    /// Number of reconciliations with this result.
    pub total_reconciliations: i64,

    /// Additional metadata, such as the revision of the source.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// Puts the newest outcome at the front of the history.
///
/// A snapshot of the same digest and status is taken out and counted on; otherwise the newest starts at one. The
/// oldest beyond [`HISTORY_LIMIT`] are dropped. Only `digest`, `last_reconciled`, `last_reconciled_duration`,
/// `last_reconciled_status` and `metadata` of `newest` are used if the outcome is known.
pub fn upsert_snapshot(history: &mut Vec<Snapshot>, newest: Snapshot) {
    let known = history.iter().position(|snapshot| {
        snapshot.digest == newest.digest && snapshot.last_reconciled_status == newest.last_reconciled_status
    });
    let front = match known.map(|position| history.remove(position)) {
        Some(earlier) => Snapshot {
            first_reconciled: earlier.first_reconciled,
            total_reconciliations: earlier.total_reconciliations.saturating_add(1),
            ..newest
        },
        None => newest,
    };
    history.insert(0, front);
    history.truncate(HISTORY_LIMIT);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Time {
        Time(k8s_openapi::jiff::Timestamp::from_second(second).unwrap())
    }

    fn snapshot(digest: &str, status: &str, second: i64) -> Snapshot {
        Snapshot {
            digest: digest.to_owned(),
            first_reconciled: at(second),
            last_reconciled: at(second),
            last_reconciled_duration: Duration::from_secs(1),
            last_reconciled_status: status.to_owned(),
            total_reconciliations: 1,
            metadata: BTreeMap::new(),
        }
    }

    #[test]
    fn a_known_outcome_is_counted_and_comes_to_the_front() {
        let mut history = vec![snapshot("b", "Failed", 2), snapshot("a", "Succeeded", 1)];
        upsert_snapshot(&mut history, snapshot("a", "Succeeded", 3));
        let front = Snapshot {
            first_reconciled: at(1),
            total_reconciliations: 2,
            ..snapshot("a", "Succeeded", 3)
        };
        assert_eq!(history, [front, snapshot("b", "Failed", 2)]);
    }

    #[test]
    fn another_outcome_of_the_same_objects_is_another_snapshot_and_the_oldest_is_dropped() {
        let mut history = Vec::new();
        for second in 0..6 {
            upsert_snapshot(&mut history, snapshot("a", &format!("Reason{second}"), second));
        }
        let seconds: Vec<_> = history
            .iter()
            .map(|snapshot| snapshot.last_reconciled.0.as_second())
            .collect();
        assert_eq!(seconds, [5, 4, 3, 2, 1]);
    }
}
