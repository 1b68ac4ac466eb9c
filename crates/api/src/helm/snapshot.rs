//! The record of one revision of a release, to compare Helm's own record with.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{filled, plain_integer};

/// Snapshot of a revision of the release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// Version of the digest calculation.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Checksum of Helm's record of the revision, as `<algorithm>:<checksum>`.
    pub digest: String,

    /// Action that created the revision.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,

    /// Name of the release.
    pub name: String,

    /// Namespace of the release.
    pub namespace: String,

    /// Number of the revision.
    #[schemars(schema_with = "plain_integer")]
    pub version: i64,

    /// Helm status of the revision.
    pub status: String,

    /// Name of the chart.
    pub chart_name: String,

    /// Version of the chart.
    pub chart_version: String,

    /// Version of the application in the chart.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,

    /// Checksum of the values, as `<algorithm>:<checksum>`.
    pub config_digest: String,

    /// When the release was first deployed.
    pub first_deployed: Time,

    /// When this revision was deployed.
    pub last_deployed: Time,

    /// When the release was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Time>,

    /// Test results, by name. Empty if the chart has no tests, unset if tests were not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_hooks: Option<BTreeMap<String, TestHookStatus>>,

    /// Digest of the OCI artifact that the chart came from.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub oci_digest: Option<String>,
}

/// Result of a test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestHookStatus {
    /// Time at which the test was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_started: Option<Time>,

    /// Time at which the test completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_completed: Option<Time>,

    /// Helm phase of the test.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}
