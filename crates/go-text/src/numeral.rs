//! Reads numbers as Go's `strconv` does: which spellings it takes, and what is out of range.

mod float;

pub use float::parse_float;

/// Reads a boolean (`strconv.ParseBool`).
pub fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Why a text is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NumeralError {
    /// `strconv.ErrSyntax`.
    #[error("invalid syntax")]
    Syntax,
    /// `strconv.ErrRange`.
    #[error("value out of range")]
    Range,
}

/// `strconv.ParseInt(text, base, 64)`. Base 0 takes it from the prefix (`0x`, `0o`, `0b`, `0`) and allows underscores; any
/// other is from 2 to 36.
pub fn parse_int(text: &str, base: u32) -> Result<i64, NumeralError> {
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = parse_uint(digits, base)?;
    if is_negative {
        0i64.checked_sub_unsigned(magnitude).ok_or(NumeralError::Range)
    } else {
        i64::try_from(magnitude).map_err(|_| NumeralError::Range)
    }
}

/// `strconv.ParseUint(text, base, 64)`: as [`parse_int`], without a sign.
pub fn parse_uint(text: &str, base: u32) -> Result<u64, NumeralError> {
    if text.is_empty() {
        return Err(NumeralError::Syntax);
    }
    let takes_underscores = base == 0;
    let (base, digits) = if base == 0 {
        split_prefix(text)
    } else {
        (base, text)
    };
    let mut value = 0u64;
    for byte in digits.bytes() {
        if byte == b'_' && takes_underscores {
            continue;
        }
        let digit = char::from(byte).to_digit(base).ok_or(NumeralError::Syntax)?;
        let shifted = value.checked_mul(u64::from(base)).ok_or(NumeralError::Range)?;
        value = shifted.checked_add(u64::from(digit)).ok_or(NumeralError::Range)?;
    }
    if takes_underscores && !underscores_separate_digits(text) {
        return Err(NumeralError::Syntax);
    }
    Ok(value)
}

fn split_prefix(text: &str) -> (u32, &str) {
    match text.as_bytes() {
        [b'0', b'b' | b'B', _, ..] => (2, &text[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &text[2..]),
        [b'0', b'x' | b'X', _, ..] => (16, &text[2..]),
        [b'0', ..] => (8, &text[1..]),
        _ => (10, text),
    }
}

/// An underscore stands between two digits, or behind the prefix of the base (`underscoreOK`).
fn underscores_separate_digits(text: &str) -> bool {
    let text = text.strip_prefix(['-', '+']).unwrap_or(text).as_bytes();
    let (is_hex, digits) = match text {
        [b'0', b'x' | b'X', rest @ ..] => (true, rest),
        [b'0', b'b' | b'B' | b'o' | b'O', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let is_digit = |byte: u8| byte.is_ascii_digit() || is_hex && byte.is_ascii_hexdigit();
    let mut may_follow = digits.len() < text.len();
    let mut is_open = false;
    for byte in digits {
        match byte {
            b'_' if !may_follow => return false,
            b'_' => (may_follow, is_open) = (false, true),
            byte if is_digit(*byte) => (may_follow, is_open) = (true, false),
            _ if is_open => return false,
            _ => may_follow = false,
        }
    }
    !is_open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_as_strconv_does() {
        use NumeralError::{Range, Syntax};
        let check = |text: &str, base: u32, expected: Result<i64, NumeralError>| {
            assert_eq!(parse_int(text, base), expected, "{text:?} in base {base}");
        };
        check("0", 0, Ok(0));
        check("-0", 0, Ok(0));
        check("+12", 10, Ok(12));
        check("0x1F", 0, Ok(31));
        check("0b101", 0, Ok(5));
        check("0o17", 0, Ok(15));
        check("017", 0, Ok(15));
        check("017", 10, Ok(17));
        check("08", 0, Err(Syntax));
        check("1_000", 0, Ok(1000));
        check("1_000", 10, Err(Syntax));
        check("0x_1_f", 0, Ok(31));
        check("0_7", 0, Ok(7));
        check("1__0", 0, Err(Syntax));
        check("_1", 0, Err(Syntax));
        check("1_", 0, Err(Syntax));
        check("0x", 0, Err(Syntax));
        check("", 0, Err(Syntax));
        check("-", 0, Err(Syntax));
        check("z", 36, Ok(35));
        check("9223372036854775807", 10, Ok(i64::MAX));
        check("9223372036854775808", 10, Err(Range));
        check("-9223372036854775808", 10, Ok(i64::MIN));
        check("99999999999999999999", 10, Err(Range));
        check("99999999999999999999x", 10, Err(Range)); // Go stops at the first digit too many
        assert_eq!(parse_uint("18446744073709551615", 10), Ok(u64::MAX));
        assert_eq!(parse_uint("+1", 10), Err(Syntax));
    }
}
