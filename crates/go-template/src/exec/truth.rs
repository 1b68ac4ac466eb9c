//! Truth of a value.

use crate::Value;

/// Returns whether a value is not the zero of its type: Go's `IsTrue`. Structs and pointers to something always are.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Invalid | Value::Nil => false,
        Value::Bool(value) => *value,
        Value::Int(number, _) => *number != 0,
        Value::Uint(number, _) => *number != 0,
        Value::Float(number) => *number != 0.0,
        Value::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
        Value::String(text) | Value::Bytes(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Map(map) => !map.is_empty(),
        Value::Object(object) if object.entries().is_some_and(|entries| entries.is_empty()) => false,
        Value::Object(object) => object.underlying().is_none_or(|value| is_true(&value)),
        Value::Func(_) => true,
    }
}
