//! Ranges and versions as tables; the recorded answers of Masterminds/semver where they are at hand.

use super::*;

/// Answers in the words of the recorded cases: `CERR` and `VERR` for a range or version that cannot be read.
fn answer((range, version): (&str, &str)) -> &'static str {
    let Ok(constraints) = Constraints::parse(range) else {
        return "CERR";
    };
    match Version::parse(version).map(|version| constraints.check(&version)) {
        Ok(true) => "true",
        Ok(false) => "false",
        Err(_) => "VERR",
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
        (">=1|1.2.3.4", "VERR"),
    ];
    for (case, expected) in cases {
        let (range, version) = case.rsplit_once('|').unwrap();
        assert_eq!(answer((range, version)), expected, "{case}");
    }
}

#[test]
fn what_is_no_range_is_told_in_masterminds_words() {
    let long = ">=".repeat(257);
    let many = "1||".repeat(32);
    let cases = [
        ("", r#"improper constraint: """#),
        ("latest", r#"improper constraint: "latest""#),
        (">1<2", r#"improper constraint: ">1<2""#),
        (">=1 || a\"b", r#"improper constraint: " a\"b""#),
        (">=1,,<2", r#"improper constraint: ">=1,,<2""#),
        (">=1,", r#"improper constraint: ">=1,""#),
        ("1.2.3.4", r#"improper constraint: "1.2.3.4""#),
        ("||", r#"improper constraint: """#),
        (">=1.0 - 2", r#"improper constraint: ">=>= 1.0, <= 2 ""#),
        ("a1 - 2b", r#"improper constraint: "a>= 1, <= 2 b""#),
        ("1x", "constraint parser error"),
        ("1|2", "constraint parser error"),
        ("1.0.0-01", "constraint parser error"),
        ("99999999999999999999", "constraint parser error"),
        (&long, "constraint string is too long (max 512 bytes)"),
        (&many, "too many constraint groups (max 32)"),
    ];
    for (range, expected) in cases {
        assert_eq!(
            Constraints::parse(range).unwrap_err().to_string(),
            expected,
            "{range}"
        );
    }
}

#[test]
fn prereleases_are_looked_at_when_asked_for() {
    let mut constraints = Constraints::parse(">=1").unwrap();
    let version = Version::parse("2.0.0-rc.1").unwrap();
    assert!(!constraints.check(&version));
    constraints.include_prerelease = true;
    assert!(constraints.check(&version));
}
