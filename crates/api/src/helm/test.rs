//! How the tests of a chart are run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Duration, is_false};

/// How Helm tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Test {
    /// Whether tests are run after each install and upgrade.
    #[serde(default, skip_serializing_if = "is_false")]
    pub enable: bool,

    /// How long one operation of Helm may take. If not set, it is the timeout of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Whether failing tests are no failure. Install and upgrade can say otherwise for themselves.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_failures: bool,

    /// Which tests are run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filters: Vec<TestFilter>,
}

/// Says whether a test is run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TestFilter {
    /// Name of the test.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Whether the test is left out.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exclude: bool,
}
