//! Between JSON and the values of templates.

use go_template::{Kind, List, Map, Str, Type, Value};
use serde_json::Value as Json;

/// Makes a map for templates: floats stay floats, integers become `int64`.
pub fn from_json(fields: &serde_json::Map<String, Json>) -> Map {
    let entries = fields.iter();
    let entries = entries.map(|(key, value)| (Str::from(key.as_str()), value_from_json(value)));
    Map::with_entries(Type::MAP_ANY, entries.collect())
}

/// Makes a value for templates.
pub fn value_from_json(value: &Json) -> Value {
    match value {
        Json::Null => Value::Nil,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(integer) if !number.is_f64() => Value::int64(integer),
            _ => Value::Float(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::String(Str::from(text.as_str())),
        Json::Array(elements) => Value::List(elements.iter().map(value_from_json).collect()),
        Json::Object(fields) => Value::Map(from_json(fields)),
    }
}

/// Makes JSON of a map of values.
pub fn to_json(map: &Map) -> serde_json::Map<String, Json> {
    let Some(entries) = map.borrow() else {
        return serde_json::Map::new();
    };
    let fields = entries.iter();
    fields
        .map(|(key, value)| (key.to_text().into_owned(), value_to_json(value)))
        .collect()
}

/// Makes JSON of a value; what no YAML can give becomes null.
pub fn value_to_json(value: &Value) -> Json {
    match value {
        Value::Bool(truth) => Json::from(*truth),
        Value::Int(integer, _) => Json::from(*integer),
        Value::Uint(integer, _) => Json::from(*integer),
        Value::Float(float) => Json::from(*float),
        Value::String(text) => Json::from(text.to_text()),
        Value::List(elements) => Json::Array(elements.iter().map(value_to_json).collect()),
        Value::Map(map) => Json::Object(to_json(map)),
        _ => Json::Null,
    }
}

/// Copies a map with all that it holds, so that nothing is shared but texts.
pub fn copy(map: &Map) -> Map {
    match map.borrow() {
        Some(entries) => Map::with_entries(
            map.type_(),
            entries
                .iter()
                .map(|(key, value)| (key.clone(), copy_value(value)))
                .collect(),
        ),
        None => Map::new(),
    }
}

fn copy_value(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::Map(copy(map)),
        Value::List(list) if list.iter().any(holds_shared) => {
            Value::List(List::new(list.type_(), list.iter().map(copy_value).collect()))
        }
        other => other.clone(),
    }
}

/// Returns whether a copy of the value must differ from the value: lists are never written to, maps are.
fn holds_shared(value: &Value) -> bool {
    matches!(value.kind(), Some(Kind::Map | Kind::Slice))
}
