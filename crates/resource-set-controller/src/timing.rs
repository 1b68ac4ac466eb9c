//! Durations in annotations: these kinds have no `spec.interval`.

use std::time::Duration;

use kube::ResourceExt as _;

/// Characters of a wrong value that are repeated.
const LONGEST: usize = 64;

/// An annotation is no duration.
#[derive(Debug, thiserror::Error)]
#[error("the annotation {annotation} is no duration: '{value}'")]
pub(crate) struct NoDuration {
    annotation: &'static str,
    value: String,
}

/// Reads a duration from an annotation.
///
/// # Errors
/// When it is something else.
pub(crate) fn annotated<K: kube::Resource>(
    object: &K,
    annotation: &'static str,
    default: Duration,
) -> Result<Duration, NoDuration> {
    let Some(text) = object.annotations().get(annotation) else {
        return Ok(default);
    };
    controller_kit::duration::parse(text).map_err(|_| NoDuration {
        annotation,
        value: text.chars().take(LONGEST).collect(),
    })
}
