//! From values to YAML text: `yaml.Marshal`, which is `json.Marshal` and then `JSONToYAML`.
//!
//! The JSON text between the two is not made: it would be read back at once. Where JSON refuses a value, the encoder of
//! JSON is asked for the words.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use go_template::json::{Style, encode};
use go_template::{Context, Error, ErrorKind, Value};
use go_text::valid_text;
use manifest::json::ValueCounter;
use manifest::yaml::{self, number};
use serde_json::{Map as PlainMap, Value as Plain};

/// How deep values may nest here; beyond it they go through JSON, which tells cycles from depth.
const MAX_DEPTH: usize = 200;

/// How many bytes are made here before the encoder, which has a bound of its own, is asked instead: a list that holds
/// another twice, and so on, is small as a value and without end as text.
const MAX_BYTES: usize = 64 << 20;

/// Memory of a node without its text.
const NODE_BYTES: usize = 64;

/// Writes a value as YAML, ending in a newline.
pub(crate) fn marshal(context: &mut Context<'_>, value: &Value) -> Result<String, Error> {
    let plain = match plain(value, 0, &mut { MAX_BYTES }) {
        Some(plain) => plain,
        None => through_json(value)?,
    };
    let text = yaml::write(&plain).map_err(|problem| Error::new(problem.to_string()))?;
    context.charge(text.len())?;
    Ok(text)
}

fn through_json(value: &Value) -> Result<Plain, Error> {
    let text = encode(value, Style::MARSHAL).map_err(|error| match error.is_limit() {
        true => error,
        false => Error::new(format!("error marshaling into JSON: {error}")),
    })?;
    let values = ValueCounter::default().feed(text.as_bytes());
    if values > (MAX_BYTES / NODE_BYTES) as u64 {
        return Err(too_large("values"));
    }
    let plain = serde_json::from_str(&text).map_err(|error| Error::new(error.to_string()))?;
    match indentation(&plain, 0) > MAX_BYTES {
        true => Err(too_large("levels of indentation")),
        false => Ok(plain),
    }
}

fn too_large(of: &str) -> Error {
    Error::from_parts(ErrorKind::Limit, format!("yaml: the value has too many {of}"))
}

/// Number of spaces that the text will be indented with: two per level, on each line.
fn indentation(value: &Plain, depth: usize) -> usize {
    let below = |value: &Plain| indentation(value, depth + 1);
    2 * depth
        + match value {
            Plain::Array(items) => items.iter().map(below).sum(),
            Plain::Object(fields) => fields.values().map(below).sum(),
            _ => 0,
        }
}

/// Makes JSON of a value, of no more than `left` bytes. None for what has to go through the encoder.
fn plain(value: &Value, depth: usize, left: &mut usize) -> Option<Plain> {
    if depth > MAX_DEPTH {
        return None;
    }
    let text = match value {
        Value::String(text) | Value::Bytes(text) => text.len(),
        _ => 0,
    };
    // Its line begins with two spaces for each level.
    *left = left.checked_sub(text + NODE_BYTES + 2 * depth)?;
    Some(match value {
        Value::Invalid | Value::Nil => Plain::Null,
        Value::Bool(truth) => Plain::Bool(*truth),
        Value::Int(number, _) => Plain::from(*number),
        Value::Uint(number, _) => Plain::from(*number),
        Value::Float(number) => number::float_to_json(*number)?,
        Value::String(text) => Plain::String(string(text)),
        Value::Bytes(bytes) => Plain::String(STANDARD.encode(bytes)),
        Value::List(list) if list.is_nil() => Plain::Null,
        Value::List(list) => Plain::Array(
            list.iter()
                .map(|item| plain(item, depth + 1, left))
                .collect::<Option<_>>()?,
        ),
        Value::Map(map) => match map.borrow() {
            None => Plain::Null,
            Some(entries) => {
                let mut fields = PlainMap::new();
                for (key, value) in entries.iter() {
                    *left = left.checked_sub(key.len())?;
                    fields.insert(string(key), plain(value, depth + 1, left)?);
                }
                Plain::Object(fields)
            }
        },
        Value::Object(object) => {
            if let Some(json) = object.json().or_else(|| object.underlying()) {
                return plain(&json, depth + 1, left);
            }
            let mut fields = PlainMap::new();
            for (name, value) in object.fields() {
                fields.insert(name.to_owned(), plain(&value, depth + 1, left)?);
            }
            Plain::Object(fields)
        }
        Value::Complex(..) | Value::Func(_) => return None,
    })
}

/// Returns a text; each byte that is no UTF-8 becomes a replacement character, as in Go's JSON.
fn string(bytes: &[u8]) -> String {
    valid_text(bytes).into_owned()
}
