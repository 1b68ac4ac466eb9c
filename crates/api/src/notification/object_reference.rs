//! The reference to objects that send events or wait for webhooks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::filled;

/// Reference to an object, or with the name `*` to all objects of a kind, optionally in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrossNamespaceObjectReference {
    /// API version of the object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the object.
    pub kind: EventSourceKind,

    /// Name of the object, or `*` for all.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Namespace of the object. Defaults to the namespace of the referring object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,

    /// Labels that the objects must have. Requires the name `*`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// The kinds that send events and can be reconciled on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventSourceKind {
    /// A bucket.
    Bucket,
    /// A Git repository.
    GitRepository,
    /// A Kustomization.
    #[default]
    Kustomization,
    /// A Helm release.
    HelmRelease,
    /// A chart.
    HelmChart,
    /// A Helm repository.
    HelmRepository,
    /// The tags of a container image.
    ImageRepository,
    /// A choice among tags.
    ImagePolicy,
    /// An automation that commits chosen tags.
    ImageUpdateAutomation,
    /// An OCI repository.
    OCIRepository,
    /// A generator of artifacts.
    ArtifactGenerator,
    /// An artifact of another controller.
    ExternalArtifact,
    /// A requested change of manifests. Flux does not have it.
    ChangeRequest,
    /// A pipeline that promotes releases. Flux does not have it.
    Pipeline,
    /// A preview of pull requests. Flux does not have it.
    Preview,
    /// Environments of pull requests. Flux does not have it.
    EnvironmentPolicy,
    /// Objects made from templates. flux-operator has it.
    ResourceSet,
    /// Inputs for templates. flux-operator has it.
    ResourceSetInputProvider,
}
