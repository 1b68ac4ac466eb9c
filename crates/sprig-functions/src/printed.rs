//! Values as text: what `toString`, `quote`, `join` and keys of `dict` make of them.

use go_template::{Error, Str, Value, format};

/// sprig's `strval`: strings and bytes as they are, errors and stringers by their text, all else as `%v`.
pub(crate) fn text_of(value: &Value) -> Result<Str, Error> {
    match value {
        Value::String(text) | Value::Bytes(text) => Ok(text.clone()),
        Value::Object(object) => match object.text() {
            Some(text) => Ok(text),
            None => printed(value).map(Str::from),
        },
        value => printed(value).map(Str::from),
    }
}

/// Prints a value as `%v` does.
pub(crate) fn printed(value: &Value) -> Result<Vec<u8>, Error> {
    match value {
        Value::String(text) => Ok(text.to_vec()),
        value => format::sprint(std::slice::from_ref(value)),
    }
}

/// sprig's `strslice`: the texts of the elements of a slice without its nils, or the text of a single value.
pub(crate) fn texts_of(value: &Value) -> Result<Vec<Str>, Error> {
    match value {
        Value::Invalid | Value::Nil => Ok(Vec::new()),
        Value::List(list) => list
            .iter()
            .filter(|item| !item.is_untyped_nil())
            .map(text_of)
            .collect(),
        Value::Bytes(bytes) => Ok(bytes.iter().map(|byte| Str::from(byte.to_string())).collect()),
        value => Ok(vec![text_of(value)?]),
    }
}
