//! Decimals as shopspring/decimal computes with them, between floats.
//!
//! sprig's `addf` and its kin make decimals of the shortest digits of floats, compute exactly (quotients to sixteen
//! places), and return the nearest float, so that 0.1 and 0.2 are 0.3.

mod natural;

use std::cmp::Ordering;

use go_template::Error;
use go_text::float::Shortest;

use natural::Natural;

/// How many places a quotient has: `DivisionPrecision`.
const PLACES: i64 = 16;

/// A decimal number: `±coefficient * 10^exponent`.
#[derive(Clone, Debug)]
pub(crate) struct Decimal {
    negative: bool,
    coefficient: Natural,
    exponent: i64,
}

impl Decimal {
    /// Takes a float's shortest digits. There is none for NaN and the infinities.
    pub(crate) fn from_number(number: f64) -> Result<Self, Error> {
        if !number.is_finite() {
            let name = match number {
                f64::INFINITY => "+Inf",
                f64::NEG_INFINITY => "-Inf",
                _ => "NaN",
            };
            return Err(Error::new(format!("Cannot create a Decimal from {name}")));
        }
        let shortest = Shortest::from_number(number);
        let digits = shortest.digits();
        Ok(Self {
            negative: shortest.negative && number != 0.0,
            coefficient: Natural::from(digits.parse::<u64>().unwrap_or_default()),
            exponent: if number == 0.0 {
                0
            } else {
                i64::from(shortest.point) - i64::try_from(digits.len()).unwrap_or_default()
            },
        })
    }

    /// Returns the nearest float; infinity where it is too large for one.
    pub(crate) fn to_f64(&self) -> f64 {
        let sign = if self.negative { "-" } else { "" };
        let text = format!("{sign}{}e{}", self.coefficient, self.exponent);
        let number = text.parse::<f64>().unwrap_or_default();
        // Go's rational numbers know no negative zero.
        if number == 0.0 && self.coefficient.is_zero() {
            0.0
        } else {
            number
        }
    }

    /// Returns how many bytes it takes, about.
    pub(crate) fn size(&self) -> usize {
        self.coefficient.size()
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let exponent = self.exponent.min(other.exponent);
        let (one, two) = (self.at_exponent(exponent), other.at_exponent(exponent));
        let (negative, coefficient) = if self.negative == other.negative {
            (self.negative, one.add(&two))
        } else {
            match one.cmp(&two) {
                Ordering::Less => (other.negative, two.subtract(&one)),
                _ => (self.negative, one.subtract(&two)),
            }
        };
        Self {
            negative: negative && !coefficient.is_zero(),
            coefficient,
            exponent,
        }
    }

    pub(crate) fn subtract(&self, other: &Self) -> Self {
        self.add(&Self {
            negative: !other.negative,
            ..other.clone()
        })
    }

    pub(crate) fn multiply(&self, other: &Self) -> Result<Self, Error> {
        let exponent = self.exponent + other.exponent;
        if i32::try_from(exponent).is_err() {
            return Err(Error::new(format!("exponent {exponent} overflows an int32!")));
        }
        let coefficient = self.coefficient.multiply(&other.coefficient);
        Ok(Self {
            negative: self.negative != other.negative && !coefficient.is_zero(),
            coefficient,
            exponent,
        })
    }

    /// Divides to sixteen places, and rounds a half away from zero.
    pub(crate) fn divide(&self, other: &Self) -> Result<Self, Error> {
        if other.coefficient.is_zero() {
            return Err(Error::new("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + PLACES;
        let (dividend, divisor) = if shift < 0 {
            (
                self.coefficient.clone(),
                other.coefficient.times_power_of_ten(-shift),
            )
        } else {
            (
                self.coefficient.times_power_of_ten(shift),
                other.coefficient.clone(),
            )
        };
        let mut coefficient = self.quotient(&dividend, other, shift);
        let rest = dividend.subtract(&coefficient.multiply(&divisor));
        if rest.add(&rest).cmp(&divisor) != Ordering::Less {
            coefficient = coefficient.add(&Natural::from(1));
        }
        Ok(Self {
            negative: self.negative != other.negative && !coefficient.is_zero(),
            coefficient,
            exponent: -PLACES,
        })
    }

    /// The divisor has the digits of one float, so that it fits a word, and perhaps zeros, of which the digits of the dividend
    /// are cut off first.
    fn quotient(&self, dividend: &Natural, other: &Self, shift: i64) -> Natural {
        let zeros = if shift < 0 { -shift } else { 0 };
        dividend
            .without_last_digits(zeros)
            .divide_by(other.coefficient.as_u64().unwrap_or(1))
    }

    fn at_exponent(&self, exponent: i64) -> Natural {
        self.coefficient.times_power_of_ten(self.exponent - exponent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(number: f64) -> Decimal {
        Decimal::from_number(number).expect("the number is finite")
    }

    #[test]
    fn sums_are_exact() {
        let check = |one: f64, other: f64, sum: f64, difference: f64| {
            assert_eq!(decimal(one).add(&decimal(other)).to_f64(), sum, "{one} + {other}");
            assert_eq!(
                decimal(one).subtract(&decimal(other)).to_f64(),
                difference,
                "{one} - {other}"
            );
        };
        check(0.1, 0.2, 0.3, -0.1);
        check(-1.5, 1.5, 0.0, -3.0);
        check(1e300, 1e-300, 1e300, 1e300);
        check(f64::MAX, f64::MAX, f64::INFINITY, 0.0);
        check(0.0, -2.5, -2.5, 2.5);
    }

    #[test]
    fn products_and_quotients_are_those_of_decimals() {
        let check = |one: f64, other: f64, product: f64, quotient: f64| {
            let found = decimal(one).multiply(&decimal(other)).expect("it is in range");
            assert_eq!(found.to_f64(), product, "{one} * {other}");
            let found = decimal(one).divide(&decimal(other)).expect("it is not zero");
            assert_eq!(found.to_f64(), quotient, "{one} / {other}");
        };
        check(1.1, 3.0, 3.3, 0.366_666_666_666_666_7);
        check(-2.0, 3.0, -6.0, -0.666_666_666_666_666_7);
        check(1e-10, 1e10, 1.0, 0.0);
        check(1e200, 1e-200, 1.0, f64::INFINITY);
        check(1e-16, 2.0, 2e-16, 1e-16);
        check(123_456_789.0, 1000.0, 123_456_789_000.0, 123_456.789);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let check = |found: Result<Decimal, Error>, expected: &str| {
            assert_eq!(found.expect_err("it is refused").message(), expected);
        };
        check(Decimal::from_number(f64::NAN), "Cannot create a Decimal from NaN");
        check(
            Decimal::from_number(f64::INFINITY),
            "Cannot create a Decimal from +Inf",
        );
        check(decimal(1.0).divide(&decimal(0.0)), "decimal division by 0");
    }
}
