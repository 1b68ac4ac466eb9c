//! Choosing a version of a chart, as Flux does.

use std::cmp::Ordering;

use go_semver::{Constraints, Version};
use go_time::Time;

use crate::find::ChartVersion;

/// No version could be chosen.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PickError {
    /// The chart has no version at all.
    #[error("no chart version found")]
    NoVersions,
    /// The range is none.
    #[error("{0}")]
    Range(go_semver::Error),
    /// No version lies in the range.
    #[error("no '{chart}' chart with version matching '{range}' found")]
    NoMatch {
        /// The chart.
        chart: String,
        /// The range.
        range: String,
    },
}

/// The newest version in a range. The text of a version finds exactly that one first; an empty range or `*` means the
/// newest that is no pre-release. Of versions that differ in build metadata only, the one made last counts.
///
/// # Errors
/// When the range is none, or nothing lies in it.
pub fn pick<'a>(
    versions: &'a [ChartVersion],
    chart: &str,
    range: &str,
) -> Result<&'a ChartVersion, PickError> {
    if versions.is_empty() {
        return Err(PickError::NoVersions);
    }
    let exact = versions.iter().find(|version| version.version == range);
    if let Some(exact) = exact.filter(|_| !range.is_empty()) {
        return Ok(exact);
    }
    let text = if range.is_empty() { "*" } else { range };
    let constraints = Constraints::parse(text).map_err(PickError::Range)?;
    let matching = versions.iter().filter_map(|candidate| {
        let version = parse_version(&candidate.version)?;
        constraints.check(&version).then_some((version, candidate))
    });
    let newest = matching.max_by(|(a, left), (b, right)| a.compare(b).then_with(|| by_creation(left, right)));
    newest
        .map(|(_, version)| version)
        .ok_or_else(|| PickError::NoMatch {
            chart: chart.to_owned(),
            range: range.to_owned(),
        })
}

/// As fluxcd/pkg/version: a `v` in front is allowed, three numbers are needed.
fn parse_version(text: &str) -> Option<Version> {
    Version::parse_strict(text.strip_prefix('v').unwrap_or(text)).ok()
}

fn by_creation(a: &ChartVersion, b: &ChartVersion) -> Ordering {
    let time = |version: &ChartVersion| {
        let layout = b"2006-01-02T15:04:05Z07:00";
        Time::parse(layout, version.created.as_bytes()).unwrap_or_else(|_| Time::zero())
    };
    time(a).compare(&time(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(list: &[(&str, &str)]) -> Vec<ChartVersion> {
        let version = |(version, created): &(&str, &str)| ChartVersion {
            version: (*version).to_owned(),
            created: format!("2024-01-{created}T00:00:00Z"),
            ..ChartVersion::default()
        };
        list.iter().map(version).collect()
    }

    #[test]
    fn the_newest_in_the_range_counts() {
        let all = versions(&[
            ("2.0.0-rc.1", "09"),
            ("v1.10.0", "01"),
            ("1.2.0+b", "03"),
            ("1.2.0+c", "02"),
            ("1.2", "05"),
            ("1.0.0", "01"),
        ]);
        let cases = [
            ("", "v1.10.0"),
            ("*", "v1.10.0"),
            (">=1.0.0-0", "2.0.0-rc.1"),
            ("2.0.0-rc.1", "2.0.0-rc.1"),
            ("~1.2", "1.2.0+b"),
            ("1.2.0", "1.2.0+b"),
            ("1.2.0+c", "1.2.0+c"),
            ("1.2", "1.2"), // as it is written, though no semantic version
            ("<1.2", "1.0.0"),
            ("1.10.0", "v1.10.0"),
        ];
        for (range, expected) in cases {
            assert_eq!(pick(&all, "app", range).unwrap().version, expected, "{range}");
        }
    }

    #[test]
    fn what_is_not_there_is_said() {
        let all = versions(&[("1.0.0", "01"), ("2.0.0-rc.1", "01")]);
        let message = |range| pick(&all, "app", range).unwrap_err().to_string();
        assert_eq!(message(">=2"), "no 'app' chart with version matching '>=2' found");
        assert_eq!(message("latest"), "improper constraint: \"latest\"");
        assert_eq!(pick(&[], "app", "").unwrap_err(), PickError::NoVersions);
    }
}
