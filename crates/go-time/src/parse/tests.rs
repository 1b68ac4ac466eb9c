//! Times as Go reads them.

use super::*;

fn check(layout: &str, value: &str, expected: Result<&str, &str>) {
    let zone = Location::load("Europe/Berlin").unwrap();
    let read = Time::parse_in(layout.as_bytes(), value.as_bytes(), &zone);
    let read = read
        .map(|time| time.to_string())
        .map_err(|error| error.to_string());
    let read = read.as_ref().map(String::as_str).map_err(String::as_str);
    assert_eq!(read, expected, "{layout} {value}");
}

#[test]
fn times_are_read_by_their_layout() {
    for (layout, value, expected) in [
        ("2006-01-02", "2024-07-09", "2024-07-09 00:00:00 +0200 CEST"),
        (
            "2006-01-02T15:04:05Z07:00",
            "2024-01-02T03:04:05.25Z",
            "2024-01-02 03:04:05.25 +0000 UTC",
        ),
        (
            "2006-01-02T15:04:05Z07:00",
            "2024-01-02T03:04:05+01:00",
            "2024-01-02 03:04:05 +0100 CET",
        ),
        (
            "2006-01-02T15:04:05-0700",
            "2024-01-02T03:04:05-0530",
            "2024-01-02 03:04:05 -0530 -0530",
        ),
        (
            "Jan _2 06 3:04pm MST",
            "JAN  2 99 12:04am CEST",
            "1999-01-01 23:04:00 +0100 CET",
        ),
        (
            "2 January 2006 MST",
            "2 july 2024 CET",
            "2024-07-02 01:00:00 +0200 CEST",
        ),
        ("2006 MST", "2024 PST", "2024-01-01 00:00:00 +0000 PST"),
        ("2006 MST", "2024 GMT+3", "2024-01-01 03:00:00 +0300 GMT+3"),
        ("2006 002", "2024 366", "2024-12-31 00:00:00 +0100 CET"),
        ("15:04:05", "01:02:03,5", "0000-01-01 01:02:03.5 +0053 LMT"),
        ("2006  1", "2024 3", "2024-03-01 00:00:00 +0100 CET"),
    ] {
        check(layout, value, Ok(expected));
    }
}

#[test]
fn what_does_not_fit_is_told_in_go_words() {
    for (layout, value, expected) in [
        (
            "2006-01-02",
            "2024/01/02",
            r#""2024/01/02" as "2006-01-02": cannot parse "/01/02" as "-""#,
        ),
        (
            "2006-01-02",
            "x",
            r#""x" as "2006-01-02": cannot parse "x" as "2006""#,
        ),
        (
            "2006-01-02",
            "",
            r#""" as "2006-01-02": cannot parse "" as "2006""#,
        ),
        ("2006-01-02", "2024-13-02", r#""2024-13-02": month out of range"#),
        ("2006-01-02", "2023-02-29", r#""2023-02-29": day out of range"#),
        (
            "2006-01-02",
            "2024-1-02",
            r#""2024-1-02" as "2006-01-02": cannot parse "1-02" as "01""#,
        ),
        ("15:04", "25:00", r#""25:00": hour out of range"#),
        ("15:04", "23:60", r#""23:60": minute out of range"#),
        ("15:04:05", "23:00:61", r#""23:00:61": second out of range"#),
        ("2006", "2024 é", r#""2024 \xc3\xa9": extra text: " \xc3\xa9""#),
        ("PM", "pm", r#""pm" as "PM": cannot parse "pm" as "PM""#),
        ("-0700", "-2500", r#""-2500": time zone offset hour out of range"#),
        ("2006 002", "2023 366", r#""2023 366": day-of-year out of range"#),
        (
            "2006 002 01",
            "2023 032 01",
            r#""2023 032 01": day-of-year does not match month"#,
        ),
        (".000", ".12", r#"".12" as ".000": cannot parse ".12" as ".000""#),
        ("MST", "Mst", r#""Mst" as "MST": cannot parse "Mst" as "MST""#),
    ] {
        check(layout, value, Err(&format!("parsing time {expected}")));
    }
}
