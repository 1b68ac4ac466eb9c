//! One JSON object, in the order of the text.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use go_text::json::push_string;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::text::{Problem, key_text};
use crate::number;
use crate::tree::{Branch, Item, Key, Value};

/// Reads an object. What stands behind it does not count, as in SOPS.
pub(super) fn read(data: &[u8]) -> Result<Branch, Problem> {
    let mut text = serde_json::Deserializer::from_slice(data);
    // Only where something is wrong is said: the messages of serde_json quote values.
    match Value::deserialize(&mut text) {
        Ok(Value::Map(branch)) => Ok(branch),
        Ok(_) => Err(
            "Could not unmarshal input data: SOPS only supports JSON files with a top-level object \
                      (starting with '{'), not arrays or other types"
                .to_owned(),
        ),
        Err(error) => Err(format!(
            "Could not unmarshal input data: invalid JSON at line {}, column {}",
            error.line(),
            error.column()
        )),
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    /// Converts numbers that do not fit to floats, as SOPS does.
    #[expect(clippy::cast_precision_loss, reason = "Go rounds in the same way")]
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.as_bytes().to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value.into_bytes()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = elements.next_element()? {
            list.push(value);
        }
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut branch = Branch::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value()?;
            branch.push(Item::new(key, value));
        }
        Ok(Value::Map(branch))
    }

    fn visit_bytes<E: serde::de::Error>(self, _: &[u8]) -> Result<Value, E> {
        Err(E::custom("bytes"))
    }
}

/// Writes an object, indented by tabs. Comments have no place.
pub(super) fn write(branch: &Branch) -> Result<Vec<u8>, Problem> {
    let mut out = Vec::new();
    object(branch, 0, &mut out).map_err(|problem| format!("Error marshaling to json: {problem}"))?;
    out.push(b'\n');
    Ok(out)
}

fn object(branch: &Branch, level: usize, out: &mut Vec<u8>) -> Result<(), Problem> {
    out.push(b'{');
    let mut is_empty = true;
    for item in branch {
        let Key::Text(key) = &item.key else {
            if let Key::Comment(_) = item.key {
                continue;
            }
            return Err(format!("the key {} is no text", key_text(&item.key)));
        };
        separate(is_empty, level, out);
        is_empty = false;
        string(key, out);
        out.extend(b": ");
        value(&item.value, level + 1, out)?;
    }
    end(is_empty, level, out);
    out.push(b'}');
    Ok(())
}

fn array(list: &[Value], level: usize, out: &mut Vec<u8>) -> Result<(), Problem> {
    out.push(b'[');
    let mut is_empty = true;
    for element in list.iter().filter(|value| !matches!(value, Value::Comment(_))) {
        separate(is_empty, level, out);
        is_empty = false;
        value(element, level + 1, out)?;
    }
    end(is_empty, level, out);
    out.push(b']');
    Ok(())
}

fn separate(is_first: bool, level: usize, out: &mut Vec<u8>) {
    if !is_first {
        out.push(b',');
    }
    new_line(level + 1, out);
}

fn end(is_empty: bool, level: usize, out: &mut Vec<u8>) {
    if !is_empty {
        new_line(level, out);
    }
}

fn new_line(level: usize, out: &mut Vec<u8>) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b'\t', level));
}

fn value(value: &Value, level: usize, out: &mut Vec<u8>) -> Result<(), Problem> {
    match value {
        Value::Null => out.extend(b"null"),
        Value::Bool(flag) => out.extend(flag.to_string().as_bytes()),
        Value::Int(integer) => out.extend(integer.to_string().as_bytes()),
        Value::Float(float) => {
            let text = number::json(*float).ok_or("unsupported value: no number of JSON")?;
            out.extend(text.as_bytes());
        }
        Value::Text(text) => string(text, out),
        Value::Bytes(bytes) => string(STANDARD.encode(bytes).as_bytes(), out),
        Value::Time(time) => string(time.as_nanoseconds().as_bytes(), out),
        Value::List(list) => array(list, level, out)?,
        Value::Map(branch) => object(branch, level, out)?,
        Value::Comment(_) | Value::Other(_) => return Err(format!("unsupported type: {}", value.kind())),
    }
    Ok(())
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_string(text, true, &mut quoted);
    out.extend(quoted.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let out = read(text.as_bytes()).and_then(|branch| write(&branch));
        out.map_or_else(|problem| problem, |out| String::from_utf8(out).unwrap())
    }

    #[test]
    fn order_duplicates_and_numbers_stay() {
        assert_eq!(
            written(r#"{"b":1,"a":[],"b":{},"c":[1.0,9223372036854775808,null,{"d":true}]} behind"#),
            "{\n\t\"b\": 1,\n\t\"a\": [],\n\t\"b\": {},\n\t\"c\": [\n\t\t1,\n\t\t9223372036854776000,\n\t\tnull,\n\t\t{\n\t\t\t\"d\": \
             true\n\t\t}\n\t]\n}\n"
        );
        assert_eq!(
            written(r#"{"a":"<&>\u2028é\u0001"}"#),
            "{\n\t\"a\": \"\\u003c\\u0026\\u003e\\u2028é\\u0001\"\n}\n"
        );
    }

    #[test]
    fn what_is_no_object_is_refused_without_quoting_it() {
        for text in [
            "[\"hunter2\"]",
            "\"hunter2\"",
            "{\"a\": hunter2}",
            "{\"a\": \"hunter2\"",
            "",
        ] {
            let problem = written(text);
            assert!(
                problem.starts_with("Could not unmarshal input data: "),
                "{problem}"
            );
            assert!(!problem.contains("hunter2"), "{problem}");
        }
    }
}
