//! Values as go-yaml v2 decodes them: the step between a tree and JSON, and what its errors show.
//!
//! JSON cannot hold all of them (keys of any kind, infinities), and Go says so only about what is left at the end, when
//! later fields have replaced earlier ones. So the whole document is decoded first and made JSON afterwards.

use std::collections::BTreeMap;
use std::fmt;

use go_text::quote::quoted;
use serde_json::{Map, Number, Value};

use super::error::Problem;
use super::number::{self, Integer};

/// A decoded value.
#[derive(Clone, Debug)]
pub(super) enum GoValue {
    Null,
    Bool(bool),
    Integer(Integer),
    Float(f64),
    Text(String),
    List(Vec<GoValue>),
    Map(BTreeMap<GoKey, GoValue>),
}

/// A key of a decoded mapping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GoKey {
    Text(String),
    Signed(i64),
    Unsigned(u64),
    /// The bits of a float.
    Float(u64),
    Bool(bool),
    Null,
}

impl GoValue {
    /// Returns the value as a key; what Go cannot hash comes back.
    pub(super) fn into_key(self) -> Result<GoKey, Self> {
        Ok(match self {
            Self::Null => GoKey::Null,
            Self::Bool(b) => GoKey::Bool(b),
            Self::Integer(Integer::Signed(n)) => GoKey::Signed(n),
            Self::Integer(Integer::Unsigned(n)) => GoKey::Unsigned(n),
            Self::Float(float) => GoKey::Float(float.to_bits()),
            Self::Text(text) => GoKey::Text(text),
            Self::List(_) | Self::Map(_) => return Err(self),
        })
    }

    /// Makes JSON, as sigs.k8s.io/yaml and encoding/json do together; problems are placed in `line`.
    pub(super) fn into_json(self, line: u32) -> Result<Value, Problem> {
        self.into_json_by(line, number::float_to_json)
    }

    /// Makes JSON as [`GoValue::into_json`] does, but floats stay floats, also those that are whole.
    pub(super) fn into_json_with_floats(self, line: u32) -> Result<Value, Problem> {
        self.into_json_by(line, |float| Number::from_f64(float).map(Value::Number))
    }

    fn into_json_by(self, line: u32, write_float: fn(f64) -> Option<Value>) -> Result<Value, Problem> {
        let value = self.with_text_keys(line)?;
        value.into_json_value(write_float).map_err(|float| {
            let name = match float {
                float if float.is_nan() => "NaN",
                float if float > 0.0 => "+Inf",
                _ => "-Inf",
            };
            Problem::in_json(line, format!("json: unsupported value: {name}"))
        })
    }

    /// Turns all keys into text; `convertToJSONableObject` refuses null and integers above 63 bits.
    fn with_text_keys(self, line: u32) -> Result<Self, Problem> {
        match self {
            Self::List(elements) => {
                let elements = elements.into_iter().map(|element| element.with_text_keys(line));
                Ok(Self::List(elements.collect::<Result<_, _>>()?))
            }
            Self::Map(fields) => {
                let mut renamed = BTreeMap::new();
                for (key, value) in fields {
                    let name = match key {
                        GoKey::Text(text) => text,
                        GoKey::Signed(n) => n.to_string(),
                        GoKey::Float(bits) => number::format_g_32(f64::from_bits(bits)),
                        GoKey::Bool(b) => b.to_string(),
                        GoKey::Null | GoKey::Unsigned(_) => return Err(unsupported(&key, &value, line)),
                    };
                    renamed.insert(GoKey::Text(name), value.with_text_keys(line)?);
                }
                Ok(Self::Map(renamed))
            }
            other => Ok(other),
        }
    }

    /// Fails with the first float that JSON does not know.
    fn into_json_value(self, write_float: fn(f64) -> Option<Value>) -> Result<Value, f64> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(b) => Value::Bool(b),
            Self::Integer(integer) => integer.to_json(),
            Self::Float(float) => write_float(float).ok_or(float)?,
            Self::Text(text) => Value::String(text),
            Self::List(elements) => {
                let elements = elements
                    .into_iter()
                    .map(|element| element.into_json_value(write_float));
                Value::Array(elements.collect::<Result<_, _>>()?)
            }
            Self::Map(fields) => {
                let mut map = Map::new();
                for (key, value) in fields {
                    map.insert(key.into_text(), value.into_json_value(write_float)?);
                }
                Value::Object(map)
            }
        })
    }
}

fn unsupported(key: &GoKey, value: &GoValue, line: u32) -> Problem {
    let (kind, key) = match key {
        GoKey::Unsigned(n) => ("uint64", format!("{n:#x}")),
        _ => ("%!s(<nil>)", "<nil>".to_owned()),
    };
    let value = match value {
        GoValue::Null => "<nil>".to_owned(),
        value => value.to_string(),
    };
    Problem::in_json(
        line,
        format!("unsupported map key of type: {kind}, key: {key}, value: {value}"),
    )
}

impl GoKey {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            other => other.to_string(),
        }
    }
}

/// Shows a value as Go's `%#v` does inside of an `interface{}`.
impl fmt::Display for GoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("interface {}(nil)"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Integer(Integer::Signed(n)) => write!(f, "{n}"),
            Self::Integer(Integer::Unsigned(n)) => write!(f, "{n:#x}"),
            Self::Float(float) => show_float(f, *float),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::List(elements) => {
                f.write_str("[]interface {}{")?;
                for (index, element) in elements.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{element}")?;
                }
                f.write_str("}")
            }
            Self::Map(fields) => {
                f.write_str("map[interface {}]interface {}{")?;
                for (index, (key, value)) in fields.iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    write!(f, "{comma}{key}:{value}")?;
                }
                f.write_str("}")
            }
        }
    }
}

impl fmt::Display for GoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Signed(n) => write!(f, "{n}"),
            Self::Unsigned(n) => write!(f, "{n:#x}"),
            Self::Float(bits) => show_float(f, f64::from_bits(*bits)),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Null => f.write_str("interface {}(nil)"),
        }
    }
}

fn show_float(f: &mut fmt::Formatter<'_>, float: f64) -> fmt::Result {
    match float {
        float if float.is_nan() => f.write_str("NaN"),
        f64::INFINITY => f.write_str("+Inf"),
        f64::NEG_INFINITY => f.write_str("-Inf"),
        float => f.write_str(&number::format_g(float)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_go_shows_them() {
        let map = BTreeMap::from([(GoKey::Text("a\n\"é\u{a0}".to_owned()), GoValue::Null)]);
        let value = GoValue::List(vec![
            GoValue::Map(map),
            GoValue::Float(1e6),
            GoValue::Integer(Integer::Unsigned(u64::MAX)),
            GoValue::Bool(true),
        ]);
        assert_eq!(
            value.to_string(),
            r#"[]interface {}{map[interface {}]interface {}{"a\n\"é\u00a0":interface {}(nil)}, 1e+06, 0xffffffffffffffff, true}"#
        );
    }
}
