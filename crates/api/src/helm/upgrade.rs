//! How later revisions of a release are made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CrdsPolicy, ServerSideApplyMode, UpgradeStrategy};
use crate::meta::{Duration, is_false, is_zero, plain_integer};

/// How Helm upgrades.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    /// Timeout of each Helm operation. Defaults to the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Strategy after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<UpgradeStrategy>,

    /// Remediation of a failed upgrade. By default, nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<UpgradeRemediation>,

    /// Fail if objects exist already that do not belong to a release, instead of taking ownership of them.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_take_ownership: bool,

    /// Do not wait until the objects are ready.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait: bool,

    /// Do not wait until Jobs are complete.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_wait_for_jobs: bool,

    /// Do not run hooks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_hooks: bool,

    /// Do not validate the objects against the cluster's OpenAPI schema.
    #[serde(
        rename = "disableOpenAPIValidation",
        default,
        skip_serializing_if = "is_false"
    )]
    pub disable_open_api_validation: bool,

    /// Do not validate the values against the chart's JSON schema.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disable_schema_validation: bool,

    /// Replace objects instead of patching them. Ignored with server-side apply.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,

    /// Reuse the values of the last revision and merge the values of the spec into them. The result then depends on
    /// earlier revisions.
    #[serde(default, skip_serializing_if = "is_false")]
    pub preserve_values: bool,

    /// Delete objects that were created by a failed upgrade.
    #[serde(default, skip_serializing_if = "is_false")]
    pub cleanup_on_fail: bool,

    /// Policy for the chart's CRDs: Skip (the default) leaves them alone, Create creates missing ones,
    /// CreateReplace also replaces existing ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdsPolicy>,

    /// Whether objects are applied by the server: enabled, disabled, or as for the last revision (auto, the
    /// default).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApplyMode>,

    /// Strategy for a chart whose name has changed: Reinstall (the default) uninstalls and installs the
    /// release, InPlaceUpdate upgrades it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_name_change_strategy: Option<ChartNameChangeStrategy>,
}

/// Strategy for a chart whose name has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChartNameChangeStrategy {
    /// The release is upgraded all the same.
    InPlaceUpdate,
    /// The release is uninstalled and installed anew.
    #[default]
    Reinstall,
}

/// Remediation of a failed upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpgradeRemediation {
    /// Number of retries, each after a remediation. A negative value means no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "plain_integer")]
    pub retries: i64,

    /// Ignore failures of tests. Defaults to test.ignoreFailures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_test_failures: Option<bool>,

    /// Also remediate the last failure, when no retries remain. Defaults to true if retries is greater than 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediate_last_failure: Option<bool>,

    /// Whether a failure is remedied by a rollback, which is the default, or by an uninstall.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<RemediationStrategy>,
}

/// How a failed upgrade is remediated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RemediationStrategy {
    /// The last good revision is brought back.
    #[default]
    Rollback,
    /// The release is removed.
    Uninstall,
}
