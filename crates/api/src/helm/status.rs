//! The status of a HelmRelease.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Snapshot;
use crate::{
    kustomize::ResourceInventory,
    meta::{Condition, Duration, filled, has_conditions, is_zero, plain_integer},
};

/// What was released, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmReleaseStatus {
    /// The generation of the spec that was reconciled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Checksum of the post-renderers of the last release that succeeded.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_post_renderers_digest: Option<String>,

    /// Checksum of the common metadata of the last release that succeeded.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_common_metadata_digest: Option<String>,

    /// The generation of the spec that was tried last.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub last_attempted_generation: i64,

    /// What is known about this release, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The HelmChart that was created for this release, as `<namespace>/<name>`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub helm_chart: Option<String>,

    /// The namespace that Helm keeps its records of the release in.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub storage_namespace: Option<String>,

    /// The revisions of the release, newest first, back to the last that succeeded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Snapshot>,

    /// The objects of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,

    /// The action that was tried last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_release_action: Option<ReleaseAction>,

    /// How long the action that was tried last took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_release_action_duration: Option<Duration>,

    /// How often the present spec failed, whatever the reason.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: i64,

    /// How often installing the present spec failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub install_failures: i64,

    /// How often upgrading to the present spec failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub upgrade_failures: i64,

    /// The version of the chart that was tried last. If it came from an OCIRepository, the first 12 digits of its
    /// digest follow.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,

    /// The digest of the chart that was tried last, if it came from an OCIRepository.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision_digest: Option<String>,

    /// SHA-1 of the values that were tried last. Deprecated in favour of lastAttemptedConfigDigest.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_values_checksum: Option<String>,

    /// The newest revision that succeeded. Deprecated in favour of history.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "plain_integer")]
    pub last_release_revision: i64,

    /// Checksum of the values that were tried last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_attempted_config_digest: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/forceAt that was handled last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_force_at: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/resetAt that was handled last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reset_at: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
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
