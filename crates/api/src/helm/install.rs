//! How the first revision of a release is made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CrdsPolicy, InstallStrategy};
use crate::meta::{Duration, is_false, is_zero, plain_integer};

/// How Helm installs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Install {
    /// Timeout of each Helm operation. Defaults to the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Strategy after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<InstallStrategy>,

    /// Remediation of a failed install. By default, nothing is done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<InstallRemediation>,

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

    /// Allow reuse of the name of a deleted release that is still in the history.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace: bool,

    /// Do not install CRDs. Deprecated: use crds.
    #[serde(rename = "skipCRDs", default, skip_serializing_if = "is_false")]
    pub skip_crds: bool,

    /// Policy for the chart's CRDs: Skip leaves them alone, Create (the default) creates missing ones,
    /// CreateReplace also replaces existing ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdsPolicy>,

    /// Create the target namespace if it does not exist. It is not deleted with the release.
    #[serde(default, skip_serializing_if = "is_false")]
    pub create_namespace: bool,

    /// Use server-side apply. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<bool>,
}

/// Remediation of a failed install.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallRemediation {
    /// Number of retries, each after an uninstall. A negative value means no limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "plain_integer")]
    pub retries: i64,

    /// Ignore failures of tests. Defaults to test.ignoreFailures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_test_failures: Option<bool>,

    /// Also remediate the last failure, when no retries remain. Defaults to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediate_last_failure: Option<bool>,
}
