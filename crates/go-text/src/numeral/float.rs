//! Reads floats: decimal ones and hexadecimal ones, both rounded to the nearest (ties to even).

use super::{NumeralError, underscores_separate_digits};

/// `strconv.ParseFloat(text, 64)`, with infinities and NaN by name.
pub fn parse_float(text: &str) -> Result<f64, NumeralError> {
    if let Some(special) = parse_special(text) {
        return Ok(special);
    }
    let shape = Shape::from_text(text.as_bytes()).ok_or(NumeralError::Syntax)?;
    if text.contains('_') && !underscores_separate_digits(text) {
        return Err(NumeralError::Syntax);
    }
    let value = if shape.is_hex {
        shape.hex_value()
    } else {
        let digits: String = text.chars().filter(|character| *character != '_').collect();
        digits.parse().map_err(|_| NumeralError::Syntax)?
    };
    if value.is_infinite() {
        Err(NumeralError::Range)
    } else {
        Ok(value)
    }
}

fn parse_special(text: &str) -> Option<f64> {
    let (sign, name) = match text.as_bytes() {
        [b'-', ..] => (-1.0, &text[1..]),
        [b'+', ..] => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if name.eq_ignore_ascii_case("inf") || name.eq_ignore_ascii_case("infinity") {
        return Some(sign * f64::INFINITY);
    }
    text.eq_ignore_ascii_case("nan").then_some(f64::NAN)
}

/// The parts of a float that is well formed, but for its underscores.
struct Shape<'t> {
    is_negative: bool,
    is_hex: bool,
    whole: &'t [u8],
    fraction: &'t [u8],
    exponent: i64,
}

impl<'t> Shape<'t> {
    fn from_text(text: &'t [u8]) -> Option<Self> {
        let (is_negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        let (is_hex, text) = match text {
            [b'0', b'x' | b'X', rest @ ..] if !rest.is_empty() => (true, rest),
            _ => (false, text),
        };
        let is_digit = |byte: &u8| {
            *byte == b'_'
                || if is_hex {
                    byte.is_ascii_hexdigit()
                } else {
                    byte.is_ascii_digit()
                }
        };
        let (whole, text) = split_while(text, is_digit);
        let (fraction, text) = match text {
            [b'.', rest @ ..] => split_while(rest, is_digit),
            _ => (&b""[..], text),
        };
        let has_digits = whole.iter().chain(fraction).any(|byte| *byte != b'_');
        let exponent = match text {
            [] if !is_hex => 0, // a hexadecimal float needs one
            [b'e' | b'E', exponent @ ..] if !is_hex => parse_exponent(exponent)?,
            [b'p' | b'P', exponent @ ..] if is_hex => parse_exponent(exponent)?,
            _ => return None,
        };
        has_digits.then_some(Self {
            is_negative,
            is_hex,
            whole,
            fraction,
            exponent,
        })
    }

    fn hex_value(&self) -> f64 {
        let mut mantissa = 0u64;
        let mut exponent = self.exponent;
        let mut is_inexact = false;
        let digits = self
            .whole
            .iter()
            .map(|digit| (digit, false))
            .chain(self.fraction.iter().map(|digit| (digit, true)));
        for (digit, in_fraction) in digits.filter(|(digit, _)| **digit != b'_') {
            let digit = u64::from(char::from(*digit).to_digit(16).unwrap_or_default());
            let fits = mantissa >> 60 == 0;
            if fits {
                mantissa = mantissa << 4 | digit;
            } else {
                is_inexact |= digit != 0;
            }
            exponent += i64::from(!fits) * 4 - i64::from(in_fraction) * 4;
        }
        let magnitude = round_to_float(mantissa, is_inexact, exponent);
        if self.is_negative { -magnitude } else { magnitude }
    }
}

fn split_while(text: &[u8], accepts: impl Fn(&u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !accepts(byte)).unwrap_or(text.len()))
}

/// Go reads five digits at most, which is far beyond what any float has.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if !digits.first()?.is_ascii_digit() || !digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'_')
    {
        return None;
    }
    let mut exponent = 0i64;
    for digit in digits.iter().filter(|byte| **byte != b'_') {
        if exponent < 10_000 {
            exponent = exponent * 10 + i64::from(digit - b'0');
        }
    }
    Some(if is_negative { -exponent } else { exponent })
}

/// Returns `mantissa * 2^exponent`, rounded once; `is_inexact` tells of bits below the mantissa.
fn round_to_float(mantissa: u64, is_inexact: bool, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let shift = mantissa.leading_zeros();
    let mantissa = mantissa << shift; // 1.xxx with 63 bits behind the point
    let exponent = exponent + 63 - i64::from(shift);
    if exponent > 1023 {
        return f64::INFINITY;
    }
    // 53 bits stay, fewer where the result is subnormal.
    let dropped = 11 + (-1022 - exponent).clamp(0, 54) as u32;
    if dropped > 64 {
        return 0.0;
    }
    let (kept, rest) = (
        (u128::from(mantissa) << 64 >> dropped >> 64) as u64,
        u128::from(mantissa) << (128 - dropped),
    );
    let half = 1u128 << 127;
    let rounds_up = rest > half || rest == half && (is_inexact || kept & 1 == 1);
    let rounded = kept + u64::from(rounds_up);
    // Rounding up may carry into the exponent, which is what the format wants.
    let biased = if exponent < -1022 {
        0
    } else {
        (exponent + 1022) as u64
    };
    f64::from_bits((biased << 52) + rounded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_read_as_strconv_does() {
        use NumeralError::{Range, Syntax};
        let check = |text: &str, expected: Result<f64, NumeralError>| {
            assert_eq!(
                parse_float(text).map(f64::to_bits),
                expected.map(f64::to_bits),
                "{text:?}"
            );
        };
        check("1.5", Ok(1.5));
        check("-.5e1", Ok(-5.0));
        check("1.", Ok(1.0));
        check("+1E+2", Ok(100.0));
        check("-0", Ok(-0.0));
        check("1_000.5", Ok(1000.5));
        check("1_.5", Err(Syntax));
        check(".", Err(Syntax));
        check("e1", Err(Syntax));
        check("1e", Err(Syntax));
        check("1.5x", Err(Syntax));
        check("", Err(Syntax));
        check("1e400", Err(Range));
        check("1e-400", Ok(0.0));
        check("inf", Ok(f64::INFINITY));
        check("-Infinity", Ok(f64::NEG_INFINITY));
        check("infin", Err(Syntax));
        assert!(parse_float("NaN").unwrap().is_nan());
        check("+nan", Err(Syntax));
    }

    #[test]
    fn hexadecimal_floats_are_rounded_once() {
        use NumeralError::{Range, Syntax};
        let check = |text: &str, expected: Result<f64, NumeralError>| {
            assert_eq!(
                parse_float(text).map(f64::to_bits),
                expected.map(f64::to_bits),
                "{text:?}"
            );
        };
        check("0x1p4", Ok(16.0));
        check("-0x1.8p1", Ok(-3.0));
        check("0x.8P0", Ok(0.5));
        check("0X_1_0.p-1", Ok(8.0));
        check("0x1", Err(Syntax));
        check("0xp1", Err(Syntax));
        check("0x0p99999", Ok(0.0));
        check("0x1p1023", Ok(2f64.powi(1023)));
        check("0x1p1024", Err(Range));
        check("0x1.fffffffffffff7p1023", Ok(f64::MAX));
        check("0x1.fffffffffffff8p1023", Err(Range));
        check("0x1p-1074", Ok(f64::from_bits(1)));
        check("0x1p-1075", Ok(0.0)); // half of the least: to even
        check("0x1.00000000000000000000001p-1075", Ok(f64::from_bits(1)));
        check("0x3p-1075", Ok(f64::from_bits(2)));
        check("0x1p-2000", Ok(0.0));
        check("0x1.fffffffffffffp-1023", Ok(f64::MIN_POSITIVE)); // rounds up out of the subnormals
        check("0x1.00000000000008p0", Ok(1.0));
        check("0x1.000000000000080000000000000000001p0", Ok(1.0 + f64::EPSILON));
        check("0x1.00000000000018p0", Ok(1.0 + 2.0 * f64::EPSILON));
    }
}
