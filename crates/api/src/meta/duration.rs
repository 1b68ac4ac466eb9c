//! Durations as Go writes them: `1m30s`, `500ms`, `1h0m0s`.
//!
//! The API has them as text. Reading and writing follow `time.ParseDuration` and `time.Duration.String` of Go,
//! so that a value that we write is byte for byte what Flux would write.

use std::{fmt, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use thiserror::Error;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// A span of time in nanoseconds, in the range of Go's `time.Duration` (about 292 years either way).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration {
    nanoseconds: i64,
}

/// Why a text is no duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ParseDurationError {
    /// The text is not made of numbers with units.
    #[error("failed to parse duration: not a sequence of decimal numbers with units")]
    Syntax,
    /// A number has no unit, and is not a lone zero.
    #[error("failed to parse duration: missing unit")]
    MissingUnit,
    /// There is no such unit.
    #[error("failed to parse duration: unknown unit")]
    UnknownUnit,
    /// The duration is longer than about 292 years.
    #[error("failed to parse duration: out of range")]
    OutOfRange,
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self { nanoseconds: 0 };
    /// The longest duration that can be written.
    pub const MAX: Self = Self {
        nanoseconds: i64::MAX,
    };

    /// That many nanoseconds.
    #[must_use]
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self { nanoseconds }
    }

    /// That many seconds; the longest duration if they do not fit.
    #[must_use]
    pub const fn from_secs(seconds: u32) -> Self {
        // u32::MAX seconds are 4.3e18 ns, and i64 holds 9.2e18.
        Self {
            nanoseconds: seconds as i64 * NANOSECONDS_PER_SECOND as i64,
        }
    }

    /// The whole length in nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.nanoseconds
    }

    /// The same span for the standard library; a negative one becomes zero.
    #[must_use]
    pub const fn to_std(self) -> std::time::Duration {
        if self.nanoseconds < 0 {
            return std::time::Duration::ZERO;
        }
        std::time::Duration::from_nanos(self.nanoseconds as u64)
    }

    /// Returns whether this is no time at all.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.nanoseconds == 0
    }
}

/// A span that is too long becomes the longest that can be written.
impl From<std::time::Duration> for Duration {
    fn from(span: std::time::Duration) -> Self {
        Self {
            nanoseconds: i64::try_from(span.as_nanos()).unwrap_or(i64::MAX),
        }
    }
}

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> Self {
        duration.to_std()
    }
}

/// As Go's `time.Duration.String`: below one second the largest of ns, µs and ms that leaves a leading digit
/// other than zero, else hours, minutes and seconds from the first that is not zero on.
impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.nanoseconds.unsigned_abs();
        if self.nanoseconds < 0 {
            formatter.write_str("-")?;
        }
        if length < NANOSECONDS_PER_SECOND {
            return match length {
                0 => formatter.write_str("0s"),
                1..1_000 => write!(formatter, "{length}ns"),
                1_000..1_000_000 => write_decimal(formatter, length, 1_000, "µs"),
                _ => write_decimal(formatter, length, 1_000_000, "ms"),
            };
        }
        let minutes = length / (60 * NANOSECONDS_PER_SECOND);
        if minutes >= 60 {
            write!(formatter, "{}h", minutes / 60)?;
        }
        if minutes > 0 {
            write!(formatter, "{}m", minutes % 60)?;
        }
        write_decimal(
            formatter,
            length % (60 * NANOSECONDS_PER_SECOND),
            NANOSECONDS_PER_SECOND,
            "s",
        )
    }
}

/// Writes `amount / unit` with as many decimals as it needs, and the unit's name.
fn write_decimal(formatter: &mut fmt::Formatter<'_>, amount: u64, unit: u64, name: &str) -> fmt::Result {
    let width = unit.ilog10() as usize;
    let decimals = format!("{:0width$}", amount % unit);
    let decimals = decimals.trim_end_matches('0');
    let point = if decimals.is_empty() { "" } else { "." };
    write!(formatter, "{}{point}{decimals}{name}", amount / unit)
}

/// As Go's `time.ParseDuration`.
impl FromStr for Duration {
    type Err = ParseDurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self::ZERO);
        }
        if rest.is_empty() {
            return Err(ParseDurationError::Syntax);
        }
        // Go sums up to 2^63, which only a negative duration may reach.
        let limit = 1_u64 << 63;
        let mut total = 0_u64;
        while !rest.is_empty() {
            let (amount, after) = parse_amount(rest)?;
            total = total
                .checked_add(amount)
                .filter(|sum| *sum <= limit)
                .ok_or(ParseDurationError::OutOfRange)?;
            rest = after;
        }
        let signed = if negative {
            -i128::from(total)
        } else {
            i128::from(total)
        };
        let nanoseconds = i64::try_from(signed).map_err(|_| ParseDurationError::OutOfRange)?;
        Ok(Self { nanoseconds })
    }
}

/// Reads one number and its unit off the front; returns nanoseconds and what follows.
fn parse_amount(text: &str) -> Result<(u64, &str), ParseDurationError> {
    let (whole, rest) = split_digits(text);
    let (decimals, rest) = match rest.strip_prefix('.') {
        Some(after_point) => split_digits(after_point),
        None => ("", rest),
    };
    if whole.is_empty() && decimals.is_empty() {
        return Err(ParseDurationError::Syntax);
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = nanoseconds_of(unit)?;

    let whole = if whole.is_empty() {
        Ok(0)
    } else {
        whole.parse::<u64>()
    };
    let whole = whole
        .ok()
        .filter(|whole| *whole <= 1 << 63)
        .ok_or(ParseDurationError::OutOfRange)?;
    let amount = whole.checked_mul(unit).ok_or(ParseDurationError::OutOfRange)?;
    let amount = amount
        .checked_add(fraction(decimals, unit))
        .filter(|amount| *amount <= 1 << 63);
    Ok((amount.ok_or(ParseDurationError::OutOfRange)?, rest))
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

/// The decimals as part of a unit. Go computes this in floating point and cuts off, and so does this, to come to
/// the same nanosecond. Digits that do not fit into 63 bits are ignored, as there.
fn fraction(decimals: &str, unit: u64) -> u64 {
    let mut digits = 0_u64;
    let mut scale = 1_f64;
    for digit in decimals.bytes() {
        let next = digits
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(digit - b'0')));
        let Some(next) = next.filter(|next| *next < 1 << 63) else {
            break;
        };
        digits = next;
        scale *= 10.0;
    }
    (digits as f64 * (unit as f64 / scale)) as u64
}

fn nanoseconds_of(unit: &str) -> Result<u64, ParseDurationError> {
    match unit {
        "" => Err(ParseDurationError::MissingUnit),
        "ns" => Ok(1),
        // Both the micro sign and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => Ok(1_000),
        "ms" => Ok(1_000_000),
        "s" => Ok(NANOSECONDS_PER_SECOND),
        "m" => Ok(60 * NANOSECONDS_PER_SECOND),
        "h" => Ok(3_600 * NANOSECONDS_PER_SECOND),
        _ => Err(ParseDurationError::UnknownUnit),
    }
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The pattern in the CRDs lets through what is too long for Go. Flux cannot read a list with such an object in
/// it at all; here it is the longest duration there is.
impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(deserializer)?;
        match text.parse() {
            Ok(duration) => Ok(duration),
            Err(ParseDurationError::OutOfRange) => Ok(Self::MAX),
            Err(error) => Err(D::Error::custom(error)),
        }
    }
}

/// Plain text: the pattern differs by field, and is written there.
impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nanoseconds of a text that can be parsed.
    #[track_caller]
    fn parses(text: &str, nanoseconds: i64) {
        assert_eq!(text.parse(), Ok(Duration::from_nanos(nanoseconds)), "{text}");
    }

    /// As `go doc time.ParseDuration` has it; the odd ones are from the table of Go's own test of it.
    #[test]
    fn texts_mean_what_they_mean_to_go() {
        const S: i64 = 1_000_000_000;
        for (text, nanoseconds) in [
            ("0", 0),
            ("0s", 0),
            ("5s", 5 * S),
            ("1478s", 1478 * S),
            ("-5s", -5 * S),
            ("+5s", 5 * S),
            ("-0", 0),
            ("5.6s", 5 * S + 600_000_000),
            ("5.s", 5 * S),
            (".5s", S / 2),
            ("1.004s", S + 4_000_000),
            ("1.00400s", S + 4_000_000),
            ("100.00100s", 100 * S + 1_000_000),
            ("10ns", 10),
            ("11us", 11_000),
            ("12µs", 12_000),
            ("12μs", 12_000),
            ("13ms", 13_000_000),
            ("15m", 15 * 60 * S),
            ("16h", 16 * 3600 * S),
            ("3h30m", 12_600 * S),
            ("10.5s4m", 250 * S + S / 2),
            ("1h2m3s4ms5us6ns", 3_723 * S + 4_005_006),
            ("52763797000ns", 52_763_797_000),
            ("9007199254740993ns", 9_007_199_254_740_993),
            ("9223372036854775807ns", i64::MAX),
            ("-9223372036854775808ns", i64::MIN),
            ("9223372036s854ms775us807ns", i64::MAX),
            ("0.100000000000000000000h", 360 * S),
            ("0.830103483285477580700h", 2_988_372_539_827),
            ("0.3333333333333333333h", 1200 * S),
            ("0.9223372036854775807s", 922_337_203),
        ] {
            parses(text, nanoseconds);
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        use ParseDurationError::{MissingUnit, OutOfRange, Syntax, UnknownUnit};
        for (text, error) in [
            ("", Syntax),
            ("-", Syntax),
            ("+", Syntax),
            ("s", Syntax),
            (".", Syntax),
            (".s", Syntax),
            ("+.s", Syntax),
            ("--5s", Syntax),
            (" 5s", Syntax),
            ("3", MissingUnit),
            ("1h3", MissingUnit),
            ("3.5", MissingUnit),
            ("1d", UnknownUnit),
            ("5S", UnknownUnit),
            ("5s ", UnknownUnit),
            ("3000000h", OutOfRange),
            ("9223372036854775808ns", OutOfRange),
            ("9223372036854ms775us808ns", OutOfRange),
            ("-9223372036854775809ns", OutOfRange),
            ("99999999999999999999999s", OutOfRange),
        ] {
            assert_eq!(text.parse::<Duration>(), Err(error), "{text:?}");
        }
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (nanoseconds, text) in [
            (0, "0s"),
            (1, "1ns"),
            (1_100, "1.1µs"),
            (2_200_000, "2.2ms"),
            (999_999_999, "999.999999ms"),
            (1_000_000_000, "1s"),
            (3_300_000_000, "3.3s"),
            (60_000_000_000, "1m0s"),
            (90_000_000_000, "1m30s"),
            (245_000_000_000, "4m5s"),
            (245_001_000_000, "4m5.001s"),
            (18_367_001_000_000, "5h6m7.001s"),
            (480_000_000_001, "8m0.000000001s"),
            (3_600_000_000_000, "1h0m0s"),
            (-90_000_000_000, "-1m30s"),
            (i64::MAX, "2562047h47m16.854775807s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(Duration::from_nanos(nanoseconds).to_string(), text);
            parses(text, nanoseconds);
        }
    }

    #[test]
    fn conversions_stay_in_range() {
        assert_eq!(Duration::from(std::time::Duration::MAX), Duration::MAX);
        assert_eq!(Duration::from_nanos(-1).to_std(), std::time::Duration::ZERO);
        assert_eq!(
            Duration::from_secs(u32::MAX).to_std().as_secs(),
            u64::from(u32::MAX)
        );
    }
}
