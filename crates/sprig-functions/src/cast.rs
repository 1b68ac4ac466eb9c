//! Numbers of whatever a template has, as spf13/cast 1.7 casts: what cannot be cast is zero.

use go_template::{Object, Value};
use go_text::numeral::{parse_float, parse_int};

/// `cast.ToInt64`, which is also `cast.ToInt`.
pub(crate) fn to_int64(value: &Value) -> i64 {
    match value {
        Value::Int(number, _) => *number,
        Value::Uint(number, _) => number.cast_signed(),
        Value::Float(number) => truncate(*number),
        Value::Bool(set) => i64::from(*set),
        Value::String(text) => text.as_text().map_or(0, |text| {
            // With base 0 a prefix says which base: "010" is eight.
            parse_int(without_zero_decimals(text), 0).unwrap_or(0)
        }),
        Value::Object(object) => calendar_number(&**object).unwrap_or(0),
        _ => 0,
    }
}

/// `cast.ToFloat64`.
#[allow(clippy::cast_precision_loss)] // as Go's conversion
pub(crate) fn to_float64(value: &Value) -> f64 {
    match value {
        Value::Int(number, _) => *number as f64,
        Value::Uint(number, _) => *number as f64,
        Value::Float(number) => *number,
        Value::Bool(set) => f64::from(*set),
        Value::String(text) => text
            .as_text()
            .map_or(0.0, |text| parse_float(text).unwrap_or(0.0)),
        Value::Object(object) => calendar_number(&**object).map_or(0.0, |number| number as f64),
        _ => 0.0,
    }
}

/// Go's conversion of a float to an `int64` on amd64, where whatever does not fit is the least integer.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // the range is checked
pub(crate) fn truncate(number: f64) -> i64 {
    if number >= i64::MIN as f64 && number < -(i64::MIN as f64) {
        number as i64
    } else {
        i64::MIN
    }
}

/// Of all named numbers only months and weekdays are known to cast.
fn calendar_number(object: &dyn Object) -> Option<i64> {
    match (object.type_().name(), object.underlying()) {
        ("time.Month" | "time.Weekday", Some(Value::Int(number, _))) => Some(number),
        _ => None,
    }
}

/// Cuts `.0`, `.00` and so on off. As cast does it, points after the zeros fall with them.
fn without_zero_decimals(text: &str) -> &str {
    let mut found_zero = false;
    for (at, byte) in text.bytes().enumerate().rev() {
        match byte {
            b'.' if found_zero => return &text[..at],
            b'.' => {}
            b'0' => found_zero = true,
            _ => return text,
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_cast_from_everything() {
        let check = |value: Value, expected: i64| assert_eq!(to_int64(&value), expected, "{value:?}");
        check(Value::int(7), 7);
        check(7.9.into(), 7);
        check((-7.9).into(), -7);
        check(f64::NAN.into(), i64::MIN);
        check(1e30.into(), i64::MIN);
        check(true.into(), 1);
        check("010".into(), 8);
        check("0o17".into(), 15);
        check("0x1F".into(), 31);
        check("0b11".into(), 3);
        check("1_000".into(), 1000);
        check("12.00".into(), 12);
        check("12.0.".into(), 12);
        check("12.".into(), 0);
        check("12.5".into(), 0);
        check("9223372036854775808".into(), 0);
        check(" 1".into(), 0);
        check(Value::Nil, 0);
        check(Value::Uint(u64::MAX, go_template::Kind::Uint64), -1);
    }

    #[test]
    fn floats_are_cast_from_everything() {
        let check = |value: Value, expected: f64| assert_eq!(to_float64(&value), expected, "{value:?}");
        check("1e3".into(), 1000.0);
        check("0x1p-2".into(), 0.25);
        check("inf".into(), f64::INFINITY);
        check("1e999".into(), 0.0);
        check("x".into(), 0.0);
        check(false.into(), 0.0);
    }
}
