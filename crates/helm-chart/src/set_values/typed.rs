//! The type of a value that `--set` is given as text.

use serde_json::Value;

/// Booleans, null and whole numbers are what they look like, but a number that starts with zero is a text.
pub(super) fn typed(text: String) -> Value {
    if equal_fold(&text, "true") {
        Value::Bool(true)
    } else if equal_fold(&text, "false") {
        Value::Bool(false)
    } else if equal_fold(&text, "null") {
        Value::Null
    } else if text == "0" {
        Value::from(0)
    } else if text.starts_with('0') {
        Value::String(text)
    } else {
        match text.parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::String(text),
        }
    }
}

/// Go's strings.EqualFold against an ASCII word: the long s is the only other character that folds to one of its letters.
fn equal_fold(text: &str, word: &str) -> bool {
    text.eq_ignore_ascii_case(word)
        || (text.contains('ſ') && text.replace('ſ', "s").eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn text_becomes_what_it_looks_like() {
        let cases = [
            ("TRUE", json!(true)),
            ("falſe", json!(false)),
            ("Null", json!(null)),
            ("0", json!(0)),
            ("-0", json!(0)),
            ("+5", json!(5)),
            ("-05", json!(-5)),
            ("007", json!("007")),
            ("0x1", json!("0x1")),
            ("1.5", json!("1.5")),
            ("1_000", json!("1_000")),
            ("9223372036854775807", json!(i64::MAX)),
            ("9223372036854775808", json!("9223372036854775808")),
            ("", json!("")),
            ("-", json!("-")),
        ];
        for (text, expected) in cases {
            assert_eq!(typed(text.to_owned()), expected, "{text}");
        }
    }
}
