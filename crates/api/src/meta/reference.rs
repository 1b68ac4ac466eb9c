//! References from one object to another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filled::{filled, is_false};

/// Names an object in the namespace of the one that refers to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct LocalObjectReference {
    /// Name of the object.
    pub name: String,
}

/// Reference to an object of any kind, in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedObjectKindReference {
    /// API version of the object. Defaults to apps/v1.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the object.
    pub kind: String,

    /// Name of the object.
    pub name: String,

    /// Namespace of the object. Defaults to the namespace of the referring object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Reference to an object of the same kind that must be ready first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyReference {
    /// Name of the dependency.
    pub name: String,

    /// Namespace of the object. Defaults to the namespace of the referring object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// CEL expression over `self` and `dep` that determines whether the dependency is ready. It replaces the default
    /// readiness check, or is added to it if the feature gate `AdditiveCELDependencyCheck` is enabled.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub ready_expr: Option<String>,
}

/// `[namespace/]name`, and `@` with the expression if there is one.
impl fmt::Display for DependencyReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(formatter, "{namespace}/")?;
        }
        formatter.write_str(&self.name)?;
        match &self.ready_expr {
            Some(expression) => write!(formatter, "@{expression}"),
            None => Ok(()),
        }
    }
}

/// The kinds that values can be read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ValuesKind {
    /// A Secret.
    #[default]
    Secret,
    /// A ConfigMap.
    ConfigMap,
}

/// Reference to values in a Secret or ConfigMap.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesReference {
    /// Secret or ConfigMap.
    pub kind: ValuesKind,

    /// Name of the Secret or ConfigMap, in the namespace of the object that refers to it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Key that contains the values. Defaults to `values.yaml`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^[\-._a-zA-Z0-9]+$"))]
    pub values_key: Option<String>,

    /// Path in the values, with dots, at which a single value is set. If empty, the key must contain a YAML document,
    /// which is merged at the root.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 250),
        regex(pattern = r"^([a-zA-Z0-9_\-.\\\/]|\[[0-9]{1,5}\])+$")
    )]
    pub target_path: Option<String>,

    /// Ignore a missing Secret or ConfigMap. Other errors still fail the release.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,

    /// Set the value at the target path literally, like Helm's `--set-literal`, instead of parsing it like `--set`.
    /// Requires a target path.
    #[serde(default, skip_serializing_if = "is_false")]
    pub literal: bool,
}

impl ValuesReference {
    /// The key to read: the one that is set, else `values.yaml`.
    #[must_use]
    pub fn key(&self) -> &str {
        self.values_key.as_deref().unwrap_or("values.yaml")
    }
}
