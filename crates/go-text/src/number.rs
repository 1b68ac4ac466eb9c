//! Prints floats as Go's `strconv.FormatFloat`, and words its errors of parsing.

use std::fmt::Write as _;

use crate::float::Shortest;
use crate::numeral::NumeralError;
use crate::quote;

/// Writes a finite float as `encoding/json` does: with an exponent only where the number is very large or very small.
pub fn format_json(value: f64) -> String {
    let (shortest, size) = (Shortest::from_number(value), value.abs());
    let mut text = String::new();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        shortest.push_plain(&mut text);
    } else {
        shortest.push_exponent(1, &mut text);
    }
    text
}

/// `strconv.FormatFloat(value, verb, precision, 64)` for the verbs `b e E f g G x X`. No precision asks for the fewest digits
/// that read back as the same number (Go's -1).
pub fn format_float(value: f64, verb: char, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value < 0.0 { "-Inf" } else { "+Inf" }.to_owned();
    }
    match verb {
        'b' => format_mantissa(value),
        'x' | 'X' => format_hexadecimal(value, verb, precision),
        'e' | 'E' => format_exponent(value, verb, precision),
        'f' => format_fixed(value, precision),
        _ => format_general(value, verb, precision),
    }
}

/// `%f`
fn format_fixed(value: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else {
        let decimal = Decimal::new(value, None);
        let fraction = as_i64(decimal.digits.len()) - decimal.point;
        return decimal.fixed_form(value, usize::try_from(fraction).unwrap_or(0));
    };
    // No float has more digits behind its point; the standard library takes no precision above 65535.
    let exact = precision.min(1100);
    let mut out = format!("{value:.exact$}");
    out.extend(std::iter::repeat_n('0', precision - exact));
    out
}

/// `%e`
fn format_exponent(value: f64, verb: char, precision: Option<usize>) -> String {
    let decimal = Decimal::new(value, precision.map(|precision| precision.saturating_add(1)));
    let precision = precision.unwrap_or(decimal.digits.len().saturating_sub(1));
    decimal.exponent_form(value, precision, verb)
}

/// `%g`: with an exponent where that is small or large, and without zeros behind the last digit.
fn format_general(value: f64, verb: char, precision: Option<usize>) -> String {
    let precision = precision.map(|precision| precision.max(1));
    let decimal = Decimal::new(value, precision);
    let count = decimal.digits.len();
    let threshold = match precision {
        None => 6,
        Some(precision) if precision > count && as_i64(count) >= decimal.point => count,
        Some(precision) => precision,
    };
    let exponent = decimal.point - 1;
    let precision = precision.unwrap_or(count);
    if exponent < -4 || exponent >= as_i64(threshold) {
        let verb = if verb == 'G' { 'E' } else { 'e' };
        return decimal.exponent_form(value, precision.min(count).saturating_sub(1), verb);
    }
    let precision = if as_i64(precision) > decimal.point {
        count
    } else {
        precision
    };
    let fraction = usize::try_from(as_i64(precision) - decimal.point).unwrap_or(0);
    decimal.fixed_form(value, fraction)
}

fn as_i64(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// The digits of a float without trailing zeros, and where the point stands: `0.digits * 10^point`. Zero has no digits.
struct Decimal {
    digits: Vec<u8>,
    point: i64,
}

impl Decimal {
    /// Rounds to a count of digits, or to as few as read back the same.
    fn new(value: f64, count: Option<usize>) -> Self {
        let value = value.abs();
        if value == 0.0 {
            return Self {
                digits: Vec::new(),
                point: 0,
            };
        }
        let Some(count) = count else {
            let shortest = Shortest::from_number(value);
            return Self {
                digits: shortest.digits().as_bytes().to_vec(),
                point: shortest.point.into(),
            };
        };
        // No float has more than 767 significant digits.
        let text = format!("{value:.*e}", count.clamp(1, 800) - 1);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mut digits: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
        digits.truncate(
            digits
                .iter()
                .rposition(|digit| *digit != b'0')
                .map_or(0, |last| last + 1),
        );
        Self {
            digits,
            point: exponent.parse().unwrap_or(0) + 1,
        }
    }

    fn digit(&self, index: i64) -> char {
        let digit = usize::try_from(index)
            .ok()
            .and_then(|index| self.digits.get(index));
        char::from(digit.copied().unwrap_or(b'0'))
    }

    fn exponent_form(&self, value: f64, precision: usize, verb: char) -> String {
        let mut out = sign(value);
        out.push(self.digit(0));
        if precision > 0 {
            out.push('.');
            out.extend((1..=as_i64(precision)).map(|index| self.digit(index)));
        }
        let exponent = if self.digits.is_empty() { 0 } else { self.point - 1 };
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "{verb}{sign}{:02}", exponent.unsigned_abs());
        out
    }

    fn fixed_form(&self, value: f64, fraction: usize) -> String {
        let mut out = sign(value);
        if self.point > 0 {
            out.extend((0..self.point).map(|index| self.digit(index)));
        } else {
            out.push('0');
        }
        if fraction > 0 {
            out.push('.');
            out.extend((0..as_i64(fraction)).map(|index| self.digit(self.point + index)));
        }
        out
    }
}

fn sign(value: f64) -> String {
    if value.is_sign_negative() { "-" } else { "" }.to_owned()
}

/// `%b`: the mantissa as an integer, and a binary exponent.
fn format_mantissa(value: f64) -> String {
    let (mantissa, exponent) = split(value);
    format!("{}{mantissa}p{:+}", sign(value), exponent - 52)
}

/// `%x`: a hexadecimal mantissa between 1 and 2, and a binary exponent.
fn format_hexadecimal(value: f64, verb: char, precision: Option<usize>) -> String {
    const ONE: u64 = 1 << 60;
    let (mantissa, mut exponent) = split(value);
    let mut mantissa = mantissa << 8;
    if mantissa == 0 {
        exponent = 0;
    }
    while mantissa != 0 && mantissa & ONE == 0 {
        mantissa <<= 1;
        exponent -= 1;
    }
    if let Some(precision @ 0..15) = precision {
        let shift = precision * 4;
        let extra = (mantissa << shift) & (ONE - 1);
        mantissa >>= 60 - shift;
        if extra | (mantissa & 1) > 1 << 59 {
            mantissa += 1;
        }
        mantissa <<= 60 - shift;
        if mantissa & (ONE << 1) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let mut out = format!("{}0{verb}{}", sign(value), mantissa >> 60 & 1);
    let mut fraction = format!("{:015x}", mantissa & (ONE - 1));
    match precision {
        None => fraction.truncate(fraction.trim_end_matches('0').len()),
        Some(precision) if precision < 15 => fraction.truncate(precision),
        Some(precision) => fraction.extend(std::iter::repeat_n('0', precision - 15)),
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(&fraction);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "p{sign}{:02}", exponent.unsigned_abs());
    if verb == 'X' {
        out.make_ascii_uppercase();
    }
    out
}

/// Returns mantissa and exponent of a float: `mantissa * 2^(exponent - 52)`.
fn split(value: f64) -> (u64, i64) {
    let bits = value.to_bits();
    let mantissa = bits & ((1 << 52) - 1);
    match i64::try_from(bits >> 52 & 0x7ff).unwrap_or(0) {
        0 => (mantissa, -1022),
        exponent => (mantissa | 1 << 52, exponent - 1023),
    }
}

/// Words the error of `strconv.ParseInt`, `ParseFloat` or `Atoi`, the `function` of Go: `strconv.Atoi: parsing "x": invalid
/// syntax`.
pub fn parse_error(function: &str, text: &[u8], error: NumeralError) -> String {
    let mut quoted = Vec::new();
    quote::quote(text, &mut quoted);
    let mut out = String::new();
    let _ = write!(
        out,
        "strconv.{function}: parsing {}: {error}",
        crate::valid_text(&quoted)
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: f64, verb: char, precision: impl Into<Option<usize>>, expected: &str) {
        assert_eq!(
            format_float(value, verb, precision.into()),
            expected,
            "{value} {verb}"
        );
    }

    #[test]
    fn floats_are_printed_as_strconv_does() {
        check(0.0, 'g', None, "0");
        check(-0.0, 'f', 2, "-0.00");
        check(1e20, 'g', None, "1e+20");
        check(100_000.0, 'g', None, "100000");
        check(1e-5, 'g', None, "1e-05");
        check(123_456.0, 'g', 3, "1.23e+05");
        check(2.5, 'f', 0, "2"); // to the even digit
        check(0.125, 'f', 2, "0.12");
        check(1e21, 'f', None, "1000000000000000000000");
        check(113_821_486_668_446.5 / 8.0, 'e', None, "1.4227685833555812e+13");
        check(5e-324, 'e', 3, "4.941e-324");
        check(1.0, 'b', None, "4503599627370496p-52");
        check(1.0, 'x', None, "0x1p+00");
        check(0.1, 'X', 3, "0X1.99AP-04");
        check(f64::NEG_INFINITY, 'e', None, "-Inf");
        check(f64::NAN, 'f', 1, "NaN");
    }

    #[test]
    fn any_precision_is_printed() {
        let text = format_float(0.5, 'f', Some(100_000));
        assert_eq!((text.len(), &text[..6]), (100_002, "0.5000"));
        let text = format_float(0.1, 'g', Some(1000));
        assert_eq!((text.len(), &text[..8]), (57, "0.100000"));
        assert_eq!(format_float(0.5, 'e', Some(100_000)).len(), 100_006);
        assert_eq!(format_float(0.5, 'x', Some(100_000)).len(), 100_008);
    }

    #[test]
    fn errors_of_parsing_are_worded_as_strconv_does() {
        let text = parse_error("Atoi", b"a\"", NumeralError::Syntax);
        assert_eq!(text, r#"strconv.Atoi: parsing "a\"": invalid syntax"#);
    }
}
