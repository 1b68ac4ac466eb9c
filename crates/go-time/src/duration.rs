//! Spans of time in nanoseconds: read, printed, rounded.

use std::fmt;

use crate::quote::quote;

/// A span of time in nanoseconds, of at most 292 years. `Display` writes it as Go's String does, such as `1h30m0.5s`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

impl Duration {
    /// A billionth of a second.
    pub const NANOSECOND: Self = Self(1);
    /// A millionth of a second.
    pub const MICROSECOND: Self = Self(1_000);
    /// A thousandth of a second.
    pub const MILLISECOND: Self = Self(1_000_000);
    /// A second.
    pub const SECOND: Self = Self(1_000_000_000);
    /// A minute.
    pub const MINUTE: Self = Self(60 * Self::SECOND.0);
    /// An hour.
    pub const HOUR: Self = Self(60 * Self::MINUTE.0);

    /// Reads what [`fmt::Display`] writes, and more: `-1.5h`, `2h45m`, `300ms` (time.ParseDuration).
    pub fn parse(text: &[u8]) -> Result<Self, ParseDurationError> {
        let invalid = || ParseDurationError::Invalid(quote(text));
        let (negative, mut rest) = match text {
            [sign @ (b'-' | b'+'), rest @ ..] => (*sign == b'-', rest),
            _ => (false, text),
        };
        if rest == b"0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let nanoseconds;
            (nanoseconds, rest) = parse_element(rest, text)?;
            total = total
                .checked_add(nanoseconds)
                .filter(|&total| total <= 1 << 63)
                .ok_or_else(invalid)?;
        }
        if negative {
            return Ok(Self(total.wrapping_neg().cast_signed()));
        }
        i64::try_from(total).map(Self).map_err(|_| invalid())
    }

    /// The whole microseconds.
    #[must_use]
    pub fn microseconds(self) -> i64 {
        self.0 / Self::MICROSECOND.0
    }

    /// The whole milliseconds.
    #[must_use]
    pub fn milliseconds(self) -> i64 {
        self.0 / Self::MILLISECOND.0
    }

    /// The seconds with their fraction.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.count(Self::SECOND)
    }

    /// The minutes with their fraction.
    #[must_use]
    pub fn minutes(self) -> f64 {
        self.count(Self::MINUTE)
    }

    /// The hours with their fraction.
    #[must_use]
    pub fn hours(self) -> f64 {
        self.count(Self::HOUR)
    }

    /// The next multiple of `unit` towards zero; itself where that is not positive.
    #[must_use]
    pub fn truncate(self, unit: Self) -> Self {
        if unit.0 <= 0 {
            return self;
        }
        Self(self.0 - self.0 % unit.0)
    }

    /// The nearest multiple of `unit`, halves away from zero; the greatest or least duration where that is beyond it.
    #[must_use]
    pub fn round(self, unit: Self) -> Self {
        if unit.0 <= 0 {
            return self;
        }
        let remainder = self.0 % unit.0;
        let is_less_than_half = remainder.unsigned_abs().wrapping_mul(2) < unit.0.unsigned_abs();
        if is_less_than_half {
            return Self(self.0 - remainder);
        }
        let up = unit.0 - remainder.abs();
        Self(if self.0 < 0 {
            self.0.saturating_sub(up)
        } else {
            self.0.saturating_add(up)
        })
    }

    /// Its size without sign; the greatest duration for the least one.
    #[must_use]
    pub fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// As Go divides: whole and fraction apart, so that large durations keep their digits.
    fn count(self, unit: Self) -> f64 {
        (self.0 / unit.0) as f64 + (self.0 % unit.0) as f64 / unit.0 as f64
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        let total = self.0.unsigned_abs();
        match total {
            0 => return f.write_str("0s"),
            1..1_000 => return write!(f, "{total}ns"),
            1_000..1_000_000 => return write!(f, "{}µs", Decimal(total, 3)),
            1_000_000..1_000_000_000 => return write!(f, "{}ms", Decimal(total, 6)),
            _ => {}
        }
        let minutes = total / Self::MINUTE.0.unsigned_abs();
        if minutes >= 60 {
            write!(f, "{}h", minutes / 60)?;
        }
        if minutes > 0 {
            write!(f, "{}m", minutes % 60)?;
        }
        write!(f, "{}s", Decimal(total % Self::MINUTE.0.unsigned_abs(), 9))
    }
}

/// A number with so many digits behind the point, of which zeroes at the end are left out.
struct Decimal(u64, usize);

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, digits) = *self;
        let scale = 10_u64.pow(digits as u32);
        write!(f, "{}", number / scale)?;
        let fraction = format!("{:0digits$}", number % scale);
        match fraction.trim_end_matches('0') {
            "" => Ok(()),
            fraction => write!(f, ".{fraction}"),
        }
    }
}

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseDurationError {
    /// It has not the form of one, or is too long a time.
    #[error("time: invalid duration {0}")]
    Invalid(String),
    /// A number has no unit.
    #[error("time: missing unit in duration {0}")]
    MissingUnit(String),
    /// A number has a unit that is none.
    #[error("time: unknown unit {unit} in duration {text}")]
    UnknownUnit {
        /// The unit, in quotes.
        unit: String,
        /// The whole text, in quotes.
        text: String,
    },
}

/// Reads a number and its unit. Answers nanoseconds, at most 2^63.
fn parse_element<'a>(element: &'a [u8], text: &[u8]) -> Result<(u64, &'a [u8]), ParseDurationError> {
    let invalid = || ParseDurationError::Invalid(quote(text));
    let (digits, rest) = split_digits(element);
    let whole = leading_integer(digits).ok_or_else(invalid)?;
    let (fraction, rest) = match rest.strip_prefix(b".") {
        Some(rest) => split_digits(rest),
        None => (&b""[..], rest),
    };
    if digits.is_empty() && fraction.is_empty() {
        return Err(invalid());
    }
    let is_of_unit = |b: &u8| *b != b'.' && !b.is_ascii_digit();
    let (unit, rest) = rest.split_at(rest.iter().take_while(|b| is_of_unit(b)).count());
    if unit.is_empty() {
        return Err(ParseDurationError::MissingUnit(quote(text)));
    }
    let nanoseconds = nanoseconds_of(unit).ok_or_else(|| ParseDurationError::UnknownUnit {
        unit: quote(unit),
        text: quote(text),
    })?;
    if whole > (1 << 63) / nanoseconds {
        return Err(invalid());
    }
    let (fraction, scale) = leading_fraction(fraction);
    let fraction = (fraction as f64 * (nanoseconds as f64 / scale)) as u64;
    let total = whole * nanoseconds + fraction;
    if total > 1 << 63 {
        return Err(invalid());
    }
    Ok((total, rest))
}

fn nanoseconds_of(unit: &[u8]) -> Option<u64> {
    let unit = match str::from_utf8(unit).ok()? {
        "ns" => Duration::NANOSECOND,
        "us" | "\u{b5}s" | "\u{3bc}s" => Duration::MICROSECOND,
        "ms" => Duration::MILLISECOND,
        "s" => Duration::SECOND,
        "m" => Duration::MINUTE,
        "h" => Duration::HOUR,
        _ => return None,
    };
    Some(unit.0.unsigned_abs())
}

fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|b| b.is_ascii_digit()).count())
}

/// The value of digits; None beyond 2^63.
pub(crate) fn leading_integer(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |value, digit| {
        let longer = value.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        (value <= (1 << 63) / 10 && longer <= 1 << 63).then_some(longer)
    })
}

/// The digits of a fraction as a number, and what it must be divided by; digits that do not fit are left out.
fn leading_fraction(digits: &[u8]) -> (u64, f64) {
    let (mut value, mut scale) = (0_u64, 1.0);
    for digit in digits {
        if value > ((1 << 63) - 1) / 10 {
            break;
        }
        let longer = value * 10 + u64::from(digit - b'0');
        if longer > 1 << 63 {
            break;
        }
        value = longer;
        scale *= 10.0;
    }
    (value, scale)
}

#[cfg(test)]
mod tests;
