//! The reference from a Kustomization to its source.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::filled;

/// Names a source, possibly in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrossNamespaceSourceReference {
    /// API version of the source.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the source.
    pub kind: SourceKind,

    /// Name of the source.
    pub name: String,

    /// Namespace of the source. Defaults to the namespace of the referring object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl CrossNamespaceSourceReference {
    /// Where the source is, seen from an object in `namespace`.
    #[must_use]
    pub fn namespace_or<'a>(&'a self, namespace: &'a str) -> &'a str {
        self.namespace.as_deref().unwrap_or(namespace)
    }
}

/// `Kind/name`, or `Kind/namespace/name` if the namespace is set.
impl fmt::Display for CrossNamespaceSourceReference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(formatter, "{namespace}/")?;
        }
        formatter.write_str(&self.name)
    }
}

/// The kinds of sources that can be built and applied.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum SourceKind {
    /// An OCI artifact.
    OCIRepository,
    /// A Git repository.
    #[default]
    GitRepository,
    /// A bucket of an object store.
    Bucket,
    /// An artifact that another controller made.
    ExternalArtifact,
}

impl SourceKind {
    /// The kind as it is written in manifests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OCIRepository => "OCIRepository",
            Self::GitRepository => "GitRepository",
            Self::Bucket => "Bucket",
            Self::ExternalArtifact => "ExternalArtifact",
        }
    }
}

impl fmt::Display for SourceKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
