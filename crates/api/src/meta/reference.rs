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

/// Names an object of any kind, in any namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespacedObjectKindReference {
    /// API version of the object. If not set, the version that the cluster prefers is used.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the object.
    pub kind: String,

    /// Name of the object.
    pub name: String,

    /// Namespace of the object. If not set, it is the one of the object that refers to it.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Names an object of the same kind that must be ready first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyReference {
    /// Name of the object that is waited for.
    pub name: String,

    /// Namespace of the object. If not set, it is the one of the object that refers to it.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,

    /// A CEL expression over `self` and `dep` that decides whether the dependency is ready. It takes the place
    /// of the usual check, or is added to it if the feature gate `AdditiveCELDependencyCheck` is on.
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

/// Names a Secret or ConfigMap that holds Helm values, and where in it they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValuesReference {
    /// Whether the values are in a Secret or in a ConfigMap.
    pub kind: ValuesKind,

    /// Name of the Secret or ConfigMap, in the namespace of the object that refers to it.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The key of the data that holds the values. If not set, it is `values.yaml`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^[\-._a-zA-Z0-9]+$"))]
    pub values_key: Option<String>,

    /// Where the value goes, as a path with dots. If set, the key is expected to hold one plain value; if not,
    /// it holds a YAML document that is merged at the root.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 250),
        regex(pattern = r"^([a-zA-Z0-9_\-.\\\/]|\[[0-9]{1,5}\])+$")
    )]
    pub target_path: Option<String>,

    /// Whether it is fine if the Secret or ConfigMap is not there. Other errors still fail the release.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,

    /// Whether the value is put at the target path as it is, without the syntax of Helm's `--set`, as
    /// `--set-literal` does. It has no effect without a target path.
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
