//! `Freeze`: when nothing new is delivered, and to what that applies.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Window;
use crate::image::LabelSelector;

/// Annotation of a Kustomization, HelmRelease or ResourceSet: the Freezes that do not apply to it, as `namespace/name`, separated by commas.
pub const FREEZE_EXCEPTION: &str = "windlass.dev/freeze-exception";

/// Times at which nothing new is delivered: what arrives meanwhile waits.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "delivery.windlass.dev",
    version = "v1alpha1",
    kind = "Freeze",
    plural = "freezes",
    namespaced,
    category = "all",
    category = "windlass",
    doc = "Times at which nothing new is delivered by Kustomizations, HelmReleases and ResourceSets. What arrives meanwhile waits.",
    printcolumn = r#"{"name":"Reason","type":"string","jsonPath":".spec.reason"}"#,
    printcolumn = r#"{"name":"From","type":"string","jsonPath":".spec.from"}"#,
    printcolumn = r#"{"name":"Until","type":"string","jsonPath":".spec.until"}"#,
    printcolumn = r#"{"name":"Suspended","type":"boolean","jsonPath":".spec.suspend"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.open) || !has(self.closed) || size(self.open) == 0 || size(self.closed) == 0",
        "message": "only one of spec.open and spec.closed is accepted",
    },
    {
        "rule": "!has(self.from) || !has(self.until) || self.from < self.until",
        "message": "spec.until must be after spec.from",
    },
]))]
pub struct FreezeSpec {
    /// Why, for people. The conditions of what waits repeat it.
    #[schemars(length(min = 1, max = 500))]
    pub reason: String,

    /// When it begins. Defaults to at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Time>,

    /// When it ends. Defaults to when it is deleted or suspended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Time>,

    /// Times of the week at which nothing new is delivered. By default it applies all the time between `from` and `until`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub closed: Vec<Window>,

    /// Times of the week at which changes are delivered. Nothing new is delivered at all other times between `from` and `until`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub open: Vec<Window>,

    /// Kustomizations, HelmReleases and ResourceSets to which it applies. Defaults to all in its namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub apps: Vec<FreezeApp>,

    /// Labels of the Kustomizations, HelmReleases and ResourceSets to which it applies. Their owners can change them: a Freeze that must hold for
    /// tenants names namespaces only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,

    /// Namespaces of the Kustomizations, HelmReleases and ResourceSets to which it applies, such as `shop` or `prod-*`. Outside the
    /// namespace of the controllers, a Freeze applies to its own namespace at most. Defaults to the namespace of the Freeze.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub namespaces: Vec<String>,

    /// Clusters to which objects are delivered, by the name of the Secret or ConfigMap in `spec.kubeConfig`, such as `prod-*`.
    /// `in-cluster` is the cluster of the Freeze. Defaults to all. Owners of Kustomizations and HelmReleases choose that name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub clusters: Vec<String>,

    /// Whether changes that others make to what was delivered are still corrected. Defaults to Continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Continue"))]
    pub drift_correction: Option<DriftCorrection>,

    /// True to end it. What waits is delivered then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// Kustomizations, HelmReleases or ResourceSets by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FreezeApp {
    /// Kind. Defaults to all three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<FreezeKind>,

    /// Name, such as `web` or `web-*`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Kind to which a Freeze applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FreezeKind {
    /// A Kustomization of kustomize.toolkit.fluxcd.io.
    Kustomization,
    /// A HelmRelease of helm.toolkit.fluxcd.io.
    HelmRelease,
    /// A ResourceSet of fluxcd.controlplane.io.
    ResourceSet,
}

/// What a Freeze does about drift.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DriftCorrection {
    /// It is corrected, to what was delivered last.
    #[default]
    Continue,
    /// It is left alone until the Freeze ends.
    Pause,
}
