//! `ExternalArtifact`: an artifact that a controller outside this group made.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::{DEFAULT_TIMEOUT, Source};
use crate::meta::{
    Artifact, Condition, Duration, HasConditions, NamespacedObjectKindReference, StatusObject,
};

/// Origin of the artifact.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "ExternalArtifact",
    plural = "externalartifacts",
    namespaced,
    status = "ExternalArtifactStatus",
    shortname = "ea",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    doc = "An artifact produced by a controller other than source-controller.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Source","type":"string","jsonPath":".spec.sourceRef.name"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ExternalArtifactSpec {
    /// Object from which the artifact was produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<NamespacedObjectKindReference>,
}

/// Observed state of the object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalArtifactStatus {
    /// Last artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// Conditions of this artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

/// This kind records neither a generation nor a handled request: its maker does, on its own object.
impl HasConditions for ExternalArtifactStatus {
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
        None
    }

    fn set_last_handled_reconcile_at(&mut self, _: &str) {}
}

impl StatusObject for ExternalArtifact {
    fn suspended(&self) -> bool {
        false
    }
}

impl Source for ExternalArtifact {
    fn artifact(&self) -> Option<&Artifact> {
        self.status.as_ref()?.artifact.as_ref()
    }

    /// A minute, as in Flux: the kind has no interval of its own.
    fn interval(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn timeout(&self) -> Duration {
        DEFAULT_TIMEOUT
    }
}
