//! `HelmRelease`: a chart, rendered with values and released.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ChartArtifactReference, ChartTemplate, DriftDetection, HelmReleaseStatus, Install, PostRenderStrategy,
    PostRenderer, Rollback, Test, Uninstall, Upgrade, WaitStrategy,
};
use crate::meta::{
    CommonMetadata, CustomHealthCheck, DependencyReference, Duration, KubeConfigReference, ValuesReference,
    delivers, filled, is_false, plain_integer, status_object,
};

/// How long one operation of Helm may take if the spec does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);
/// How many revisions of a release Helm keeps if the spec does not say.
const DEFAULT_MAX_HISTORY: i64 = 5;

/// Specification of the release.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "helm.toolkit.fluxcd.io",
    version = "v2",
    kind = "HelmRelease",
    plural = "helmreleases",
    namespaced,
    status = "HelmReleaseStatus",
    shortname = "hr",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-appliers",
    doc = "A Helm chart that is released to a cluster.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.chart) && !has(self.chartRef)) || (!has(self.chart) && has(self.chartRef))",
    "message": "either chart or chartRef must be set",
}]))]
pub struct HelmReleaseSpec {
    /// The HelmChart to create for this release. Excludes chartRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart: Option<ChartTemplate>,

    /// The source whose artifact is the chart. Excludes chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chart_ref: Option<ChartArtifactReference>,

    /// Interval at which the release is reconciled. Jitter may be added to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Access to a remote cluster. With serviceAccountName, that service account of the remote cluster is impersonated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,

    /// Suspend reconciliation of this release. A reconciliation in progress is not interrupted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Name of the release. Defaults to the name of this object, prefixed with targetNamespace if that is set.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 53))]
    pub release_name: Option<String>,

    /// Namespace of the release. Defaults to the namespace of this object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_namespace: Option<String>,

    /// Namespace of the Helm storage. Defaults to the namespace of this object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub storage_namespace: Option<String>,

    /// HelmReleases that must be ready before this one is reconciled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependencyReference>,

    /// Timeout of each Helm operation. Defaults to 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Number of revisions that Helm keeps. Defaults to 5; 0 keeps all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "plain_integer")]
    pub max_history: Option<i64>,

    /// ServiceAccount to impersonate.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: Option<String>,

    /// Use one Kubernetes client for the whole reconciliation. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_client: Option<bool>,

    /// Detection and correction of differences between the release and the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_detection: Option<DriftDetection>,

    /// Configuration of Helm install actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub install: Option<Install>,

    /// Configuration of Helm upgrade actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgrade: Option<Upgrade>,

    /// Configuration of Helm test actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<Test>,

    /// Configuration of Helm rollback actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,

    /// Configuration of Helm uninstall actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uninstall: Option<Uninstall>,

    /// Secrets and ConfigMaps with values. Later entries take precedence over earlier ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_from: Vec<ValuesReference>,

    /// Values of the release. They take precedence over valuesFrom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub values: Option<serde_json::Value>,

    /// Post-renderers, applied in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub post_renderers: Vec<PostRenderer>,

    /// Labels and annotations added to all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,

    /// CEL expressions that determine the health of custom resources. Used by actions that wait, with the wait strategy
    /// poller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_check_exprs: Vec<CustomHealthCheck>,

    /// How hooks go through the post-renderers: not at all (nohooks), with everything else (combined, the
    /// default), or by themselves (separate).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_render_strategy: Option<PostRenderStrategy>,

    /// How actions wait for objects to become ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_strategy: Option<WaitStrategy>,
}

status_object!(HelmRelease);
delivers!(HelmRelease);

impl HelmRelease {
    /// How long one operation of Helm may take, the default included.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.spec.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }

    /// How many revisions Helm keeps, the default included; 0 means all.
    #[must_use]
    pub fn max_history(&self) -> i64 {
        self.spec.max_history.unwrap_or(DEFAULT_MAX_HISTORY)
    }
}

/// Any JSON at all, without a type: what a chart takes as values only the chart knows.
fn anything(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
