//! Numbers of any size, compared exactly, and as golang.org/x/text prints them in English.

use std::cmp::Ordering;

/// A decimal number: the digits, without zeros at either end, times a power of ten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    exponent: i64,
}

/// Go's big.Rat reads no number with a greater exponent.
const MAX_EXPONENT: i64 = 1_000_000;

impl Decimal {
    /// Reads a JSON number.
    pub(super) fn read(text: &str) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent.parse().ok()?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if exponent.abs() > MAX_EXPONENT {
            return None;
        }
        let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|c| c - b'0').collect();
        let exponent = exponent - i64::try_from(fraction.len()).ok()?;
        Some(Self::trimmed(negative, digits, exponent))
    }

    fn trimmed(negative: bool, mut digits: Vec<u8>, mut exponent: i64) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
            exponent += 1;
        }
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        if digits.is_empty() {
            return Self {
                negative: false,
                digits,
                exponent: 0,
            };
        }
        Self {
            negative,
            digits,
            exponent,
        }
    }

    pub(super) fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The number as Go's int, whose high bits are lost.
    pub(super) fn wrapped(&self) -> Option<i64> {
        if !self.is_integer() {
            return None;
        }
        let mut number: i64 = 0;
        let zeros = usize::try_from(self.exponent).ok()?;
        for digit in self.digits.iter().copied().chain(std::iter::repeat_n(0, zeros)) {
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit));
        }
        Some(if self.negative {
            number.wrapping_neg()
        } else {
            number
        })
    }

    /// Returns whether this is a whole multiple of `other`, which is not zero.
    pub(super) fn is_multiple_of(&self, other: &Self) -> bool {
        let shift = self.exponent - other.exponent;
        if self.digits.is_empty() {
            return true;
        }
        // Without zeros at its end a number is no multiple of one with more.
        let (Ok(zeros), Some(divisor)) = (usize::try_from(shift), other.coefficient()) else {
            return false;
        };
        let mut rest: u128 = 0;
        for digit in self.digits.iter().copied().chain(std::iter::repeat_n(0, zeros)) {
            rest = (rest * 10 + u128::from(digit)) % divisor;
        }
        rest == 0
    }

    /// The digits as a number, if it stays below a tenth of what u128 holds.
    fn coefficient(&self) -> Option<u128> {
        if self.digits.len() > 37 {
            return None;
        }
        Some(
            self.digits
                .iter()
                .fold(0, |number, digit| number * 10 + u128::from(*digit)),
        )
    }

    /// The nearest float.
    pub(super) fn to_float(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let digits: String = self.digits.iter().map(|digit| char::from(digit + b'0')).collect();
        format!("{sign}0{digits}e{}", self.exponent)
            .parse()
            .unwrap_or(0.0)
    }

    fn magnitude(&self) -> i64 {
        self.exponent + i64::try_from(self.digits.len()).unwrap_or(i64::MAX)
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = |one: &Self, two: &Self| {
            let zero = two.digits.is_empty().cmp(&one.digits.is_empty());
            zero.then_with(|| one.magnitude().cmp(&two.magnitude()))
                .then_with(|| one.digits.cmp(&two.digits))
        };
        match (self.negative, other.negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => size(self, other),
            (true, true) => size(other, self),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A whole number with its thousands grouped.
pub(super) fn english(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", grouped(&digits))
}

/// A float as `%v` prints it: with a power of ten from a million on and below a ten-thousandth.
pub(super) fn english_float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "∞" } else { "-∞" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && !(-4..6).contains(&exponent) {
        return format!("{mantissa}×10{}", superscript(exponent));
    }
    let plain = format!("{number}");
    let (whole, fraction) = plain
        .split_once('.')
        .map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("-", whole));
    let mut text = format!("{sign}{}", grouped(whole));
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

fn grouped(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// An exponent of two digits or more.
fn superscript(exponent: i32) -> String {
    let digits = format!("{:02}", exponent.unsigned_abs());
    let sign = if exponent < 0 { "⁻" } else { "" };
    let raised = digits.bytes().map(|digit| match digit {
        b'1' => '¹',
        b'2' => '²',
        b'3' => '³',
        b'0' => '⁰',
        digit => char::from_u32(0x2074 + u32::from(digit - b'4')).unwrap_or('⁰'),
    });
    format!("{sign}{}", raised.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(text: &str) -> Decimal {
        Decimal::read(text).expect("a number")
    }

    #[test]
    fn numbers_are_compared_exactly() {
        let rising = [
            "-1e30",
            "-10.5",
            "-1",
            "-0.001",
            "0",
            "1e-7",
            "0.1",
            "1",
            "1.0000000000000000000001",
            "9",
            "10",
            "1e3",
            "9007199254740993",
            "1e400",
        ];
        for pair in rising.windows(2) {
            assert!(decimal(pair[0]) < decimal(pair[1]), "{pair:?}");
        }
        for (one, two) in [("1e2", "100.0"), ("-0", "0.00"), ("0.5e1", "5")] {
            assert_eq!(decimal(one), decimal(two));
        }
    }

    #[test]
    fn multiples_are_found() {
        for (number, divisor, expected) in [
            ("6", "3", true),
            ("7", "3", false),
            ("0.3", "0.1", true),
            ("1e308", "7", false),
            ("0", "5", true),
            ("0.35", "0.1", false),
            ("1e30", "1e-30", true),
            ("-9", "1.5", true),
        ] {
            assert_eq!(
                decimal(number).is_multiple_of(&decimal(divisor)),
                expected,
                "{number} {divisor}"
            );
        }
    }

    #[test]
    fn whole_numbers_are_told() {
        for (text, expected) in [
            ("1.0", Some(1)),
            ("2e3", Some(2000)),
            ("1.5", None),
            ("-3", Some(-3)),
        ] {
            assert_eq!(decimal(text).wrapped(), expected, "{text}");
        }
    }

    #[test]
    fn numbers_are_printed_in_english() {
        for (number, expected) in [
            (0.0, "0"),
            (5.0, "5"),
            (1234.5678, "1,234.5678"),
            (123_456.0, "123,456"),
            (1e6, "1×10⁰⁶"),
            (1_234_567.25, "1.23456725×10⁰⁶"),
            (-1e-7, "-1×10⁻⁰⁷"),
            (0.0001, "0.0001"),
            (0.000_01, "1×10⁻⁰⁵"),
            (1e21, "1×10²¹"),
            (-1000.0, "-1,000"),
            (1e300, "1×10³⁰⁰"),
        ] {
            assert_eq!(english_float(number), expected);
        }
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (-1000, "-1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(english(number), expected);
        }
    }
}
