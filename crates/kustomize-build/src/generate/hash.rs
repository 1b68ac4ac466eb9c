//! The hash that generated names end in.

use std::fmt::Write;

use go_text::json::push_string;
use manifest::yaml::{Kind, NodeId, json};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::nodes::Nodes;
use crate::resource;

/// Returns the suffix for an object: ten characters of the SHA-256 of its data, with letters for what could be a word.
///
/// kustomize looks for a name under a key that no object has, so that the name does not count.
pub(crate) fn of_object(nodes: &Nodes, object: NodeId) -> Result<String> {
    let data = |field: &str| -> Result<Value> {
        match nodes.field(object, field) {
            None => Ok(Value::from("")),
            Some(value) if nodes[value].kind == Kind::Scalar => Ok(Value::from(nodes[value].value.as_str())),
            Some(value) => {
                json::decode_kyaml(nodes, value).map_err(|problem| Error::invalid(problem.to_string()))
            }
        }
    };
    let mut fields = vec![("data", data("data")?), ("name", Value::from(""))];
    let optional = match resource::text(nodes, object, "kind") {
        "ConfigMap" => {
            fields.push(("kind", Value::from("ConfigMap")));
            "binaryData"
        }
        "Secret" => {
            fields.push(("kind", Value::from("Secret")));
            fields.push(("type", data("type")?));
            "stringData"
        }
        kind => {
            return Err(Error::unsupported(format!(
                "a name suffix hash for kind {kind} is not supported"
            )));
        }
    };
    let extra = data(optional)?;
    if extra.is_object() {
        fields.push((optional, extra));
    }
    fields.sort_by_key(|(name, _)| *name);
    let fields: serde_json::Map<String, Value> = fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    Ok(encode(&Sha256::digest(to_go_json(&Value::Object(fields)))))
}

fn encode(digest: &[u8]) -> String {
    const LENGTH: usize = 10;
    let mut hex = String::new();
    for byte in &digest[..LENGTH / 2] {
        // Writing to a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    let letter = |c: char| match c {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        other => other,
    };
    hex.chars().map(letter).collect()
}

/// Writes JSON as encoding/json does: keys sorted, and `<`, `>`, `&` and two line separators escaped.
pub(crate) fn to_go_json(value: &Value) -> String {
    let mut text = String::new();
    write_json(value, &mut text);
    text
}

fn write_json(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => push_string(text.as_bytes(), true, out),
        Value::Array(elements) => {
            out.push('[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json(element, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_string(key.as_bytes(), true, out);
                out.push(':');
                write_json(value, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_escaped_as_in_go() {
        assert_eq!(
            to_go_json(&json!({"b": "<a&\u{2028}", "a": [1, null]})),
            r#"{"a":[1,null],"b":"\u003ca\u0026\u2028"}"#
        );
    }
}
