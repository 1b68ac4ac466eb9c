//! What was reconciled before: the last few distinct outcomes, most recent first.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Duration;

/// How many snapshots a history keeps.
pub const HISTORY_LIMIT: usize = 5;

/// One outcome of reconciling one set of objects, and how often it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Checksum of the objects, as `<algorithm>:<hex>`.
    pub digest: String,

    /// When this outcome came for the first time.
    pub first_reconciled: Time,

    /// When this outcome came for the last time.
    pub last_reconciled: Time,

    /// How long the last reconciliation with this outcome took.
    pub last_reconciled_duration: Duration,

    /// The outcome, as the reason of the Ready condition.
    pub last_reconciled_status: String,

    /// How many reconciliations had this outcome.
    pub total_reconciliations: i64,

    /// More about this snapshot, such as the revision of the source.
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
