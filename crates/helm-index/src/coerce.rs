//! Numbers and booleans that become text because a string is wanted, as sigs.k8s.io/yaml does it on the way to JSON.
//!
//! It looks at the Go type of the place, and takes the fields of an embedded struct for that struct: a number as
//! `digest` becomes text, one as `appVersion` does not and is refused later.

use manifest::yaml::number::format_g;
use serde_json::Value;

use crate::fields::{self, Field, Kind};

/// Go type of a place.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Nothing,
    Text,
    Texts,
    TextMap,
    Struct(&'static [Field]),
    Structs(&'static [Field]),
}

impl Target {
    pub(crate) fn from_field(field: &Field) -> Self {
        if field.promoted {
            return Self::Struct(&fields::METADATA);
        }
        match field.kind {
            Kind::Text => Self::Text,
            Kind::Texts => Self::Texts,
            Kind::TextMap => Self::TextMap,
            Kind::Structs(of) => Self::Structs(of.fields),
            Kind::Flag | Kind::Time | Kind::Anything | Kind::AnyMap => Self::Nothing,
        }
    }

    fn of_key(self, key: &str) -> Self {
        match self {
            Self::TextMap => Self::Text,
            Self::Struct(fields) => {
                fields::position(fields, key).map_or(Self::Nothing, |at| Self::from_field(&fields[at]))
            }
            _ => Self::Nothing,
        }
    }

    fn of_element(self) -> Self {
        match self {
            Self::Texts => Self::Text,
            Self::Structs(fields) => Self::Struct(fields),
            _ => Self::Nothing,
        }
    }
}

/// Turns numbers and booleans into text where the target wants text.
pub(crate) fn coerce(value: &mut Value, target: Target) {
    match (value, target) {
        (Value::Object(fields), target) => {
            for (key, value) in fields {
                coerce(value, target.of_key(key));
            }
        }
        (Value::Array(elements), target) => {
            for element in elements {
                coerce(element, target.of_element());
            }
        }
        (value, Target::Text) => match value {
            Value::Bool(flag) => *value = Value::String(flag.to_string()),
            Value::Number(number) if number.is_f64() => {
                *value = Value::String(format_g(number.as_f64().unwrap_or_default()));
            }
            Value::Number(number) => *value = Value::String(number.to_string()),
            _ => {}
        },
        _ => {}
    }
}
