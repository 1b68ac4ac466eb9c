//! Natural numbers of any size, for the few operations that decimals need.
//!
//! Written in base 10^9, in which powers of ten and decimal digits are cheap.

use std::cmp::Ordering;
use std::fmt;

const BASE: u64 = 1_000_000_000;
const DIGITS: usize = 9;

/// A natural number: its places in base 10^9, the least one first, none of them a leading zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Natural(Vec<u32>);

impl From<u64> for Natural {
    fn from(number: u64) -> Self {
        let (mut rest, mut places) = (number, Vec::new());
        while rest > 0 {
            places.push(place(rest % BASE));
            rest /= BASE;
        }
        Self(places)
    }
}

impl Natural {
    pub(super) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn size(&self) -> usize {
        self.0.len() * size_of::<u32>()
    }

    /// Returns it where it fits.
    pub(super) fn as_u64(&self) -> Option<u64> {
        self.0.iter().rev().try_fold(0u64, |sum, place| {
            sum.checked_mul(BASE)?.checked_add(u64::from(*place))
        })
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let mut carry = 0;
        let mut places = Vec::with_capacity(self.0.len().max(other.0.len()) + 1);
        for index in 0..self.0.len().max(other.0.len()) {
            let sum = self.at(index) + other.at(index) + carry;
            places.push(place(sum % BASE));
            carry = sum / BASE;
        }
        places.push(place(carry));
        Self::trimmed(places)
    }

    /// Subtracts a number that is not larger.
    pub(super) fn subtract(&self, other: &Self) -> Self {
        let mut borrow = 0;
        let mut places = Vec::with_capacity(self.0.len());
        for index in 0..self.0.len() {
            let difference = BASE + self.at(index) - other.at(index) - borrow;
            places.push(place(difference % BASE));
            borrow = 1 - difference / BASE;
        }
        Self::trimmed(places)
    }

    pub(super) fn multiply(&self, other: &Self) -> Self {
        let mut places = vec![0u32; self.0.len() + other.0.len()];
        for (shift, factor) in self.0.iter().enumerate() {
            let mut carry = 0;
            for index in 0..other.0.len() {
                let at = &mut places[shift + index];
                let sum = u64::from(*at) + u64::from(*factor) * other.at(index) + carry;
                *at = place(sum % BASE);
                carry = sum / BASE;
            }
            places[shift + other.0.len()] = place(carry);
        }
        Self::trimmed(places)
    }

    /// Multiplies by a power of ten; a negative one is none.
    pub(super) fn times_power_of_ten(&self, power: i64) -> Self {
        let power = usize::try_from(power).unwrap_or(0);
        if power == 0 || self.is_zero() {
            return self.clone();
        }
        let mut places = vec![0; power / DIGITS];
        places.extend_from_slice(&self.0);
        Self(places).multiply(&Self::from(ten_to(power % DIGITS)))
    }

    /// Divides by a power of ten and drops the rest.
    pub(super) fn without_last_digits(&self, count: i64) -> Self {
        let count = usize::try_from(count).unwrap_or(0);
        let places = self.0.get(count / DIGITS..).unwrap_or_default();
        Self(places.to_vec()).divide_by(ten_to(count % DIGITS))
    }

    /// Divides by a number that is not zero, and drops the rest.
    pub(super) fn divide_by(&self, divisor: u64) -> Self {
        let mut rest = 0u128;
        let mut places = vec![0; self.0.len()];
        for index in (0..self.0.len()).rev() {
            let dividend = rest * u128::from(BASE) + u128::from(self.0[index]);
            // The rest is less than the divisor, so that each quotient is one place.
            places[index] = u32::try_from(dividend / u128::from(divisor)).unwrap_or_default();
            rest = dividend % u128::from(divisor);
        }
        Self::trimmed(places)
    }

    pub(super) fn cmp(&self, other: &Self) -> Ordering {
        let by_length = self.0.len().cmp(&other.0.len());
        by_length.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    fn at(&self, index: usize) -> u64 {
        self.0.get(index).copied().map_or(0, u64::from)
    }

    fn trimmed(mut places: Vec<u32>) -> Self {
        while places.last() == Some(&0) {
            places.pop();
        }
        Self(places)
    }
}

impl fmt::Display for Natural {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut places = self.0.iter().rev();
        write!(f, "{}", places.next().copied().unwrap_or_default())?;
        places.try_for_each(|place| write!(f, "{place:09}"))
    }
}

fn place(number: u64) -> u32 {
    u32::try_from(number).expect("a place is less than 10^9")
}

fn ten_to(power: usize) -> u64 {
    (0..power).fold(1, |product, _| product * 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_agree_with_machine_words() {
        let numbers = [
            0u64,
            1,
            9,
            10,
            999_999_999,
            1_000_000_000,
            123_456_789_012_345,
            u64::MAX / 7,
        ];
        for one in numbers {
            for other in numbers {
                let (first, second) = (Natural::from(one), Natural::from(other));
                let check = |found: Natural, expected: u128| {
                    assert_eq!(found.to_string(), expected.to_string(), "{one} and {other}");
                };
                let (wide, factor) = (u128::from(one), u128::from(other));
                check(first.add(&second), wide + factor);
                check(first.multiply(&second), wide * factor);
                if one >= other {
                    check(first.subtract(&second), wide - factor);
                }
                if other > 0 {
                    check(first.divide_by(other), wide / factor);
                }
                assert_eq!(first.cmp(&second), one.cmp(&other));
            }
        }
    }

    #[test]
    fn powers_of_ten_shift_digits() {
        let number = Natural::from(1_234_567_890_123);
        assert_eq!(
            number.times_power_of_ten(20).to_string(),
            "123456789012300000000000000000000"
        );
        assert_eq!(number.without_last_digits(10).to_string(), "123");
        assert_eq!(number.without_last_digits(30).to_string(), "0");
    }
}
