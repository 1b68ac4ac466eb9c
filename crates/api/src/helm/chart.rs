//! Where the chart of a release comes from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    meta::{Duration, LocalObjectReference, filled, is_false},
    source::{ChartSourceKind, ReconcileStrategy, SignatureProvider},
};

/// The HelmChart to create for a release.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartTemplate {
    /// Labels and annotations of the HelmChart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<ChartTemplateMetadata>,

    /// The spec of the HelmChart.
    pub spec: ChartTemplateSpec,
}

/// Labels and annotations of the HelmChart that is created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartTemplateMetadata {
    /// Labels of the HelmChart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,

    /// Annotations of the HelmChart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The spec of the HelmChart that is created.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartTemplateSpec {
    /// Name of the chart in a HelmRepository, or its path in another source.
    #[schemars(length(min = 1, max = 2048))]
    pub chart: String,

    /// Semantic version range; the newest matching version is selected. Ignored for charts in a GitRepository or
    /// Bucket.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "*"))]
    pub version: Option<String>,

    /// The source that has the chart.
    pub source_ref: ChartSourceReference,

    /// Interval at which the source is checked for updates. Defaults to the interval of the release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

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

    /// Signature verification of a chart in a container registry. Dependencies of the chart are not verified.
    #[serde(rename = "verify", default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<ChartTemplateVerification>,
}

/// Names the source of a chart, possibly in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartSourceReference {
    /// API version of the source.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the source.
    pub kind: ChartSourceKind,

    /// Name of the source.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Namespace of the source. Defaults to the namespace of the release.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// Which signature a chart must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartTemplateVerification {
    /// Tool with which the chart was signed.
    #[schemars(extend("default" = "cosign"))]
    pub provider: SignatureProvider,

    /// The Secret with the trusted public keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// Names a source whose artifact is a chart, possibly in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartArtifactReference {
    /// API version of the source.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the source.
    pub kind: ChartArtifactKind,

    /// Name of the source.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Namespace of the source. Defaults to the namespace of the release.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// The kinds of sources whose artifact can be a chart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChartArtifactKind {
    /// An OCI artifact.
    #[default]
    OCIRepository,
    /// A chart.
    HelmChart,
    /// An artifact that another controller made.
    ExternalArtifact,
}
