//! Works out the values of numbers and characters.
//!
//! Go keeps a constant under every type that can hold it, so that `1.0` can be an index and `1` a float.

use super::{Parser, quoted, span};
use crate::Error;
use crate::ast::{Ideal, Number, Span};
use crate::lexer::{Item, Kind};
use go_text::numeral::{parse_float, parse_int, parse_uint};
use go_text::quote::unquote_character;

impl Parser<'_> {
    pub(super) fn number(&self, token: Item) -> Result<Number, Error> {
        let text = String::from_utf8_lossy(self.text(token));
        let value = match token.kind {
            Kind::CharacterConstant => read_character(self.text(token)),
            Kind::Complex => read_complex(&text),
            _ => read_number(&text),
        };
        let mut number = value.map_err(|message| self.error(&message))?;
        number.span = span(token);
        number.ideal = ideal(&number, &text);
        Ok(number)
    }
}

fn empty() -> Number {
    Number {
        span: Span::default(),
        int: None,
        uint: None,
        float: None,
        complex: None,
        ideal: Ideal::Overflow,
    }
}

fn read_character(text: &[u8]) -> Result<Number, String> {
    let character = unquote_character(&text[1..], b'\'').map_err(|error| error.to_string())?;
    if character.rest != b"'" {
        return Err(format!(
            "malformed character constant: {}",
            String::from_utf8_lossy(text)
        ));
    }
    let code = character.value.code();
    Ok(Number {
        int: Some(i64::from(code)),
        uint: Some(u64::from(code)),
        float: Some(f64::from(code)), // odd, but Go does so
        ..empty()
    })
}

fn read_number(text: &str) -> Result<Number, String> {
    if let Some(imaginary) = text.strip_suffix('i')
        && let Ok(imaginary) = parse_float(imaginary)
    {
        return Ok(of_complex(0.0, imaginary));
    }
    let int = parse_int(text, 0).ok();
    // A sign is no part of an unsigned number, but -0 is one.
    let uint = parse_uint(text, 0).ok().or((int == Some(0)).then_some(0));
    if int.is_some() || uint.is_some() {
        let float = int.map(|int| int as f64).or(uint.map(|uint| uint as f64));
        return Ok(Number {
            int,
            uint,
            float,
            ..empty()
        });
    }
    let Ok(float) = parse_float(text) else {
        return Err(format!("illegal number syntax: {}", quoted(text.as_bytes())));
    };
    if !text.contains(['.', 'e', 'E', 'p', 'P']) {
        return Err(format!("integer overflow: {}", quoted(text.as_bytes())));
    }
    Ok(of_float(float))
}

fn of_float(float: f64) -> Number {
    let is_whole = float.trunc() == float;
    Number {
        int: (is_whole && (-TWO_TO_63..TWO_TO_63).contains(&float)).then_some(float as i64),
        uint: (is_whole && (0.0..2.0 * TWO_TO_63).contains(&float)).then_some(float as u64),
        float: Some(float),
        ..empty()
    }
}

const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

fn of_complex(real: f64, imaginary: f64) -> Number {
    let number = if imaginary == 0.0 { of_float(real) } else { empty() };
    Number {
        complex: Some((real, imaginary)),
        ..number
    }
}

/// Reads two numbers as `fmt.Sscan` does, with its errors.
fn read_complex(text: &str) -> Result<Number, String> {
    const SYNTAX: &str = "syntax error scanning complex number";
    let (real, rest) = split_float(text);
    if !rest.starts_with(['+', '-']) {
        return Err(SYNTAX.to_owned());
    }
    let (imaginary, behind) = split_float(&rest[1..]);
    if !behind.starts_with('i') {
        return Err(SYNTAX.to_owned());
    }
    let imaginary = &rest[..1 + imaginary.len()];
    Ok(of_complex(scan_float(real)?, scan_float(imaginary)?))
}

fn scan_float(text: &str) -> Result<f64, String> {
    parse_float(text)
        .map_err(|error| format!("strconv.ParseFloat: parsing {}: {error}", quoted(text.as_bytes())))
}

/// Splits off what `fmt` takes for a float. A lone `i` is taken for the start of an infinity.
fn split_float(text: &str) -> (&str, &str) {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    rest = rest.strip_prefix('i').unwrap_or(rest);
    let mut is_hex = false;
    if let Some(behind) = rest.strip_prefix('0') {
        is_hex = behind.starts_with(['x', 'X']);
        rest = if is_hex { &behind[1..] } else { behind };
    }
    let is_digit = |character: char| character == '_' || character.is_digit(if is_hex { 16 } else { 10 });
    rest = rest.trim_start_matches(is_digit);
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(is_digit);
    }
    let exponent: &[char] = if is_hex {
        &['p', 'P']
    } else {
        &['e', 'E', 'p', 'P']
    };
    if let Some(digits) = rest.strip_prefix(exponent) {
        let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        rest = digits.trim_start_matches(|character: char| character == '_' || character.is_ascii_digit());
    }
    text.split_at(text.len() - rest.len())
}

/// Chooses the type of a constant that nothing else decides (Go's `idealConstant`).
fn ideal(number: &Number, text: &str) -> Ideal {
    if let Some((real, imaginary)) = number.complex {
        return Ideal::Complex(real, imaginary);
    }
    let is_hex_integer = matches!(text.as_bytes(), [b'0', b'x' | b'X', _, ..]) && !text.contains(['p', 'P']);
    let is_character = text.starts_with('\'');
    let looks_like_float = text.contains(['.', 'e', 'E', 'p', 'P']) && !is_hex_integer && !is_character;
    match (number.float, number.int) {
        (Some(float), _) if looks_like_float => Ideal::Float(float),
        (_, Some(int)) => Ideal::Int(int),
        _ => Ideal::Overflow,
    }
}
