//! Dates as sprig gives them, in the places that the templates name.

use go_template::Value;

fn check(template: &str, expected: &str) {
    crate::testing::check(template, &Value::Nil, expected);
}

#[test]
fn dates_are_written_in_a_zone() {
    check(
        r#"{{ dateInZone "2006-01-02 15:04 MST" 1600000000 "America/New_York" }}"#,
        "2020-09-13 08:26 EDT",
    );
    check(
        r#"{{ date_in_zone "15:04" (int64 1600000000) "Nope/Zone" }}"#,
        "12:26",
    );
    check(r#"{{ htmlDateInZone 0 "UTC" }}"#, "1970-01-01");
    check(
        r#"{{ now | date "2006" | len }} {{ ago now }} {{ kindOf (now | unixEpoch) }}"#,
        "4 0s string",
    );
    check(
        r#"{{ eq (dateInZone "2006" 1.5 "UTC") (dateInZone "2006" now "UTC") }}"#,
        "true",
    );
}

#[test]
fn dates_are_read_and_moved() {
    check(
        r#"{{ $t := toDate "2006-01-02 -0700" "2021-03-04 +0000" }}{{ unixEpoch $t }} {{ $t.Year }} {{ $t.Month }} {{ $t.Weekday }}"#,
        "1614816000 2021 March Thursday",
    );
    check(
        r#"{{ toDate "2006-01-02 MST" "2021-03-04 UTC" | dateModify "-1.5h" }}"#,
        "2021-03-03 22:30:00 +0000 UTC",
    );
    check(
        r#"{{ (toDate "2006 MST" "2021 UTC" | date_modify "x").UTC }}"#,
        "2021-01-01 00:00:00 +0000 UTC",
    );
    check(
        r#"{{ mustDateModify "zz" now }}"#,
        r#"error calling mustDateModify: time: invalid duration "zz""#,
    );
    check(r#"{{ toDate "2006" "x" }}"#, "0001-01-01 00:00:00 +0000 UTC");
    check(
        r#"{{ mustToDate "2006" "x" }}"#,
        r#"error calling mustToDate: parsing time "x" as "2006": cannot parse "x" as "2006""#,
    );
}

#[test]
fn durations_are_written_and_rounded() {
    check(
        r#"{{ duration 95 }} {{ duration "3661" }} {{ duration (int64 95) }} {{ duration "x" }}"#,
        "0s 1h1m1s 1m35s 0s",
    );
    check(
        r#"{{ durationRound "2h10m5s" }} {{ durationRound 100 }} {{ durationRound "400h" }} {{ durationRound "-9000h" }} {{ durationRound "1h" }}"#,
        "2h 0s 16d 1y 60m",
    );
}

#[test]
fn times_have_the_methods_of_go() {
    let of = |method: &str| {
        format!(r#"{{{{ $t := toDate "2006-01-02 MST" "2024-02-29 UTC" }}}}{{{{ {method} }}}}"#)
    };
    check(&of("$t.AddDate 1 0 0"), "2025-03-01 00:00:00 +0000 UTC");
    check(&of("$t.Add 1000000000"), "2024-02-29 00:00:01 +0000 UTC");
    check(&of(r#"$t.Sub (toDate "2006 MST" "2024 UTC")"#), "1416h0m0s");
    check(&of(r#"($t.Sub (toDate "2006 MST" "2024 UTC")).Hours"#), "1416");
    check(&of("$t.YearDay"), "60");
    check(&of("$t.After now"), "false");
    check(&of("$t.Format \"Jan 2\""), "Feb 29");
    check(
        &of("printf \"%d %s %T\" $t.Month $t.Month $t"),
        "2 February time.Time",
    );
    check(&of("$t | toJson"), r#""2024-02-29T00:00:00Z""#);
}
