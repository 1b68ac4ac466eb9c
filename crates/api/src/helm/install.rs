//! How the first revision of a release is made.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CrdsPolicy, InstallStrategy};
use crate::meta::{Duration, is_false, is_zero, plain_integer};

/// How Helm installs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Install {
    /// How long one operation of Helm may take. If not set, it is the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// What follows after a failure, and whether it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<InstallStrategy>,

    /// What is done when installing fails. If not set, nothing is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<InstallRemediation>,

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

    /// Whether the name of a deleted release that is still in the history may be used again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub replace: bool,

    /// Whether the chart's CRDs are left out. Deprecated in favour of crds.
    #[serde(rename = "skipCRDs", default, skip_serializing_if = "is_false")]
    pub skip_crds: bool,

    /// What is done with the chart's CRDs: nothing (Skip), those that are missing are created (Create, the
    /// default), or those that are there are replaced too (CreateReplace).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crds: Option<CrdsPolicy>,

    /// Whether the target namespace is created if it is not there. It is not deleted with the release.
    #[serde(default, skip_serializing_if = "is_false")]
    pub create_namespace: bool,

    /// Whether objects are applied by the server. If not set, they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<bool>,
}

/// What is done when installing fails.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstallRemediation {
    /// How often it is tried again, with an uninstall before each time. Without end if negative.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(schema_with = "plain_integer")]
    pub retries: i64,

    /// Whether failing tests are no failure. If not set, it is as the tests of the release say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_test_failures: Option<bool>,

    /// Whether the last failure is followed by an uninstall too. If not set, it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediate_last_failure: Option<bool>,
}
