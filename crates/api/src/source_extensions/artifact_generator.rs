//! `ArtifactGenerator`: artifacts that are put together from the files of other sources.

use std::fmt;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RECONCILE_ANNOTATION;
use crate::meta::{CommonMetadata, Condition, DISABLED_VALUE, HasConditions, StatusObject, filled};

/// What is made of which sources.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.extensions.fluxcd.io",
    version = "v1beta1",
    kind = "ArtifactGenerator",
    plural = "artifactgenerators",
    namespaced,
    status = "ArtifactGeneratorStatus",
    shortname = "ag",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    doc = "Artifacts that are put together from the files of other sources.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.pathPattern) && size(self.pathPattern) > 0 || self.artifacts.all(a, a.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))",
    "message": "artifact names must be valid Kubernetes object names when pathPattern is not set",
}]))]
pub struct ArtifactGeneratorSpec {
    /// Labels and annotations for every generated artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,

    /// The sources whose files the artifacts are made of.
    #[schemars(length(min = 1, max = 1000))]
    pub sources: Vec<InputReference>,

    /// Folders of a source, as `@<alias>/<pattern>`. Each folder that matches gives one set of artifacts; what stands for
    /// `{name}` in the pattern can be used in them.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 1024),
        regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$")
    )]
    pub path_pattern: Option<String>,

    /// The artifacts to make.
    #[schemars(length(min = 1, max = 1000))]
    pub artifacts: Vec<OutputArtifact>,
}

/// A source, and the name that it goes by in a generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputReference {
    /// Names the source within the generator.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$"))]
    pub alias: String,

    /// Kind of the source.
    pub kind: InputKind,

    /// Name of the source.
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub name: String,

    /// Namespace of the source; that of the generator if not set.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: Option<String>,
}

/// Kinds of sources that artifacts can be made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum InputKind {
    /// A bucket.
    Bucket,
    /// A Git repository.
    #[default]
    GitRepository,
    /// An OCI artifact.
    OCIRepository,
    /// A chart.
    HelmChart,
    /// An artifact that another controller, or another generator, made.
    ExternalArtifact,
}

/// An artifact to make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputArtifact {
    /// Name of the ExternalArtifact. With pathPattern it may have placeholders such as `{app}`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The source whose revision the artifact gets, as `@<alias>`. If not set, the revision is made of the content.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"))]
    pub revision: Option<String>,

    /// The source whose origin revision, or revision, is noted in the artifact's metadata, as `@<alias>`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"))]
    pub origin_revision: Option<String>,

    /// What is copied, in this order; a later file takes the place of an earlier one.
    #[schemars(length(min = 1))]
    pub copy: Vec<CopyOperation>,
}

/// Files of a source, and where they go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyOperation {
    /// Files, a folder or a glob pattern in a source, as `@<alias>/<pattern>`. With pathPattern it may have placeholders.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$")
    )]
    pub from: String,

    /// File or folder in the artifact, as `@artifact/<path>`. With pathPattern it may have placeholders.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^@(artifact)/(.*)$"))]
    pub to: String,

    /// Glob patterns of what is left out: for paths in the source, for paths below the part of `from` that has no glob
    /// characters, and, where the pattern has no slash, for names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub exclude: Vec<String>,

    /// What happens to the files. Overwrite is the default; Merge merges YAML as Helm merges values; Extract unpacks
    /// archives (tar.gz, tgz).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<CopyStrategy>,
}

/// What happens to files that are copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CopyStrategy {
    /// They take the place of those that are there.
    #[default]
    Overwrite,
    /// They are merged into those that are there.
    Merge,
    /// They are unpacked.
    Extract,
}

/// What was made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactGeneratorStatus {
    /// What is known about this generator, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The artifacts that were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<ExternalArtifactReference>,

    /// Checksum of the state of all sources that the artifacts were made of.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_sources_digest: Option<String>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// An artifact that was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalArtifactReference {
    /// Name of the ExternalArtifact.
    pub name: String,

    /// Namespace of the ExternalArtifact.
    pub namespace: String,

    /// Checksum of its archive.
    pub digest: String,

    /// Name of its archive.
    pub filename: String,
}

impl InputKind {
    /// The kind, as in manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bucket => "Bucket",
            Self::GitRepository => "GitRepository",
            Self::OCIRepository => "OCIRepository",
            Self::HelmChart => "HelmChart",
            Self::ExternalArtifact => "ExternalArtifact",
        }
    }
}

impl fmt::Display for InputKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl CopyOperation {
    /// What happens to the files.
    #[must_use]
    pub fn strategy(&self) -> CopyStrategy {
        self.strategy.unwrap_or_default()
    }
}

/// The generation is noted in each condition only.
impl HasConditions for ArtifactGeneratorStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn observed_generation(&self) -> Option<i64> {
        None
    }

    fn set_observed_generation(&mut self, _: i64) {}

    fn last_handled_reconcile_at(&self) -> Option<&str> {
        self.last_handled_reconcile_at.as_deref()
    }

    fn set_last_handled_reconcile_at(&mut self, token: &str) {
        self.last_handled_reconcile_at = Some(token.to_owned());
    }
}

impl StatusObject for ArtifactGenerator {
    /// By annotation: the kind has no field for it.
    fn suspended(&self) -> bool {
        let annotations = self.metadata.annotations.as_ref();
        annotations
            .and_then(|annotations| annotations.get(RECONCILE_ANNOTATION))
            .is_some_and(|value| value.to_lowercase() == DISABLED_VALUE)
    }
}
