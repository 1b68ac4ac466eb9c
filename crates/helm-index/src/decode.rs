//! JSON values into structs, as encoding/json fills them: names in any case, null changes nothing, wrong types refused.

use std::collections::BTreeMap;

use go_time::Time;
use manifest::yaml::number::float_to_json;
use serde_json::{Map, Value};

use crate::fields::{self, Field, Kind, Struct};

/// How times are written in JSON, in Go's way to say it.
const RFC_3339: &[u8] = b"2006-01-02T15:04:05Z07:00";
const RFC_3339_NANO: &[u8] = b"2006-01-02T15:04:05.999999999Z07:00";
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

/// A struct whose fields are filled, in the order of the struct. None is what was not given.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Filled {
    pub(crate) of: &'static Struct,
    pub(crate) slots: Vec<Option<Slot>>,
}

/// The content of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Slot {
    Text(String),
    Flag(bool),
    /// As Go writes it.
    Time(String),
    Texts(Vec<String>),
    TextMap(BTreeMap<String, String>),
    Structs(Vec<Option<Filled>>),
    Any(Value),
}

impl Filled {
    pub(crate) fn new(of: &'static Struct) -> Self {
        Self {
            of,
            slots: vec![None; of.fields.len()],
        }
    }

    /// Fills a struct from the fields of an object.
    ///
    /// # Errors
    /// What is wrong, in the words of encoding/json.
    pub(crate) fn read(
        of: &'static Struct,
        object: Map<String, Value>,
        strict: bool,
    ) -> Result<Self, String> {
        let mut filled = Self::new(of);
        for (name, value) in object {
            filled.set(&name, value, strict)?;
        }
        Ok(filled)
    }

    /// Fills one field.
    pub(crate) fn set(&mut self, name: &str, value: Value, strict: bool) -> Result<(), String> {
        let Some(at) = fields::position(self.of.fields, name) else {
            return if strict { Err(unknown(name)) } else { Ok(()) };
        };
        let field = &self.of.fields[at];
        if let Some(slot) = read(self.of, field, value, strict)? {
            self.slots[at] = slot;
        }
        Ok(())
    }

    pub(crate) fn slot(&self, name: &str) -> Option<&Slot> {
        let at = self.of.fields.iter().position(|field| field.name == name)?;
        self.slots[at].as_ref()
    }

    pub(crate) fn slot_mut(&mut self, name: &str) -> Option<&mut Option<Slot>> {
        let at = self.of.fields.iter().position(|field| field.name == name)?;
        Some(&mut self.slots[at])
    }

    /// The text of a field; empty when it has none.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.slot(name) {
            Some(Slot::Text(text)) => text,
            _ => "",
        }
    }

    /// The time of a field, as written.
    pub(crate) fn time(&self, name: &str) -> &str {
        match self.slot(name) {
            Some(Slot::Time(text)) => text,
            _ => ZERO_TIME,
        }
    }
}

pub(crate) fn unknown(name: &str) -> String {
    format!("json: unknown field {}", go_text::quote::quoted(name))
}

/// Reads the value of a field; the outer None leaves it as it is, the inner one empties it.
fn read(of: &Struct, field: &Field, value: Value, strict: bool) -> Result<Option<Option<Slot>>, String> {
    let refuse = |value: &Value, kind: &str| Err(mismatch(of, field, value, kind));
    let slot = match (field.kind, value) {
        // Pointers, slices and maps become nil; the others stay as they are.
        (Kind::Texts | Kind::TextMap | Kind::Structs(_) | Kind::Anything | Kind::AnyMap, Value::Null) => {
            return Ok(Some(None));
        }
        (_, Value::Null) => return Ok(None),
        (Kind::Text, Value::String(text)) => Slot::Text(text),
        (Kind::Text, other) => return refuse(&other, "string"),
        (Kind::Flag, Value::Bool(flag)) => Slot::Flag(flag),
        (Kind::Flag, other) => return refuse(&other, "bool"),
        (Kind::Time, Value::String(text)) => Slot::Time(time(&text)?),
        (Kind::Time, _) => return Err("Time.UnmarshalJSON: input is not a JSON string".to_owned()),
        (Kind::Texts, Value::Array(elements)) => {
            let texts = elements.into_iter().map(|element| match element {
                Value::String(text) => Ok(text),
                Value::Null => Ok(String::new()),
                other => Err(mismatch(of, field, &other, "string")),
            });
            Slot::Texts(texts.collect::<Result<_, _>>()?)
        }
        (Kind::Texts, other) => return refuse(&other, "[]string"),
        (Kind::TextMap, Value::Object(entries)) => {
            let entries = entries.into_iter().map(|(key, value)| match value {
                Value::String(text) => Ok((key, text)),
                Value::Null => Ok((key, String::new())),
                other => Err(mismatch(of, field, &other, "string")),
            });
            Slot::TextMap(entries.collect::<Result<_, _>>()?)
        }
        (Kind::TextMap, other) => return refuse(&other, "map[string]string"),
        (Kind::Structs(inner), Value::Array(elements)) => {
            let structs = elements.into_iter().map(|element| match element {
                Value::Null => Ok(None),
                Value::Object(object) => Filled::read(inner, object, strict).map(Some),
                other => Err(mismatch(of, field, &other, &format!("v2.{}", inner.name))),
            });
            Slot::Structs(structs.collect::<Result<_, _>>()?)
        }
        (Kind::Structs(inner), other) => return refuse(&other, &format!("[]*v2.{}", inner.name)),
        (Kind::Anything, Value::Array(elements)) => Slot::Any(with_go_floats(Value::Array(elements))?),
        (Kind::Anything, other) => return refuse(&other, "[]interface {}"),
        (Kind::AnyMap, Value::Object(entries)) => Slot::Any(with_go_floats(Value::Object(entries))?),
        (Kind::AnyMap, other) => return refuse(&other, "map[string]interface {}"),
    };
    Ok(Some(Some(slot)))
}

fn mismatch(of: &Struct, field: &Field, value: &Value, kind: &str) -> String {
    let dot = if of.path.is_empty() { "" } else { "." };
    let (path, name) = (of.path, field.name);
    format!(
        "json: cannot unmarshal {} into Go struct field {}.{path}{dot}{name} of type {kind}",
        json_kind(value),
        of.name,
    )
}

/// The name that encoding/json has for what it found.
pub(crate) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A time as Go writes it after it has read it.
fn time(text: &str) -> Result<String, String> {
    let time = Time::parse(RFC_3339, text.as_bytes()).map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&time.format(RFC_3339_NANO)).into_owned())
}

/// Numbers after a trip through Go's float64.
fn with_go_floats(value: Value) -> Result<Value, String> {
    Ok(match value {
        Value::Number(number) => {
            let float = number.as_f64().and_then(float_to_json);
            float.ok_or_else(|| {
                format!("json: cannot unmarshal number {number} into Go value of type float64")
            })?
        }
        Value::Array(elements) => Value::Array(
            elements
                .into_iter()
                .map(with_go_floats)
                .collect::<Result<_, _>>()?,
        ),
        Value::Object(entries) => {
            let entries = entries
                .into_iter()
                .map(|(key, value)| Ok((key, with_go_floats(value)?)));
            Value::Object(entries.collect::<Result<_, String>>()?)
        }
        other => other,
    })
}
