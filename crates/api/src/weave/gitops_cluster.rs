//! `GitopsCluster`: another cluster, by a kubeconfig.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, LocalObjectReference};

/// A cluster that pipelines may name.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "gitops.weave.works",
    version = "v1alpha1",
    kind = "GitopsCluster",
    plural = "gitopsclusters",
    namespaced,
    status = "GitopsClusterStatus",
    doc = "A cluster that pipelines may name, by the Secret with its kubeconfig.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"ClusterConnectivity","type":"string","jsonPath":".status.conditions[?(@.type==\"ClusterConnectivity\")].status"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase", default)]
pub struct GitopsClusterSpec {
    /// Cluster of Cluster API, whose kubeconfig is in the Secret `<name>-kubeconfig`.
    #[serde(rename = "capiClusterRef", skip_serializing_if = "Option::is_none")]
    pub capi_cluster_ref: Option<LocalObjectReference>,

    /// Secret with the kubeconfig, under `value` or `value.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// What Weave's cluster-controller says of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct GitopsClusterStatus {
    /// Conditions of the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
