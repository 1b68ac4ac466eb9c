//! How later revisions of a release are made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CrdsPolicy, ServerSideApplyMode, UpgradeStrategy};
use crate::meta::{Duration, is_false, is_zero, plain_integer};

/// How Helm upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// How long one operation of Helm may take. If not set, it is the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// What follows after a failure, and whether it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<UpgradeStrategy>,

    /// What is done when upgrading fails. If not set, nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<UpgradeRemediation>,

    /// Whether objects that are there already, and belong to no release, make it fail.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_take_ownership: bool,

    /// Whether not to wait until the objects are ready.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait: bool,

    /// Whether not to wait until Jobs are complete.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait_for_jobs: bool,

    /// Whether hooks are left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_hooks: bool,

    /// Whether the objects are not validated against the cluster's OpenAPI schema.
    #[serde(
        rename = "disableOpenAPIValidation",
        default,
        skip_serializing_if = "is_false"
    )]
    pub disable_open_api_validation: bool,

    /// Whether the values are not validated against the chart's JSON schema.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_schema_validation: bool,

    /// Whether objects are replaced, not patched. It means nothing if the server applies them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,

    /// Whether the values of the last revision are kept, and those of the spec merged into them. The outcome
    /// then depends on what was released before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub preserve_values: bool,

    /// Whether objects that a failed upgrade created are deleted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cleanup_on_fail: bool,

    /// What is done with the chart's CRDs: nothing (Skip, the default), those that are missing are created
    /// (Create), or those that are there are replaced too (CreateReplace).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdsPolicy>,

    /// Whether objects are applied by the server: enabled, disabled, or as for the last revision (auto, the
    /// default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyMode>,

    /// What is done when the chart has another name than before: the release is installed anew (Reinstall, the
    /// default) or upgraded all the same (InPlaceUpdate).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_name_change_strategy: Option<ChartNameChangeStrategy>,
}

/// What is done when the chart has another name than before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChartNameChangeStrategy {
    /// The release is upgraded all the same.
    InPlaceUpdate,
    /// The release is uninstalled and installed anew.
    #[default]
    Reinstall,
}

/// What is done when upgrading fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeRemediation {
    /// How often it is tried again, with a remediation before each time. Without end if negative.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "plain_integer")]
    pub retries: i64,

    /// Whether failing tests are no failure. If not set, it is as the tests of the release say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_test_failures: Option<bool>,

    /// Whether the last failure is remedied too. If not set, it is if there are retries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediate_last_failure: Option<bool>,

    /// Whether a failure is remedied by a rollback, which is the default, or by an uninstall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RemediationStrategy>,
}

/// How a failed upgrade is remedied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RemediationStrategy {
    /// The last good revision is brought back.
    #[default]
    Rollback,
    /// The release is removed.
    Uninstall,
}
