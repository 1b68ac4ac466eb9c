//! CEL's values as JSON, bounded: an expression of a few bytes can make a value of many.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cel::Value;
use cel::objects::{Key, OptionalValue};

/// Values and bytes of text that an answer may have.
const SIZE: usize = 1 << 20;

/// Says what a value is in JSON, or why it is nothing.
pub(crate) fn json(value: &Value) -> Result<serde_json::Value, &'static str> {
    convert(value, &mut { SIZE })
}

fn convert(value: &Value, left: &mut usize) -> Result<serde_json::Value, &'static str> {
    take(1, left)?;
    Ok(match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Int(number) => (*number).into(),
        Value::UInt(number) => (*number).into(),
        Value::Float(number) => serde_json::Number::from_f64(*number)
            .ok_or("its value has a number that JSON has not")?
            .into(),
        Value::String(text) => {
            take(text.len(), left)?;
            text.as_str().into()
        }
        Value::Bytes(bytes) => {
            take(bytes.len(), left)?;
            STANDARD.encode(bytes.as_slice()).into()
        }
        Value::Duration(duration) => {
            let nanoseconds = duration.subsec_nanos().unsigned_abs();
            let fraction = format!("{nanoseconds:09}");
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            let sign = if duration.num_seconds() == 0 && duration.subsec_nanos() < 0 {
                "-"
            } else {
                ""
            };
            format!("{sign}{}{point}{fraction}s", duration.num_seconds()).into()
        }
        Value::Timestamp(time) => time.to_rfc3339().replace("+00:00", "Z").into(),
        Value::List(elements) => {
            let elements = elements.iter().map(|element| convert(element, left));
            serde_json::Value::Array(elements.collect::<Result<_, _>>()?)
        }
        Value::Map(map) => {
            let mut fields = serde_json::Map::new();
            for (key, value) in map.map.iter() {
                let name = name(key);
                take(name.len(), left)?;
                fields.insert(name, convert(value, left)?);
            }
            serde_json::Value::Object(fields)
        }
        Value::Opaque(opaque) => match opaque
            .downcast_ref::<OptionalValue>()
            .and_then(OptionalValue::value)
        {
            Some(value) => convert(value, left)?,
            None => serde_json::Value::Null,
        },
        Value::Function(..) | Value::Struct(_) => return Err("its value cannot be written as JSON"),
    })
}

fn name(key: &Key) -> String {
    match key {
        Key::Int(number) => number.to_string(),
        Key::Uint(number) => number.to_string(),
        Key::Bool(flag) => flag.to_string(),
        Key::String(text) => text.to_string(),
    }
}

fn take(size: usize, left: &mut usize) -> Result<(), &'static str> {
    *left = left.checked_sub(size).ok_or("its value is too large")?;
    Ok(())
}
