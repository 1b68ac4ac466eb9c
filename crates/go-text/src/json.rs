//! JSON as Go's encoding/json reads and writes it, with its words for what is wrong.
//!
//! Numbers keep their text, because schemas show and compare them exactly; [`Json::into_value`] makes of them the floats
//! that Go's `any` holds. Text that is not UTF-8 and lone surrogates become replacement characters, as in Go.

mod read;
mod write;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use read::{decode_first, decode_only, unmarshal};
pub use write::{Any, AnyMap, GoFormatter, push_string, to_string, to_vec, write};

/// A JSON value; texts are borrowed from what was read where they can be.
#[derive(Clone, Debug, PartialEq)]
pub enum Json<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it was written.
    Number(Cow<'a, str>),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    Array(Vec<Json<'a>>),
    /// An object, sorted by its keys; of equal keys the last one's value.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> Json<'a> {
    /// Views chart values as JSON.
    pub fn of_value(value: &'a Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(number) => Self::Number(number_text(number).into()),
            Value::String(text) => Self::Text(text.as_str().into()),
            Value::Array(items) => Self::Array(items.iter().map(Self::of_value).collect()),
            Value::Object(fields) => Self::of_fields(fields),
        }
    }

    /// Views a map of chart values as JSON.
    pub fn of_fields(fields: &'a Map<String, Value>) -> Self {
        let mut fields: Vec<(Cow<'a, str>, Self)> = fields
            .iter()
            .map(|(name, value)| (name.as_str().into(), Self::of_value(value)))
            .collect();
        // A crate that turns on serde_json's preserve_order must not change what is found.
        if !fields.is_sorted_by(|(a, _), (b, _)| a < b) {
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        Self::Object(fields)
    }

    /// The field `name` of an object.
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        let place = fields.binary_search_by(|(key, _)| key.as_ref().cmp(name)).ok()?;
        Some(&fields[place].1)
    }

    /// The text of a string.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The same value, owning its texts.
    pub fn into_owned(self) -> Json<'static> {
        match self {
            Self::Null => Json::Null,
            Self::Bool(b) => Json::Bool(b),
            Self::Number(text) => Json::Number(text.into_owned().into()),
            Self::Text(text) => Json::Text(text.into_owned().into()),
            Self::Array(items) => Json::Array(items.into_iter().map(Self::into_owned).collect()),
            Self::Object(fields) => Json::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| (name.into_owned().into(), value.into_owned()))
                    .collect(),
            ),
        }
    }

    /// The value as Go decodes it into `any`: every number is a float64; one that none can hold is an error.
    pub fn into_value(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Number(text) => float(&text)?,
            Self::Text(text) => Value::String(text.into_owned()),
            Self::Array(items) => Value::Array(
                items
                    .into_iter()
                    .map(Self::into_value)
                    .collect::<Result<_, _>>()?,
            ),
            Self::Object(fields) => Value::Object(
                fields
                    .into_iter()
                    .map(|(name, value)| Ok((name.into_owned(), value.into_value()?)))
                    .collect::<Result<_, String>>()?,
            ),
        })
    }

    /// Go's name for a value of this kind in errors: `json: cannot unmarshal KIND into Go value of type …`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Number(_) => "number",
            Self::Text(_) => "string",
            Self::Array(_) => "array",
            Self::Object(_) => "object",
        }
    }
}

/// The number's decimal value in digits; how Go would print it does not matter here.
fn number_text(number: &serde_json::Number) -> String {
    number.to_string()
}

fn float(text: &str) -> Result<Value, String> {
    let number = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64);
    number
        .map(Value::Number)
        .ok_or_else(|| format!("json: cannot unmarshal number {text} into Go value of type float64"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_become_floats() {
        let value = unmarshal(br#"{"b":[1,2.5],"a":1e3}"#)
            .expect("valid")
            .into_value();
        assert_eq!(value, Ok(json!({"a": 1000.0, "b": [1.0, 2.5]})));
    }

    #[test]
    fn a_number_beyond_floats_is_refused() {
        let value = unmarshal(b"[1e999]").expect("valid").into_value();
        let message = "json: cannot unmarshal number 1e999 into Go value of type float64";
        assert_eq!(value, Err(message.to_owned()));
    }

    #[test]
    fn fields_are_found_by_name() {
        let json = unmarshal(br#"{"b":1,"a":2,"b":3}"#).expect("valid");
        assert_eq!(json.get("b"), Some(&Json::Number("3".into())));
        assert_eq!(json.get("c"), None);
    }
}
