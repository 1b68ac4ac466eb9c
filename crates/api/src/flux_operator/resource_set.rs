//! `ResourceSet`: objects made from templates, once for each set of inputs.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::image::LabelSelector;
use crate::meta::{
    CommonMetadata, Condition, CustomHealthCheck, Delivers, DependencyReference, Duration,
    KubeConfigReference, ResourceInventory, Snapshot, StatusObject, has_conditions,
};

use super::AnyMap;

/// Inputs, templates, and how what they make is applied.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fluxcd.controlplane.io",
    version = "v1",
    kind = "ResourceSet",
    plural = "resourcesets",
    shortname = "rset",
    namespaced,
    status = "ResourceSetStatus",
    doc = "A set of objects made from templates, once for each set of inputs.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.resources) || has(self.resourcesTemplate) || has(self.steps)",
        "message": "one of resources, resourcesTemplate and steps must be set",
    },
    {
        "rule": "!has(self.steps) || (!has(self.resources) && !has(self.resourcesTemplate))",
        "message": "steps cannot be combined with resources or resourcesTemplate",
    },
]))]
pub struct ResourceSetSpec {
    /// Labels and annotations that every object gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,

    /// Sets of inputs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::any_inputs")]
    pub inputs: Vec<AnyMap>,

    /// Providers in the same namespace, whose inputs are added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs_from: Vec<InputReference>,

    /// How the inputs of several providers are combined. Defaults to Flatten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_strategy: Option<InputStrategy>,

    /// Objects with templates in their texts, between `<<` and `>>`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::any_objects")]
    pub resources: Vec<AnyMap>,

    /// A template that makes YAML documents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resources_template: String,

    /// Objects that are applied one step after the other. Each step waits until its objects are healthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub steps: Vec<Step>,

    /// Objects that must exist, or be ready, before anything is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,

    /// Name of a ServiceAccount in the same namespace. As this account objects are applied and deleted, and what the spec names in the
    /// cluster is read. Defaults to the controller's own account, unless the controller has a default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,

    /// True to be ready only when all objects are healthy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
}

/// Providers, by name or by label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.name) != has(self.selector)",
    "message": "exactly one of name and selector must be set",
}]))]
pub struct InputReference {
    /// API version of the providers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["fluxcd.controlplane.io/v1"]))]
    pub api_version: String,

    /// Kind of the providers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("enum" = ["ResourceSetInputProvider"]))]
    pub kind: String,

    /// Name of one provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// Labels of providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// How the inputs of several providers are combined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.includeEmptyProviders) || self.name == 'Permute'",
    "message": "includeEmptyProviders can only be set with the strategy Permute",
}]))]
pub struct InputStrategy {
    /// Flatten or Permute.
    pub name: StrategyName,

    /// With Permute: true if a provider without inputs leaves no combination at all. Otherwise it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_empty_providers: Option<bool>,
}

/// A way to combine inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StrategyName {
    /// The templates are rendered once for each set of inputs.
    #[default]
    Flatten,
    /// The templates are rendered once for each combination of one set of each provider; the inputs of a provider are under its name.
    Permute,
}

/// Objects that are applied together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.resources) || has(self.resourcesTemplate)",
    "message": "one of resources and resourcesTemplate must be set",
}]))]
pub struct Step {
    /// Name of the step.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// Objects with templates in their texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::any_objects")]
    pub resources: Vec<AnyMap>,

    /// A template that makes YAML documents.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resources_template: String,

    /// Longest time until its objects are healthy. Defaults to that of the whole reconcile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,
}

/// An object that must be there first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.readyExpr) || (has(self.ready) && self.ready)",
    "message": "readyExpr can only be set with ready",
}]))]
pub struct Dependency {
    /// API version of the object.
    pub api_version: String,

    /// Kind of the object.
    pub kind: String,

    /// Name of the object.
    pub name: String,

    /// Namespace of the object. Empty for objects without one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,

    /// True if it must be ready; otherwise it must exist.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ready: bool,

    /// CEL expression over the object that says whether it is ready, instead of its health.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ready_expr: String,
}

/// Observed state of a ResourceSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceSetStatus {
    /// The last generation that was reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions: Ready, Reconciling, Stalled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The objects that were applied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inventory: Option<ResourceInventory>,

    /// Digest of the objects that were applied last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_applied_revision: Option<String>,

    /// Digests of ConfigMaps and Secrets that `checksumFrom` names, by `Kind/namespace/name`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub external_checksum_refs: BTreeMap<String, String>,

    /// The last distinct outcomes, the newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<Snapshot>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(ResourceSetStatus);

impl Delivers for ResourceSet {
    /// Its dependencies are of any kind.
    fn depends_on(&self) -> &[DependencyReference] {
        &[]
    }

    fn service_account(&self) -> Option<&str> {
        Some(self.spec.service_account_name.as_str()).filter(|name| !name.is_empty())
    }

    fn kube_config(&self) -> Option<&KubeConfigReference> {
        None
    }

    fn health_check_exprs(&self) -> &[CustomHealthCheck] {
        &[]
    }
}

impl StatusObject for ResourceSet {
    fn suspended(&self) -> bool {
        super::is_disabled(self)
    }
}
