//! The tag that `spec.ref.semver` of Git and OCI sources means: a range and tags go in, the chosen tag comes out.
//!
//! How ranges and versions are read is go-semver's; Flux's choice among tags is made here. This module knows no
//! registries and no repositories.

use std::cmp::Ordering;

use crate::{Constraints, Error, Version, compare_prereleases};

/// Reads a range such as `>=1.2, <2 || ~3.1`.
pub fn parse_range(text: &str) -> Result<Constraints, Error> {
    Constraints::parse(text)
}

/// The highest of the given texts that is a full version (three parts) in the range, as it was written.
///
/// Versions that differ only in build metadata are equal by the specification; the one with the higher metadata
/// is taken then, so that the answer does not depend on the order of the input.
pub fn highest<'a>(range: &Constraints, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let versions = candidates
        .into_iter()
        .filter_map(|text| Some((parse_full(text)?, text)))
        .filter(|(version, _)| range.check(version));
    let highest = versions.max_by(|(a, _), (b, _)| compare(a, b));
    highest.map(|(_, text)| text)
}

/// Orders versions so that no two different texts are equal: by the specification, then by build metadata, then by bytes.
pub fn compare(a: &Version, b: &Version) -> Ordering {
    a.compare(b)
        .then_with(|| compare_prereleases(a.metadata(), b.metadata()))
        .then_with(|| a.original().cmp(b.original()))
}

/// The tags around a range in which there is none, for people: up to two below the first version that the range names,
/// and up to two from there on.
pub fn nearest<'a>(range: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const EACH_SIDE: usize = 2;
    let candidates = candidates.into_iter();
    let mut versions: Vec<_> = candidates
        .filter_map(|text| Some((parse_full(text)?, text)))
        .collect();
    versions.sort_by(|(a, text_a), (b, text_b)| a.compare(b).then(text_a.cmp(text_b)));
    let named = range
        .split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+')))
        .find_map(|word| Version::parse(word.trim_start_matches(|c: char| !c.is_ascii_digit())).ok());
    let position = named.map_or(versions.len(), |named| {
        versions.partition_point(|(version, _)| version.compare(&named).is_lt())
    });
    let from = position.saturating_sub(EACH_SIDE);
    let to = (position + EACH_SIDE).min(versions.len());
    versions[from..to].iter().map(|(_, text)| *text).collect()
}

/// Describes the tags that exist instead of one in the range.
pub fn instead<'a>(range: &str, tags: impl IntoIterator<Item = &'a str> + Clone) -> String {
    let nearest = nearest(range, tags.clone());
    match (tags.into_iter().count(), nearest.as_slice()) {
        (0, _) => "there are no tags that could match".to_owned(),
        (count, []) => format!("none of {count} tags is a version"),
        (count, nearest) => format!("nearest of {count} tags: {}", nearest.join(", ")),
    }
}

/// Returns whether a text is one full version, and not a range.
pub fn is_full(text: &str) -> bool {
    parse_full(text).is_some()
}

/// The highest of the given texts that are full versions, pre-releases included, highest first; at most `count`.
pub fn newest<'a>(candidates: impl IntoIterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let versions = candidates.into_iter();
    let mut versions: Vec<_> = versions
        .filter_map(|text| Some((parse_full(text)?, text)))
        .collect();
    versions.sort_by(|(a, _), (b, _)| b.compare(a));
    versions.into_iter().take(count).map(|(_, text)| text).collect()
}

/// Reads a full version. Flux demands all three parts of tags: `v1` and `1.2` are no versions there (fluxcd/pkg/version ParseVersion).
pub fn parse_full(text: &str) -> Option<Version> {
    let parts = text.split('.').count();
    Version::parse(text).ok().filter(|_| parts >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn highest_of(range: &str, tags: &[&'static str]) -> Option<&'static str> {
        highest(&parse_range(range).unwrap(), tags.iter().copied())
    }

    #[test]
    fn the_highest_tag_is_taken_as_it_was_written() {
        let tags = [
            "v1.0.0",
            "1.10.0",
            "1.9.3",
            "v2",
            "2.0",
            "latest",
            "3.0.0-rc.1",
            "2025.02.03",
        ];
        assert_eq!(highest_of("^1", &tags), Some("1.10.0"));
        assert_eq!(highest_of("<1.1", &tags), Some("v1.0.0"));
        assert_eq!(
            highest_of(">=2 <3", &tags),
            None,
            "v2 and 2.0 have not three parts"
        );
        assert_eq!(highest_of(">=2025.1", &tags), Some("2025.02.03"));
        assert_eq!(highest_of(">=3.0.0-0 <4", &tags), Some("3.0.0-rc.1"));
    }

    #[test]
    fn the_nearest_tags_are_those_around_the_range() {
        let tags = [
            "2.0.0",
            "latest",
            "1.0.0",
            "1.2.0",
            "v1.1.0",
            "3.0.0",
            "4.0.0-rc.1",
        ];
        let cases = [
            (">=4", vec!["3.0.0", "4.0.0-rc.1"]),
            (">=1.3 <2", vec!["v1.1.0", "1.2.0", "2.0.0", "3.0.0"]),
            ("^0.9", vec!["1.0.0", "v1.1.0"]),
            ("~9.1.x", vec!["3.0.0", "4.0.0-rc.1"]),
        ];
        for (range, near) in cases {
            assert_eq!(nearest(range, tags), near, "{range}");
        }
        assert!(nearest(">=1", ["latest", "main"]).is_empty());
        assert!(nearest(">=1", []).is_empty());
    }

    #[test]
    fn equal_versions_are_told_apart_by_metadata_whatever_their_order() {
        assert_eq!(highest_of("1.x", &["1.0.0+9", "1.0.0+10"]), Some("1.0.0+10"));
        assert_eq!(highest_of("1.x", &["1.0.0+10", "1.0.0+9"]), Some("1.0.0+10"));
    }
}
