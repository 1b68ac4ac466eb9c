//! Times as Go writes them.

use crate::{Duration, Location, Time};

fn check(time: &Time, layout: &str, expected: &str) {
    let text = time.format(layout.as_bytes());
    assert_eq!(str::from_utf8(&text), Ok(expected), "{layout}");
}

#[test]
fn elements_of_a_layout_are_written() {
    let zone = Location::load("America/St_Johns").unwrap();
    let time = Time::from_unix(1_720_483_509, 120_000_000, zone);
    for (layout, expected) in [
        ("2006-01-02T15:04:05Z07:00", "2024-07-08T21:35:09-02:30"),
        (
            "Monday, January 2 2006 3:4:5 pm MST",
            "Monday, July 8 2024 9:35:9 pm NDT",
        ),
        ("Mon Jan _2 06 03PM", "Mon Jul  8 24 09PM"),
        ("002 __2 _2006", "190 190 _2024"),
        (
            "-0700 -07 -07:00:00 Z0700 Z070000",
            "-0230 -02 -02:30:00 -0230 -023000",
        ),
        (".000 .999 ,999999 .0 .9999999990", ".120 .12 ,12 .1 .9999999990"),
        ("Month Monster Janet June 1 é", "Month Monster Janet June 7 é"),
        ("", ""),
    ] {
        check(&time, layout, expected);
    }
}

#[test]
fn universal_time_and_zones_without_name_have_forms_of_their_own() {
    let utc = Time::from_unix(0, 0, Location::UTC);
    check(&utc, "Z07:00 -07:00 MST", "Z +00:00 UTC");
    let unnamed = utc.in_location(Location::fixed("", -5400));
    check(&unnamed, "MST 15:04", "-0130 22:30");
    assert_eq!(unnamed.to_string(), "1969-12-31 22:30:00 -0130 -0130");
}

#[test]
fn years_may_be_any() {
    check(&Time::zero(), "2006-01-02 Mon", "0001-01-01 Mon");
    check(
        &Time::from_unix(-62_198_755_200, 0, Location::UTC),
        "2006 06",
        "-0001 01",
    );
    check(
        &Time::from_unix(i64::MAX, 0, Location::UTC),
        "2006",
        "292277026596",
    );
}

#[test]
fn local_clocks_are_brought_to_instants() {
    let berlin = Location::load("Europe/Berlin").unwrap();
    // The hour that does not exist, and the one that exists twice.
    let gap = Time::from_date((2024, 3, 31), (2, 30, 0), 0, berlin.clone());
    check(&gap, "15:04 MST", "03:30 CEST");
    let fold = Time::from_date((2024, 10, 27), (2, 30, 0), 0, berlin);
    check(&fold, "15:04 MST", "02:30 CET");
    check(&fold.add(Duration(-Duration::HOUR.0)), "15:04 MST", "02:30 CEST");
    check(
        &fold.add_date(0, 1, 4),
        "2006-01-02 15:04 MST",
        "2024-12-01 02:30 CET",
    );
}

#[test]
fn places_are_found_by_their_exact_name() {
    assert!(Location::load("Asia/Kathmandu").is_some());
    assert!(Location::load("").is_some_and(|utc| utc == Location::UTC));
    for name in ["europe/berlin", "Nowhere", "../UTC", "/etc/localtime"] {
        assert!(Location::load(name).is_none(), "{name}");
    }
}

#[test]
fn times_are_rounded_since_the_zero_time() {
    let time = Time::from_unix(1_720_483_509, 500_000_000, Location::UTC);
    check(&time.round(Duration::SECOND), "15:04:05.999", "00:05:10");
    check(&time.truncate(Duration::HOUR), "15:04:05.999", "00:00:00");
    assert_eq!(time.sub(&Time::zero()), Duration(i64::MAX));
    assert_eq!(Time::zero().sub(&time), Duration(i64::MIN));
    assert_eq!(time.sub(&time.add(Duration::MINUTE)).to_string(), "-1m0s");
}
