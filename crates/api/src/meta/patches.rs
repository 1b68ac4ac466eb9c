//! What both appliers can do to built objects: metadata, patches, images, ignored fields, custom health checks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filled::filled;

/// Labels and annotations for every object that is applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommonMetadata {
    /// Annotations that every object gets. They win over those of the manifest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,

    /// Labels that every object gets. They win over those of the manifest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Replaces the name, tag or digest of a container image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The image as the manifests name it, without tag.
    pub name: String,

    /// The name to put in its place.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub new_name: Option<String>,

    /// The tag to put in place of the present one.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub new_tag: Option<String>,

    /// The digest to put in place of the present tag. It wins over newTag.
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

    /// An expression over the annotations, in the syntax of label selectors.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub annotation_selector: Option<String>,

    /// An expression over the labels, in the syntax of label selectors.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
}

/// Changes the objects that match the target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Patch {
    /// The patch as YAML text: a strategic merge patch, or a list of JSON patch operations.
    pub patch: String,

    /// The objects to patch. A strategic merge patch without a target patches the object that it names itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Selector>,
}

/// Says which fields of which objects are left as the cluster has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IgnoreRule {
    /// The fields, as JSON pointers (RFC 6901).
    pub paths: Vec<String>,

    /// The objects. If not set, the rule is for all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Selector>,
}

/// Says with CEL expressions over an object when it is healthy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomHealthCheck {
    /// API version of the objects that this check is for.
    pub api_version: String,

    /// Kind of the objects that this check is for.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,

    /// True if the object has not yet come to the state that its spec asks for.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,

    /// True if the object has failed to come to the state that its spec asks for.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,

    /// True if the object is in the state that its spec asks for.
    pub current: String,
}
