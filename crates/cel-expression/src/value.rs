//! JSON as CEL's values, and CEL's errors in words.

use std::collections::HashMap;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{ExecutionError, Value};

/// Numbers are what Go makes of an object's JSON: whole ones are int, all others double.
pub(crate) fn from_json(json: &serde_json::Value) -> Value {
    convert(json, |number| {
        number.as_i64().map_or_else(|| double(number), Value::Int)
    })
}

/// Numbers are what Go's encoding/json makes of any JSON: all are double.
pub(crate) fn decoded(json: &serde_json::Value) -> Value {
    convert(json, double)
}

fn double(number: &serde_json::Number) -> Value {
    Value::Float(number.as_f64().unwrap_or(f64::NAN))
}

fn convert(json: &serde_json::Value, number: fn(&serde_json::Number) -> Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => Value::Bool(*flag),
        serde_json::Value::Number(found) => number(found),
        serde_json::Value::String(text) => Value::String(Arc::new(text.clone())),
        serde_json::Value::Array(elements) => Value::List(Arc::new(
            elements.iter().map(|element| convert(element, number)).collect(),
        )),
        serde_json::Value::Object(fields) => {
            let field = |(name, value): (&String, &serde_json::Value)| {
                (Key::String(Arc::new(name.clone())), convert(value, number))
            };
            let map: HashMap<Key, Value> = fields.iter().map(field).collect();
            Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// Describes a failed evaluation of `text`. Values of the object stay out of it: they may be secret.
pub(crate) fn words(error: &ExecutionError, text: &str) -> String {
    match error {
        // A key that was computed is a value too.
        ExecutionError::NoSuchKey(key) if text.contains(key.as_str()) => format!("no such key: {key}"),
        ExecutionError::NoSuchKey(_) => "no such key".to_owned(),
        ExecutionError::UndeclaredReference(name) => format!("no such attribute: {name}"),
        ExecutionError::FunctionError { function, message } if function == "loop" => message.clone(),
        ExecutionError::FunctionError { function, .. } => format!("'{function}' failed"),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::UnexpectedType { got, want } => format!("found {got} where {want} is needed"),
        // The names of the types and of the function, no values.
        ExecutionError::NoSuchOverload(overload) => overload.to_string(),
        _ => "no such overload".to_owned(),
    }
}
