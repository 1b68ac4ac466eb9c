//! Drift settings: what to do when the cluster differs from the release.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::IgnoreRule;

/// Detection and correction of differences between the release and the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftDetection {
    /// Whether differences are corrected (enabled), reported (warn), or not looked for (disabled, the default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<DriftDetectionMode>,

    /// Fields that are excluded from drift detection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<IgnoreRule>,
}

impl DriftDetection {
    /// The drift mode, or its default.
    #[must_use]
    pub fn mode(&self) -> DriftDetectionMode {
        self.mode.unwrap_or_default()
    }
}

/// How drift is handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DriftDetectionMode {
    /// They are corrected.
    Enabled,
    /// They are reported.
    Warn,
    /// They are not looked for.
    #[default]
    Disabled,
}
