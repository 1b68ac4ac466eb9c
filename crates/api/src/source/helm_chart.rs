//! `HelmChart`: one chart of a repository, packaged as an artifact.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::{DEFAULT_TIMEOUT, Source};
use super::verification::ChartVerification;
use crate::meta::{Artifact, Condition, Duration, filled, has_conditions, is_false, status_object};

/// Specification of the HelmChart.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "HelmChart",
    plural = "helmcharts",
    namespaced,
    status = "HelmChartStatus",
    shortname = "hc",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    doc = "A Helm chart that is pulled or packaged as an artifact.",
    printcolumn = r#"{"name":"Chart","type":"string","jsonPath":".spec.chart"}"#,
    printcolumn = r#"{"name":"Version","type":"string","jsonPath":".spec.version"}"#,
    printcolumn = r#"{"name":"Source Kind","type":"string","jsonPath":".spec.sourceRef.kind"}"#,
    printcolumn = r#"{"name":"Source Name","type":"string","jsonPath":".spec.sourceRef.name"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.verify) || self.sourceRef.kind == 'HelmRepository'",
    "message": "spec.verify is only supported when spec.sourceRef.kind is 'HelmRepository'",
}]))]
pub struct HelmChartSpec {
    /// Name of the chart in a HelmRepository, or its path in another source.
    pub chart: String,

    /// Semantic version range; the newest matching version is selected. Ignored for charts in a GitRepository or
    /// Bucket.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "*"))]
    pub version: Option<String>,

    /// The source that has the chart.
    pub source_ref: LocalHelmChartSourceReference,

    /// Interval at which the source is checked for updates. Jitter may be added to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Changes that make a new artifact: a new version of the chart, or any new revision of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "ChartVersion"))]
    pub reconcile_strategy: Option<ReconcileStrategy>,

    /// Values files in the source, merged in this order. They replace the chart's values.yaml.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values_files: Vec<String>,

    /// Ignore missing files of valuesFiles.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_missing_values_files: bool,

    /// Suspend reconciliation of this chart.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Signature verification of a chart in a container registry. Dependencies of the chart are not verified.
    #[serde(rename = "verify", default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<ChartVerification>,
}

/// Names the source of a chart, in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalHelmChartSourceReference {
    /// API version of the source.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the source.
    pub kind: ChartSourceKind,

    /// Name of the source.
    pub name: String,
}

/// The kinds of sources that can have a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChartSourceKind {
    /// A Helm repository.
    #[default]
    HelmRepository,
    /// A folder of a Git repository.
    GitRepository,
    /// A folder of a bucket.
    Bucket,
}

/// Trigger of a new artifact of the chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReconcileStrategy {
    /// A new version of the chart.
    #[default]
    ChartVersion,
    /// A new revision of the source, whatever the chart's version.
    Revision,
}

/// Observed state of the chart.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartStatus {
    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Revision of the source of the last chart.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_source_artifact_revision: Option<String>,

    /// Name of the chart in its metadata.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_chart_name: Option<String>,

    /// Values files of the current artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_values_files: Vec<String>,

    /// Conditions of this chart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// URL of the latest artifact inside the cluster.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// Last pulled or packaged chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(HelmChartStatus);
status_object!(HelmChart);

impl Source for HelmChart {
    fn artifact(&self) -> Option<&Artifact> {
        self.status.as_ref()?.artifact.as_ref()
    }

    fn interval(&self) -> Duration {
        self.spec.interval
    }

    /// A minute: the kind has no timeout of its own.
    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }
}
