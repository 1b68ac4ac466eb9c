//! The status of a HelmRelease.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::{
    kustomize::ResourceInventory,
    meta::{Condition, Duration, filled, has_conditions, is_zero, plain_integer},
};

/// Observed state of the release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseStatus {
    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Digest of the post-renderers of the last successful release.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_post_renderers_digest: Option<String>,

    /// Digest of the common metadata of the last successful release.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_common_metadata_digest: Option<String>,

    /// Generation of the spec of the last attempt.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_attempted_generation: i64,

    /// Conditions of this release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The HelmChart that was created for this release, as `<namespace>/<name>`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub helm_chart: Option<String>,

    /// Namespace of the Helm storage.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub storage_namespace: Option<String>,

    /// Revisions of the release, newest first, back to the last successful one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Snapshot>,

    /// The objects of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,

    /// The action that was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_release_action: Option<ReleaseAction>,

    /// Duration of the last attempted action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_release_action_duration: Option<Duration>,

    /// Number of failures of the current spec.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: i64,

    /// Number of failed installs of the current spec.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub install_failures: i64,

    /// Number of failed upgrades to the current spec.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub upgrade_failures: i64,

    /// Chart version of the last attempt. For charts from an OCIRepository, followed by the first 12 digits of the
    /// digest.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,

    /// Chart digest of the last attempt, for charts from an OCIRepository.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision_digest: Option<String>,

    /// SHA-1 of the values of the last attempt. Deprecated: use lastAttemptedConfigDigest.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_values_checksum: Option<String>,

    /// Latest successful revision. Deprecated: use history.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "plain_integer")]
    pub last_release_revision: i64,

    /// Digest of the values of the last attempt.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_config_digest: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/forceAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_force_at: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/resetAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reset_at: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// The actions that make a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReleaseAction {
    /// The first revision.
    Install,
    /// Every later one.
    Upgrade,
}

has_conditions!(HelmReleaseStatus);
