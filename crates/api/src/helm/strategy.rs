//! Choices that several actions of Helm have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::Duration;

/// Strategy for a failed install.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.retryInterval) || self.name != 'RemediateOnFailure'",
    "message": ".retryInterval cannot be set when .name is 'RemediateOnFailure'",
}]))]
pub struct InstallStrategy {
    /// Whether a failure is remediated or retried.
    pub name: ActionStrategyName,

    /// Delay before a retry, for RetryOnFailure. Defaults to 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub retry_interval: Option<Duration>,
}

/// Strategy for a failed upgrade.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.retryInterval) || self.name == 'RetryOnFailure'",
    "message": ".retryInterval can only be set when .name is 'RetryOnFailure'",
}]))]
pub struct UpgradeStrategy {
    /// Whether a failure is remediated or retried.
    pub name: ActionStrategyName,

    /// Delay before a retry, for RetryOnFailure. Defaults to 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub retry_interval: Option<Duration>,
}

/// Strategy for a failed action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ActionStrategyName {
    /// The remediation.
    #[default]
    RemediateOnFailure,
    /// Another try.
    RetryOnFailure,
}

/// Upgrade policy for the CRDs of the chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CrdsPolicy {
    /// Nothing.
    Skip,
    /// Those that are missing are created.
    Create,
    /// Those that are missing are created, those that are there replaced.
    CreateReplace,
}

/// Use server-side apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ServerSideApplyMode {
    /// They are.
    Enabled,
    /// They are not.
    Disabled,
    /// As it was before.
    #[default]
    Auto,
}

/// How actions wait for objects to become ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitStrategy {
    /// poller (the default) evaluates the status of every object; legacy follows the rules of Helm 3.
    pub name: WaitStrategyName,
}

/// The ways to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitStrategyName {
    /// By the status of every object.
    #[default]
    Poller,
    /// By the rules of Helm 3.
    Legacy,
}
