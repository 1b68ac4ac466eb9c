//! `status.conditions` as kstatus reads it: a list of mappings with four strings.

use serde_json::Value;

use crate::fields::{self, FieldError};

/// One condition; absent fields are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

impl Condition<'_> {
    /// Writes `reason: message`, or what there is of it, or `otherwise`.
    pub(crate) fn explained(&self, otherwise: &str) -> String {
        match (self.reason, self.message) {
            ("", "") => otherwise.to_owned(),
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// Reads all conditions; none when there are none, an error when one has a wrong type.
pub(crate) fn read(object: &Value) -> Result<Vec<Condition<'_>>, FieldError> {
    let conditions = match fields::field(object, "status.conditions")? {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(value) => value.as_array(),
    };
    let conditions = conditions.ok_or_else(|| FieldError::wrong_type("status.conditions", "a list"))?;
    conditions
        .iter()
        .enumerate()
        .map(|(index, condition)| read_one(index, condition))
        .collect()
}

/// Finds a condition by type, and reads nothing into malformed ones; for causes, not for verdicts.
pub(crate) fn find<'a>(object: &'a Value, kind: &str) -> Option<Condition<'a>> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .enumerate()
        .filter_map(|(i, c)| read_one(i, c).ok())
        .find(|c| c.kind == kind)
}

fn read_one(index: usize, condition: &Value) -> Result<Condition<'_>, FieldError> {
    let field = |name: &'static str| match condition {
        Value::Null => Ok(""),
        Value::Object(map) => match map.get(name) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(_) => Err(FieldError::wrong_type(
                format!("status.conditions[{index}].{name}"),
                "a string",
            )),
        },
        _ => Err(FieldError::wrong_type(
            format!("status.conditions[{index}]"),
            "a mapping",
        )),
    };
    Ok(Condition {
        kind: field("type")?,
        status: field("status")?,
        reason: field("reason")?,
        message: field("message")?,
    })
}
