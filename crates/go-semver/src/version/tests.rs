//! Versions as tables; what the Go library answers.

use super::*;

#[test]
fn versions_are_read_generously_or_refused_in_masterminds_words() {
    let long = "1".repeat(257);
    let cases = [
        ("1.2.3", Ok("1.2.3")),
        ("v1.2", Ok("1.2.0")),
        ("1", Ok("1.0.0")),
        ("01.002.3", Ok("1.2.3")),
        ("v1.2.3-rc.1+meta.7", Ok("1.2.3-rc.1+meta.7")),
        ("1-a", Ok("1.0.0-a")),
        ("1.2+b", Ok("1.2.0+b")),
        ("", Err("invalid semantic version")),
        ("V1.2", Err("invalid semantic version")),
        ("v", Err("invalid semantic version")),
        ("1.x", Err("invalid semantic version")),
        ("1.2.3.4", Err("invalid semantic version")),
        (" 1.2", Err("invalid semantic version")),
        ("1.0.0-a..b", Err("invalid semantic version")),
        ("1.0.0-01", Err("version segment starts with 0")),
        (&long, Err("version string is too long (max 256 bytes)")),
        (
            "1.99999999999999999999",
            Err(
                "error parsing version segment: strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        ),
    ];
    for (text, expected) in cases {
        check(Version::parse(text), text, expected);
    }
}

#[test]
fn strict_versions_are_refused_in_masterminds_words() {
    let cases = [
        ("1.2.3-rc.1+meta.7", Ok("1.2.3-rc.1+meta.7")),
        ("", Err("version string empty")),
        ("1.2", Err("invalid semantic version")),
        ("v1.2.3", Err("invalid characters in version")),
        ("1.02.3", Err("version segment starts with 0")),
        ("1.2.3-", Err("invalid prerelease string")),
        ("1.2.3-a_b", Err("invalid prerelease string")),
        ("1.2.3-01", Err("version segment starts with 0")),
        ("1.2.3+", Err("invalid metadata string")),
        ("1.2.3+a+b", Err("invalid metadata string")),
        ("1.2.3.4", Err("invalid characters in version")),
        ("1..3", Err("strconv.ParseUint: parsing \"\": invalid syntax")),
        (
            "1.99999999999999999999.0",
            Err("strconv.ParseUint: parsing \"99999999999999999999\": value out of range"),
        ),
    ];
    for (text, expected) in cases {
        check(Version::parse_strict(text), text, expected);
    }
}

fn check(read: Result<Version, Error>, text: &str, expected: Result<&str, &str>) {
    match (read, expected) {
        (Ok(version), Ok(expected)) => {
            assert_eq!(version.to_string(), expected);
            assert_eq!(version.original(), text);
        }
        (Err(error), Err(expected)) => assert_eq!(error.to_string(), expected, "{text}"),
        (read, expected) => panic!("{text}: {read:?} instead of {expected:?}"),
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
        assert_eq!(a.compare(&b), Ordering::Less, "{pair:?}");
    }
}

#[test]
fn a_raised_version_keeps_its_v_and_nothing_behind_its_numbers() {
    let version = Version::parse("v1.2.3-rc.1+meta").unwrap();
    let originals = [version.inc_major(), version.inc_minor(), version.inc_patch()];
    let originals = originals.map(|raised| raised.unwrap().original().to_owned());
    assert_eq!(originals, ["v2.0.0", "v1.3.0", "v1.2.3"]);
    let release = version.inc_patch().unwrap();
    assert_eq!(release.inc_patch().unwrap().to_string(), "1.2.4");
    let last = Version::parse("0.0.18446744073709551615").unwrap();
    assert_eq!(last.inc_patch(), None);
}

#[test]
fn prerelease_and_metadata_are_replaced_when_valid() {
    let version = Version::parse("v1.2").unwrap();
    let changed = version.set_prerelease("rc.1").unwrap().set_metadata("7").unwrap();
    assert_eq!(changed.original(), "v1.2.0-rc.1+7");
    assert_eq!(changed.set_prerelease("").unwrap().to_string(), "1.2.0+7");
    assert_eq!(version.set_prerelease("a..b"), Err(Error::InvalidPrerelease));
    assert_eq!(version.set_prerelease("01"), Err(Error::SegmentStartsZero));
    assert_eq!(version.set_metadata("a_b"), Err(Error::InvalidMetadata));
}
