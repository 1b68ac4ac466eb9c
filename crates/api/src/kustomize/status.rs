//! The status of a Kustomization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ResourceInventory;
use crate::meta::{Condition, Snapshot, filled, has_conditions};

/// What was applied, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationStatus {
    /// The generation of the spec that was reconciled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is known about this Kustomization, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The revision of the source that was applied with success last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,

    /// Where the revision that was applied with success last comes from, if the artifact says so: for an OCI
    /// artifact the value of its annotation org.opencontainers.image.revision.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_applied_origin_revision: Option<String>,

    /// The revision of the source that was tried last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,

    /// The objects that were applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,

    /// The last few distinct outcomes, most recent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Snapshot>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(KustomizationStatus);
