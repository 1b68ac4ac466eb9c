//! Tags that a registry reported, as a Receiver hands them to an ImageRepository.

use serde::{Deserialize, Serialize};

/// Annotation of an ImageRepository with the tags that a registry reported as pushed: [`PushedTags`] as JSON.
pub const PUSHED_TAGS_ANNOTATION: &str = "windlass.dev/pushed-tags";

/// Tags that were reported, and with which request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushedTags {
    /// The value of `reconcile.fluxcd.io/requestedAt` beside it: with another one they are old.
    pub requested_at: String,
    /// The tags.
    pub tags: Vec<String>,
}
