//! The digests by which Flux tells that post-renderers or common metadata have changed: of their JSON as Go writes it.

use api::helm::{HelmRelease, HelmReleaseStatus, PostRenderer};
use api::meta::CommonMetadata;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// Of the post-renderers. None without any.
pub(super) fn of_post_renderers(renderers: &[PostRenderer]) -> Option<String> {
    (!renderers.is_empty()).then(|| digest_of(&renderers))
}

/// Of the common metadata. None without any.
pub(super) fn of_common_metadata(metadata: Option<&CommonMetadata>) -> Option<String> {
    metadata.map(|metadata| digest_of(&metadata))
}

/// Records what was rendered.
pub(super) fn observe(object: &HelmRelease, status: &mut HelmReleaseStatus) {
    status.observed_post_renderers_digest = of_post_renderers(&object.spec.post_renderers);
    status.observed_common_metadata_digest = of_common_metadata(object.spec.common_metadata.as_ref());
}

/// Go's encoder ends a value with a line end.
fn digest_of(value: &impl Serialize) -> String {
    let mut hasher = Sha256::new();
    hasher.update(go_text::json::to_vec(value));
    hasher.update("\n");
    format!("sha256:{}", hex::encode(hasher.finalize()))
}
