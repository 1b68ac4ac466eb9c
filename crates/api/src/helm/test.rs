//! How the tests of a chart are run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Duration, is_false};

/// How Helm tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Test {
    /// Run tests after each install and upgrade.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enable: bool,

    /// Timeout of each Helm operation. Defaults to the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Ignore failures of tests. Can be overridden by the remediation of install and upgrade.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_failures: bool,

    /// Filters for tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<TestFilter>,
}

/// Filter for tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFilter {
    /// Name of the test.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Exclude the test.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclude: bool,
}
