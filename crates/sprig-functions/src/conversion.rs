//! Conversions of single values: `int`, `float64`, `atoi`, `toString` and their kin.

use go_template::{Functions, List, Type, Value};
use go_text::numeral::{NumeralError, parse_int};

use crate::arguments::{add, any, text};
use crate::cast::{to_float64, to_int64};
use crate::printed::{printed, text_of, texts_of};

const ONE: &[Type] = &[Type::ANY];

pub(crate) fn register(functions: &mut Functions) {
    add(
        functions,
        &[
            ("atoi", &[Type::STRING], |_, arguments| {
                Ok(Value::int(atoi(text(arguments, 0))))
            }),
            ("int", ONE, |_, arguments| {
                Ok(Value::int(to_int64(&any(arguments, 0))))
            }),
            ("int64", ONE, |_, arguments| {
                Ok(Value::int64(to_int64(&any(arguments, 0))))
            }),
            ("float64", ONE, |_, arguments| {
                Ok(to_float64(&any(arguments, 0)).into())
            }),
            ("toDecimal", ONE, |_, arguments| {
                Ok(Value::int64(octal(&printed(&any(arguments, 0))?)))
            }),
            ("toString", ONE, |_, arguments| {
                text_of(&any(arguments, 0)).map(Value::String)
            }),
            ("toStrings", ONE, |_, arguments| match any(arguments, 0) {
                // A `[]string` is passed through, even a nil one.
                Value::List(list) if list.type_() == Type::LIST_STRING => Ok(list.into()),
                value => Ok(List::of_strings(texts_of(&value)?).into()),
            }),
        ],
    );
}

/// `strconv.Atoi` without its error: what is out of range gives the nearest number.
fn atoi(text: &[u8]) -> i64 {
    let Ok(digits) = std::str::from_utf8(text) else {
        return 0;
    };
    match parse_int(digits, 10) {
        Ok(number) => number,
        Err(NumeralError::Range) if digits.starts_with('-') => i64::MIN,
        Err(NumeralError::Range) => i64::MAX,
        Err(_) => 0,
    }
}

/// Reads a number in base 8, as permissions of Unix files are written.
fn octal(text: &[u8]) -> i64 {
    std::str::from_utf8(text).map_or(0, |digits| parse_int(digits, 8).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use go_template::Value;

    fn check(template: &str, expected: &str) {
        crate::testing::check(template, &Value::Nil, expected);
    }

    #[test]
    fn texts_become_numbers() {
        check(
            r#"{{ atoi "12" }} {{ atoi "x" }} {{ atoi "99999999999999999999" }}"#,
            "12 0 9223372036854775807",
        );
        check(
            r#"{{ int "010" | typeOf }} {{ int64 1.9 | typeOf }} {{ float64 "1e3" }}"#,
            "int int64 1000",
        );
        check(
            r#"{{ toDecimal "0777" }} {{ toDecimal 10 }} {{ toDecimal "8" }}"#,
            "511 8 0",
        );
    }

    #[test]
    fn values_become_texts() {
        check(
            r#"{{ toString nil }} {{ toString (list 1 "a") }} {{ toString 1.5 }}"#,
            "<nil> [1 a] 1.5",
        );
        check(
            r#"{{ toStrings (list 1 nil "a") | toJson }} {{ toStrings 5 }} {{ toStrings nil | toJson }}"#,
            r#"["1","a"] [5] []"#,
        );
    }
}
