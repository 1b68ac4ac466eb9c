//! Fields of an event.

use serde_json::{Map, Value};

/// The text of a field; None if it is missing or empty.
pub(super) fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<Option<&'a str>, String> {
    match fields.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
        Some(_) => Err(format!("its {field} is no text")),
    }
}

pub(super) fn filled<'a>(fields: &'a Map<String, Value>, field: &str) -> Result<&'a str, String> {
    text(fields, field)?.ok_or_else(|| format!("its {field} is missing"))
}
