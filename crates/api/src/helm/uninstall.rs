//! How a release is removed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Duration, is_false};

/// How Helm uninstalls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Uninstall {
    /// Timeout of each Helm operation. Defaults to the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Do not run hooks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_hooks: bool,

    /// Keep the release history.
    #[serde(default, skip_serializing_if = "is_false")]
    pub keep_history: bool,

    /// Do not wait until the objects are gone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait: bool,

    /// Propagation policy of the deletion: how objects owned by the deleted ones are handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "background"))]
    pub deletion_propagation: Option<DeletionPropagation>,
}

/// Deletion propagation policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeletionPropagation {
    /// They are deleted afterwards.
    #[default]
    Background,
    /// They are deleted first.
    Foreground,
    /// They are left.
    Orphan,
}
