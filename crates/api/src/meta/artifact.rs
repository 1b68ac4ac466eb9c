//! The record of what a source produced, which everything downstream reads.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::names::ORIGIN_CREATED_KEY;

/// Artifact of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Path of the file below the root of the controller's storage.
    pub path: String,

    /// URL of the file inside the cluster.
    pub url: String,

    /// Revision of the origin, such as a branch with a commit or the version of a chart.
    pub revision: String,

    /// Checksum of the file, as `<algorithm>:<checksum>`.
    #[schemars(regex(pattern = r"^[a-z0-9]+(?:[.+_-][a-z0-9]+)*:[a-zA-Z0-9=_-]+$"))]
    pub digest: String,

    /// Time of the last update of the artifact.
    pub last_update_time: Time,

    /// Size of the file in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,

    /// Metadata of the origin, such as the annotations of an OCI image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl Artifact {
    /// Returns whether this artifact is of the given revision.
    #[must_use]
    pub fn has_revision(&self, revision: &str) -> bool {
        self.revision == revision
    }

    /// When what it has was made, where that is known, else when it took its place.
    #[must_use]
    pub fn made_at(&self) -> Timestamp {
        let made = self.metadata.get(ORIGIN_CREATED_KEY);
        made.and_then(|made| made.parse().ok())
            .unwrap_or(self.last_update_time.0)
    }

    /// Returns whether this artifact has the given content.
    #[must_use]
    pub fn has_digest(&self, digest: &str) -> bool {
        self.digest == digest
    }
}
