//! Ranges of versions, and tags within them.

use go_semver::{Constraints, Version, tags};

/// Reads a range; None if there is none.
///
/// # Errors
/// With what is wrong with it.
pub(crate) fn range(text: &str) -> Result<Option<Constraints>, String> {
    match text {
        "" => Ok(None),
        text => tags::parse_range(text)
            .map(Some)
            .map_err(|error| error.to_string()),
    }
}

/// Whether a tag is a version within a range; also one that a suffix makes a prerelease.
pub(crate) fn is_within(range: &Constraints, tag: &str) -> bool {
    let Ok(version) = Version::parse(tag) else {
        return false;
    };
    let plain = || version.set_prerelease("").ok();
    range.check(&version) || plain().is_some_and(|plain| range.check(&plain))
}
