//! Values in warnings and errors, as Go's `%v` and `%t` print them.

use std::fmt::Write;

use go_template::Value;
use go_text::float::Shortest;

/// Prints a value as `%v` does.
pub(crate) fn plain(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out, leaf);
    out
}

/// Prints a value as `%t` does, which is made for booleans and complains of everything else.
pub(super) fn truth(value: &Value) -> String {
    // Within lists and maps a nil is just a nil.
    if value.is_untyped_nil() {
        return "%!t(<nil>)".to_owned();
    }
    let mut out = String::new();
    write(value, &mut out, |value, out| {
        let kind = match value {
            Value::Bool(truth) => return append(out, truth),
            Value::String(_) => "string",
            Value::Int(..) => "int64",
            Value::Float(_) => "float64",
            _ => return leaf(value, out),
        };
        append(out, format_args!("%!t({kind}="));
        leaf(value, out);
        out.push(')');
    });
    out
}

fn write(value: &Value, out: &mut String, leaf: fn(&Value, &mut String)) {
    match value {
        Value::List(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                write(element, out, leaf);
            }
            out.push(']');
        }
        Value::Map(map) => {
            out.push_str("map[");
            for (index, (key, value)) in map.entries().iter().enumerate() {
                out.push_str(if index > 0 { " " } else { "" });
                leaf(&Value::String(key.clone()), out);
                out.push(':');
                write(value, out, leaf);
            }
            out.push(']');
        }
        other => leaf(other, out),
    }
}

fn leaf(value: &Value, out: &mut String) {
    match value {
        Value::Bool(truth) => append(out, truth),
        Value::Int(number, _) => append(out, number),
        Value::Uint(number, _) => append(out, number),
        Value::Float(number) => append(out, float(*number)),
        Value::String(text) => out.push_str(&text.to_text()),
        _ => out.push_str("<nil>"),
    }
}

/// Prints a float as `%v` does: with an exponent where it would be long.
fn float(number: f64) -> String {
    let shortest = Shortest::from_number(number);
    let mut text = String::new();
    if (-4..21).contains(&shortest.exponent()) {
        shortest.push_plain(&mut text);
    } else {
        shortest.push_exponent(2, &mut text);
    }
    text
}

fn append(out: &mut String, text: impl std::fmt::Display) {
    write!(out, "{text}").expect("a String takes all text");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::value_from_json;

    #[test]
    fn values_are_shown_as_go_prints_them() {
        let value = value_from_json(&serde_json::json!({"b": [1.0, 2, null, "x", true], "a": {"c": 1e21}}));
        assert_eq!(plain(&value), "map[a:map[c:1e+21] b:[1 2 <nil> x true]]");
        assert_eq!(
            truth(&value),
            "map[%!t(string=a):map[%!t(string=c):%!t(float64=1e+21)] %!t(string=b):[%!t(float64=1) %!t(int64=2) <nil> %!t(string=x) true]]"
        );
    }
}
