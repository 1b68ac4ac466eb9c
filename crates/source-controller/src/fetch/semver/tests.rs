//! Ranges and versions as tables; the recorded answers of Masterminds/semver where they are at hand.

use super::*;

/// Answers in the words of the recorded cases: `CERR` and `VERR` for a range or version that cannot be read.
fn answer((range, version): (&str, &str)) -> &'static str {
    let Ok(constraint) = Constraint::parse(range) else {
        return "CERR";
    };
    let Ok(version) = Version::parse(version) else {
        return "VERR";
    };
    if constraint.matches(&version) {
        "true"
    } else {
        "false"
    }
}

#[test]
fn agrees_with_masterminds_on_every_recorded_case() {
    let recorded = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../shared/conformance/semver/masterminds-3.5.0.expected.txt"
    );
    let Ok(recorded) = std::fs::read_to_string(recorded) else {
        return;
    };
    let differing: Vec<_> = recorded
        .lines()
        .filter_map(|line| line.split_once('\t'))
        // The recording split its lines at the first bar, also where the range holds one.
        .filter_map(|(case, expected)| Some((case.split_once('|')?, expected)))
        .filter(|(case, expected)| answer(*case) != *expected)
        .map(|(case, expected)| format!("{case:?}: {} instead of {expected}", answer(case)))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(recorded.lines().count() >= 800);
}

#[test]
fn ranges_follow_masterminds_rules() {
    let cases = [
        (">=1.0.0|1.2", "true"),
        (">=1.0.0|2.0.0-rc.1", "false"),
        (">=1.0.0-0|2.0.0-rc.1", "true"),
        (">=1.2.3-rc.1 <1.3.0|1.2.3-rc.1", "true"),
        (">=1.2.3-rc.1 <1.3.0|1.3.0-alpha", "true"),
        ("^0.2|0.2.9", "true"),
        ("^0.2|0.3.0", "false"),
        ("^0.0.3|0.0.4", "false"),
        ("^0|0.9.0", "true"),
        ("~1.2.3|1.2.9", "true"),
        ("~1.2.3|1.3.0", "false"),
        ("~0.0.0|7.0.0", "true"),
        ("*|7.0.0", "true"),
        ("!=1.2.x|1.2.7", "false"),
        ("!=1.2.x|1.3.0", "true"),
        (">1|1.9.9", "false"),
        (">1.2|1.3.0", "true"),
        ("<=1.2|1.2.9", "true"),
        ("<=1|2.0.0", "false"),
        ("1.0 - 2.0|2.0.5", "true"),
        ("1.2.3 - 2|2.9.0", "true"),
        ("1.2.3 - 2|3.0.0", "false"),
        (">=1.0,<2.0|1.5.0", "true"),
        ("1.x || >=3.0.0|3.1.0", "true"),
        ("=1.2.3|1.2.3+build", "true"),
        ("|1.0.0", "CERR"),
        ("latest|1.0.0", "CERR"),
        (">1<2|1.5.0", "CERR"),
        (">=1,,<2|1.5.0", "CERR"),
        (">=1,|1.5.0", "CERR"),
        ("1.2.3.4|1.2.3", "CERR"),
        ("1x|1.0.0", "CERR"),
        ("1.0.0-01|1.0.0", "CERR"),
        ("||1.0.0", "CERR"),
        ("99999999999999999999|1.0.0", "CERR"),
        (">=1|1.2.3.4", "VERR"),
        (">=1|v", "VERR"),
        (">=1|1.x", "VERR"),
        (">=1|1.0.0-a..b", "VERR"),
    ];
    for (case, expected) in cases {
        let (range, version) = case.rsplit_once('|').unwrap();
        assert_eq!(answer((range, version)), expected, "{case}");
    }
}

#[test]
fn prereleases_are_ordered_by_identifier() {
    let ascending = [
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-10",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-rc.9",
        "1.0.0",
    ];
    for pair in ascending.windows(2) {
        let [a, b] = [Version::parse(pair[0]).unwrap(), Version::parse(pair[1]).unwrap()];
        assert_eq!(a.cmp_precedence(&b), Ordering::Less, "{pair:?}");
    }
}

#[test]
fn the_highest_tag_is_taken_as_it_was_written() {
    let highest =
        |range: &str, tags: &[&'static str]| Constraint::parse(range).unwrap().highest(tags.iter().copied());
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
    assert_eq!(highest("^1", &tags), Some("1.10.0"));
    assert_eq!(highest("<1.1", &tags), Some("v1.0.0"));
    assert_eq!(highest(">=2 <3", &tags), None, "v2 and 2.0 have not three parts");
    assert_eq!(highest(">=2025.1", &tags), Some("2025.02.03"));
    assert_eq!(highest(">=3.0.0-0 <4", &tags), Some("3.0.0-rc.1"));
}

#[test]
fn equal_versions_are_told_apart_by_metadata_whatever_their_order() {
    let constraint = Constraint::parse("1.x").unwrap();
    assert_eq!(constraint.highest(["1.0.0+9", "1.0.0+10"]), Some("1.0.0+10"));
    assert_eq!(constraint.highest(["1.0.0+10", "1.0.0+9"]), Some("1.0.0+10"));
}
