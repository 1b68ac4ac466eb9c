//! Changes that both appliers can make to built objects: metadata, patches, images, ignored fields, custom
//! health checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filled::filled;

/// Labels and annotations for every object that is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommonMetadata {
    /// Annotations added to all objects. Existing annotations with the same key are overwritten.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// Labels added to all objects. Existing labels with the same key are overwritten.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Replaces the name, tag or digest of a container image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Name of the image in the manifests, without tag.
    pub name: String,

    /// Name that replaces the original name.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,

    /// Tag that replaces the original tag.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub new_tag: Option<String>,

    /// Digest that replaces the tag. Takes precedence over newTag.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// Selects objects. Everything that is set must match; names are regular expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Selector {
    /// API group of the objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,

    /// API version of the objects, without the group.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// Kind of the objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// Namespace of the objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// Name of the objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Selector for annotations, in label selector syntax.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub annotation_selector: Option<String>,

    /// Label selector.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
}

/// A patch for the objects that match the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// The patch as YAML text: a strategic merge patch, or a list of JSON patch operations.
    pub patch: String,

    /// The objects to patch. A strategic merge patch without a target patches the object that it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Selector>,
}

/// Rule that excludes fields of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoreRule {
    /// JSON pointers (RFC 6901) of the fields.
    pub paths: Vec<String>,

    /// Selector of the objects. Defaults to all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Selector>,
}

/// CEL expressions that determine the health of objects of a kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomHealthCheck {
    /// API version of the objects to check.
    pub api_version: String,

    /// Kind of the objects to check.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// CEL expression that is true if the object has not reached its desired state yet.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,

    /// CEL expression that is true if the object has failed to reach its desired state.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,

    /// CEL expression that is true if the object is in its desired state.
    pub current: String,
}
