//! Durations as Go reads and writes them.

use super::*;

#[test]
fn durations_are_read_and_written() {
    for (text, expected) in [
        ("0", "0s"),
        ("-0", "0s"),
        ("1h", "1h0m0s"),
        ("90m", "1h30m0s"),
        ("1.5h", "1h30m0s"),
        ("-1m30.5s", "-1m30.5s"),
        ("1h2m3s4ms5us6ns", "1h2m3.004005006s"),
        ("1500µs", "1.5ms"),
        ("7μs", "7µs"),
        (".5s", "500ms"),
        ("1.s", "1s"),
        ("999ns", "999ns"),
        ("0.3333333333333333333h", "20m0s"),
        ("9223372036854775807ns", "2562047h47m16.854775807s"),
        ("-9223372036854775808ns", "-2562047h47m16.854775808s"),
    ] {
        assert_eq!(
            Duration::parse(text.as_bytes()).unwrap().to_string(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn what_is_no_duration_is_told_in_go_words() {
    for (text, expected) in [
        ("", r#"time: invalid duration """#),
        ("-", r#"time: invalid duration "-""#),
        ("x", r#"time: invalid duration "x""#),
        (".s", r#"time: invalid duration ".s""#),
        ("3", r#"time: missing unit in duration "3""#),
        ("1d", r#"time: unknown unit "d" in duration "1d""#),
        ("1 h", r#"time: unknown unit " h" in duration "1 h""#),
        (
            "1é\"",
            r#"time: unknown unit "\xc3\xa9\"" in duration "1\xc3\xa9\"""#,
        ),
        (
            "9223372036854775808ns",
            r#"time: invalid duration "9223372036854775808ns""#,
        ),
        ("3000000h", r#"time: invalid duration "3000000h""#),
        (
            "99999999999999999999s",
            r#"time: invalid duration "99999999999999999999s""#,
        ),
    ] {
        assert_eq!(
            Duration::parse(text.as_bytes()).unwrap_err().to_string(),
            expected,
            "{text}"
        );
    }
}

#[test]
fn durations_are_rounded_halves_away_from_zero() {
    let seconds = |seconds: i64| Duration(seconds * Duration::SECOND.0);
    assert_eq!(seconds(90).round(Duration::MINUTE), seconds(120));
    assert_eq!(seconds(-90).round(Duration::MINUTE), seconds(-120));
    assert_eq!(seconds(89).round(Duration::MINUTE), seconds(60));
    assert_eq!(seconds(-119).truncate(Duration::MINUTE), seconds(-60));
    assert_eq!(seconds(90).round(Duration(0)), seconds(90));
    assert_eq!(Duration(i64::MAX).round(Duration::HOUR), Duration(i64::MAX));
    assert_eq!(Duration(i64::MIN).round(Duration::HOUR), Duration(i64::MIN));
    assert_eq!(Duration(i64::MIN).abs(), Duration(i64::MAX));
}

#[test]
fn durations_are_counted_in_units() {
    let duration = Duration::parse(b"1h30m1.5s").unwrap();
    assert_eq!(duration.seconds(), 5401.5);
    assert_eq!(duration.minutes(), 90.025);
    assert_eq!(duration.milliseconds(), 5_401_500);
    assert_eq!(duration.hours(), 1.5 + 1.5 / 3600.0);
}
