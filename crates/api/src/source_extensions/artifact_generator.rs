//! `ArtifactGenerator`: artifacts that are put together from the files of other sources.

use std::fmt;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{CommonMetadata, Condition, DISABLED_VALUE, HasConditions, StatusObject, filled};

/// Annotation on a generator: `disabled`, in any case, means that it is left alone.
pub const RECONCILE_ANNOTATION: &str = "source.extensions.fluxcd.io/reconcile";

/// Specification of the ArtifactGenerator.
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
    doc = "Artifacts composed of files of other sources.",
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
    /// Labels and annotations added to all generated artifacts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,

    /// Sources of the files.
    #[schemars(length(min = 1, max = 1000))]
    pub sources: Vec<InputReference>,

    /// Directories of a source, as `@<alias>/<pattern>`. One set of artifacts is generated per matching directory;
    /// `{name}` in the pattern becomes a placeholder.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(max = 1024),
        regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$")
    )]
    pub path_pattern: Option<String>,

    /// Artifacts to generate.
    #[schemars(length(min = 1, max = 1000))]
    pub artifacts: Vec<OutputArtifact>,
}

/// A source with its alias.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InputReference {
    /// Alias of the source within the generator.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([a-z0-9_-]*[a-z0-9])?$"))]
    pub alias: String,

    /// Kind of the source.
    pub kind: InputKind,

    /// Name of the source.
    #[schemars(length(max = 253), regex(pattern = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"))]
    pub name: String,

    /// Namespace of the source. Defaults to the namespace of the generator.
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

/// An artifact to generate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutputArtifact {
    /// Name of the ExternalArtifact. With pathPattern, it may contain placeholders such as `{app}`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Source whose revision becomes the revision of the artifact, as `@<alias>`. Defaults to a revision computed from
    /// the content.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"))]
    pub revision: Option<String>,

    /// Source whose origin revision, or revision, is recorded in the artifact's metadata, as `@<alias>`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)$"))]
    pub origin_revision: Option<String>,

    /// Copy operations, in this order; later files overwrite earlier ones.
    #[schemars(length(min = 1))]
    pub copy: Vec<CopyOperation>,
}

/// A copy operation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CopyOperation {
    /// File, directory or glob pattern in a source, as `@<alias>/<pattern>`. With pathPattern, it may contain
    /// placeholders.
    #[schemars(
        length(min = 1, max = 1024),
        regex(pattern = r"^@([a-z0-9]([a-z0-9_-]*[a-z0-9])?)/(.*)$")
    )]
    pub from: String,

    /// File or directory in the artifact, as `@artifact/<path>`. With pathPattern, it may contain placeholders.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^@(artifact)/(.*)$"))]
    pub to: String,

    /// Glob patterns of files to exclude. They match paths in the source, paths below the part of `from` without glob
    /// characters, and, without a slash, file names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub exclude: Vec<String>,

    /// How the files are copied. Overwrite is the default; Merge merges YAML as Helm merges values; Extract
    /// unpacks archives (tar.gz, tgz).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<CopyStrategy>,
}

/// Copy strategy.
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

/// Observed state of the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactGeneratorStatus {
    /// Conditions of this generator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Generated artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inventory: Vec<ExternalArtifactReference>,

    /// Digest of the state of all sources at the last generation.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_sources_digest: Option<String>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// A generated artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExternalArtifactReference {
    /// Name of the ExternalArtifact.
    pub name: String,

    /// Namespace of the ExternalArtifact.
    pub namespace: String,

    /// Digest of the archive.
    pub digest: String,

    /// File name of the archive.
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
    /// The copy strategy, or its default.
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
