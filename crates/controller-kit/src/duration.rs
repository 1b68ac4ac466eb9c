//! Durations as Go writes them ("750ms", "1h30m"), for flags and for messages.
//!
//! In: text typed by a person or written by Flux. Out: [`Duration`], and back. Negative durations, which Go
//! has, are refused: no flag of a controller has a use for one.

use std::fmt::Write as _;
use std::time::Duration;

/// Why a text is not a Go duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("failed to parse duration {text:?}: {problem}")]
pub struct Error {
    text: String,
    problem: &'static str,
}

/// Nanoseconds in each unit that Go knows. Longer names stand first, so that "ms" is not read as "m".
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5, the micro sign
    ("μs", 1_000), // U+03BC, the Greek letter
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Go's `time.Duration` is an int64 of nanoseconds; what does not fit there is refused here too.
const MAX_NANOSECONDS: u64 = i64::MAX as u64;

/// Parses what Go's `time.ParseDuration` accepts, except negative durations.
pub fn parse(text: &str) -> Result<Duration, Error> {
    let error = |problem| Error {
        text: text.to_owned(),
        problem,
    };
    if text.starts_with('-') {
        return Err(error("must not be negative"));
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(error("is empty"));
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (nanoseconds, after) = parse_term(rest).map_err(error)?;
        total = total
            .checked_add(nanoseconds)
            .filter(|sum| *sum <= MAX_NANOSECONDS)
            .ok_or_else(|| error("is too long"))?;
        rest = after;
    }
    Ok(Duration::from_nanos(total))
}

/// Formats as Go's `Duration.String` does: "1h30m0s", "1.5s", "750ms", "0s".
pub fn format(duration: Duration) -> String {
    let nanoseconds = duration.as_nanos();
    match nanoseconds {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanoseconds}ns"),
        1_000..1_000_000 => with_fraction(nanoseconds, 1_000, "µs"),
        1_000_000..1_000_000_000 => with_fraction(nanoseconds, 1_000_000, "ms"),
        _ => hours_minutes_seconds(nanoseconds),
    }
}

/// Reads one number with its unit; gives nanoseconds and what follows.
fn parse_term(text: &str) -> Result<(u64, &str), &'static str> {
    let number_end = text
        .find(|character: char| !character.is_ascii_digit() && character != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(number_end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return Err("lacks a number");
    }
    if fraction.contains('.') {
        return Err("has a number with two points");
    }
    let unit_end = rest
        .find(|character: char| character.is_ascii_digit() || character == '.')
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(unit_end);
    if unit.is_empty() {
        return Err("lacks a unit");
    }
    let scale = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, scale)| *scale)
        .ok_or("has an unknown unit")?;
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().map_err(|_| "is too long")?
    };
    let nanoseconds = whole
        .checked_mul(scale)
        .and_then(|nanoseconds| nanoseconds.checked_add(scaled_fraction(fraction, scale)))
        .ok_or("is too long")?;
    Ok((nanoseconds, rest))
}

/// The digits after the point, in nanoseconds. Digits beyond what a u64 holds are dropped, as in Go.
fn scaled_fraction(digits: &str, scale: u64) -> u64 {
    let mut value: u128 = 0;
    let mut divisor: u128 = 1;
    for digit in digits.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        divisor *= 10;
    }
    u64::try_from(value * u128::from(scale) / divisor).unwrap_or(u64::MAX)
}

/// `nanoseconds / scale`, with as many decimals as it needs.
fn with_fraction(nanoseconds: u128, scale: u128, unit: &str) -> String {
    let (whole, remainder) = (nanoseconds / scale, nanoseconds % scale);
    if remainder == 0 {
        return format!("{whole}{unit}");
    }
    let width = scale.ilog10() as usize;
    let digits = format!("{remainder:0width$}");
    format!("{whole}.{}{unit}", digits.trim_end_matches('0'))
}

fn hours_minutes_seconds(nanoseconds: u128) -> String {
    const SECOND: u128 = 1_000_000_000;
    let (hours, minutes) = (nanoseconds / (3600 * SECOND), nanoseconds / (60 * SECOND) % 60);
    let mut text = String::new();
    if hours > 0 {
        let _ = write!(text, "{hours}h"); // writing to a String does not fail
    }
    if hours > 0 || minutes > 0 {
        let _ = write!(text, "{minutes}m");
    }
    text + &with_fraction(nanoseconds % (60 * SECOND), SECOND, "s")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let cases: [(&str, u64); 14] = [
            ("0", 0),
            ("0s", 0),
            ("750ms", 750_000_000),
            ("15m", 900_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1h30m0s", 5_400_000_000_000),
            ("1.5s", 1_500_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("+5s", 5_000_000_000),
            ("3us", 3_000),
            ("3µs2ns", 3_002),
            ("2562047h47m16.854775807s", i64::MAX as u64),
            ("0.3333333333333333333h", 1_199_999_999_999),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for text in [
            "",
            "3",
            "-1s",
            "s",
            ".s",
            "1d",
            "1x",
            "1.2.3s",
            "+",
            "1s ",
            "9223372036854775808ns",
            "1e3s",
        ] {
            let error = parse(text).expect_err(text);
            assert!(
                error.to_string().starts_with("failed to parse duration"),
                "{error}"
            );
        }
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        let cases: [(u64, &str); 12] = [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (750_000_000, "750ms"),
            (3_300_000_000, "3.3s"),
            (30_000_000_000, "30s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (600_000_000_000, "10m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (5_400_000_000_000, "1h30m0s"),
        ];
        for (nanoseconds, text) in cases {
            assert_eq!(format(Duration::from_nanos(nanoseconds)), text);
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for nanoseconds in [1, 999, 1_001, 999_999_999, 61_000_000_001, 86_399_123_456_789] {
            let duration = Duration::from_nanos(nanoseconds);
            assert_eq!(parse(&format(duration)), Ok(duration));
        }
    }
}
