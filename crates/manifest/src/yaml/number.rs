//! Numbers as Go reads and writes them.

use go_text::float::Shortest;
use serde_json::{Number, Value};

/// An integer as go-yaml resolves it: what fits no `i64` but a `u64` stays an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Integer {
    /// Fits `i64`.
    Signed(i64),
    /// Above `i64::MAX`.
    Unsigned(u64),
}

impl Integer {
    /// Returns the nearest float.
    #[expect(clippy::cast_precision_loss, reason = "Go's conversion rounds the same way")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Signed(n) => n as f64,
            Self::Unsigned(n) => n as f64,
        }
    }

    /// Returns the integer as JSON.
    pub fn to_json(self) -> Value {
        match self {
            Self::Signed(n) => Value::from(n),
            Self::Unsigned(n) => Value::from(n),
        }
    }
}

/// Parses an integer as `strconv.ParseInt(text, 0, 64)`, then `ParseUint`, do: `0x`, `0o`, `0b`, leading `0` for octal.
pub fn parse_integer(text: &str) -> Option<Integer> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (Some(false), &text[1..]),
        b'-' => (Some(true), &text[1..]),
        _ => (None, text),
    };
    let (radix, digits) = radix(digits);
    let magnitude = parse_digits(digits, radix)?;
    match sign {
        Some(true) => 0i64.checked_sub_unsigned(magnitude).map(Integer::Signed),
        _ => match i64::try_from(magnitude) {
            Ok(n) => Some(Integer::Signed(n)),
            Err(_) if sign.is_none() => Some(Integer::Unsigned(magnitude)),
            Err(_) => None,
        },
    }
}

/// Parses `0b-11` and the like: go-yaml takes the prefix off by itself and leaves the sign to `strconv.ParseInt`.
pub(super) fn parse_signed_behind(text: &str, prefix: &str, radix: u32) -> Option<Integer> {
    let digits = text.strip_prefix(prefix)?.replace('_', "");
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, digits.strip_prefix('+')?),
    };
    let magnitude = parse_digits(digits, radix)?;
    let signed = if is_negative {
        0i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    };
    signed.map(Integer::Signed)
}

fn radix(digits: &str) -> (u32, &str) {
    let bytes = digits.as_bytes();
    match bytes {
        [b'0', b'x' | b'X', _, ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    }
}

fn parse_digits(digits: &str, radix: u32) -> Option<u64> {
    // from_str_radix takes a sign of its own.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

/// Parses a decimal float, and nothing else: no infinities, no overflow, as go-yaml takes it.
pub fn parse_float(text: &str) -> Option<f64> {
    if !looks_like_float(text) {
        return None;
    }
    text.parse::<f64>().ok().filter(|f| f.is_finite())
}

/// go-yaml's `yamlStyleFloat`: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn looks_like_float(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_is_right = match mantissa.split_once('.') {
        Some(("", fraction)) => !fraction.is_empty() && digits(fraction),
        Some((whole, fraction)) => digits(whole) && digits(fraction),
        None => !mantissa.is_empty() && digits(mantissa),
    };
    let exponent_is_right = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['-', '+']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    mantissa_is_right && exponent_is_right
}

/// Turns a float into what it is after a trip through Go's JSON: a whole number is an integer again.
///
/// None for what JSON cannot hold (infinities, NaN).
pub fn float_to_json(float: f64) -> Option<Value> {
    const JSON_WRITES_EXPONENT_FROM: f64 = 1e21;
    if float == 0.0 {
        return Some(Value::from(0));
    }
    if float.fract() == 0.0 && float.abs() < JSON_WRITES_EXPONENT_FROM {
        // Go's 'f' format: the shortest digits, then zeros.
        let mut digits = String::new();
        Shortest::from_number(float).push_plain(&mut digits);
        if let Some(integer) = parse_integer(&digits) {
            return Some(integer.to_json());
        }
    }
    Number::from_f64(float).map(Value::Number)
}

/// Writes a float as Go's `strconv.FormatFloat(f, 'g', -1, 64)`, with YAML's names for what is no number.
pub fn format_g(float: f64) -> String {
    yaml_name(float).map_or_else(|| exponent_or_not(Shortest::from_number(float)), str::to_owned)
}

/// Writes a float as [`format_g`] does, but with the digits that suffice for 32 bits, as sigs.k8s.io/yaml writes keys.
pub fn format_g_32(float: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "Go rounds to 32 bits here")]
    let rounded = float as f32;
    let text = || exponent_or_not(Shortest::of_32(rounded));
    yaml_name(f64::from(rounded)).map_or_else(text, str::to_owned)
}

fn yaml_name(float: f64) -> Option<&'static str> {
    match float {
        float if float.is_nan() => Some(".nan"),
        f64::INFINITY => Some(".inf"),
        f64::NEG_INFINITY => Some("-.inf"),
        _ => None,
    }
}

/// Writes a number with an exponent where Go's 'g' does.
fn exponent_or_not(number: Shortest) -> String {
    /// strconv: the shortest form takes 6 for the precision that decides on the exponent.
    const EXPONENT_FROM: i32 = 6;
    let mut text = String::new();
    if (-4..EXPONENT_FROM).contains(&number.exponent()) {
        number.push_plain(&mut text);
    } else {
        number.push_exponent(2, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_go_writes_them() {
        for (float, text) in [
            (1e20, "1e+20"),
            (1_234_567.5, "1.2345675e+06"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (100_000.0, "100000"),
            (1e6, "1e+06"),
            (123_456_789_012_345.6, "1.234567890123456e+14"),
            (2.5, "2.5"),
            (-1_985_596_337_192_383.2, "-1.9855963371923832e+15"),
            (5e-324, "5e-324"),
            (-0.0, "-0"),
            (0.1, "0.1"),
            (12.5, "12.5"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(format_g(float), text);
        }
    }

    #[test]
    fn floats_in_json_have_exponents_only_at_the_ends() {
        for (float, text) in [
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1_234_567.5, "1234567.5"),
            (1e-6, "0.000001"),
            (1.25e-7, "1.25e-7"),
            (5e-324, "5e-324"),
            (-0.0, "-0"),
        ] {
            assert_eq!(go_text::number::format_json(float), text);
        }
    }

    #[test]
    fn integers_are_parsed_in_all_of_gos_bases() {
        for (text, value) in [
            ("0", Some(Integer::Signed(0))),
            ("00", Some(Integer::Signed(0))),
            ("0644", Some(Integer::Signed(420))),
            ("-0644", Some(Integer::Signed(-420))),
            ("0o644", Some(Integer::Signed(420))),
            ("0x1F", Some(Integer::Signed(31))),
            ("+12", Some(Integer::Signed(12))),
            ("0888", None),
            ("0x", None),
            ("1.5", None),
            ("--1", None),
            ("18446744073709551615", Some(Integer::Unsigned(u64::MAX))),
            ("18446744073709551616", None),
            ("-9223372036854775808", Some(Integer::Signed(i64::MIN))),
        ] {
            assert_eq!(parse_integer(text), value, "{text}");
        }
    }

    #[test]
    fn whole_floats_become_integers_in_json() {
        assert_eq!(float_to_json(1e3), Some(Value::from(1000)));
        assert_eq!(float_to_json(-0.0), Some(Value::from(0)));
        assert_eq!(float_to_json(1.5), Some(Value::from(1.5)));
        assert_eq!(float_to_json(1e23), Some(Value::from(1e23)));
        assert_eq!(float_to_json(f64::INFINITY), None);
    }
}
