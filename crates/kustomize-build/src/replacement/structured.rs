//! Replacements inside of text that is itself JSON: `data.config\.json.a.b`.

use manifest::yaml::{self, Dialect, Kind, NodeId};
use serde_json::Value;

use super::path;
use crate::error::{Error, Result};
use crate::generate::hash::to_go_json;
use crate::kustomization::FieldOptions;
use crate::lookup;
use crate::nodes::Nodes;

/// Sets a value inside of the text of a field that the path leads through; returns false when there is no such text.
///
/// Text in YAML would have to be written again with its comments and styles, which is not supported: it is refused, so
/// that nothing wrong comes out.
pub(super) fn set(
    nodes: &mut Nodes,
    root: NodeId,
    parts: &[String],
    value: NodeId,
    options: Option<&FieldOptions>,
    create: Option<Kind>,
) -> Result<bool> {
    let Some((field, rest)) = text_field(nodes, root, parts) else {
        return Ok(false);
    };
    let text = nodes[field].value.clone();
    let Ok(Some(document)) = yaml::compose_first(&text, nodes, Dialect::Kyaml) else {
        return Ok(false);
    };
    let Ok(fields) = path::find(nodes, document, rest, create) else {
        return Ok(false);
    };
    if fields.is_empty() {
        return Ok(false);
    }
    for field in fields {
        if super::set_field(nodes, field, value, options).is_err() {
            return Ok(false);
        }
    }
    let Ok(json) = yaml::json::decode_kyaml(nodes, document) else {
        return Ok(false);
    };
    if !text.trim_start().starts_with(['{', '[']) {
        return Err(Error::unsupported(
            "replacements inside of YAML text in a field are not supported",
        ));
    }
    let pretty = text.contains('\n') && text.contains("  ");
    nodes[field].value = if pretty {
        indented(&json, 0)
    } else {
        to_go_json(&json)
    };
    Ok(true)
}

/// Finds the first part of the path that leads to a scalar, with something left of the path.
fn text_field<'a>(nodes: &Nodes, root: NodeId, parts: &'a [String]) -> Option<(NodeId, &'a [String])> {
    for length in 1..parts.len() {
        let Ok(Some(field)) = lookup::lookup(nodes, root, &parts[..length]) else {
            continue;
        };
        if nodes[field].kind == Kind::Scalar {
            return Some((field, &parts[length..]));
        }
    }
    None
}

/// Writes JSON as `json.MarshalIndent` with two spaces.
fn indented(value: &Value, depth: usize) -> String {
    let pad = |depth: usize| "  ".repeat(depth);
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            let lines: Vec<String> = elements
                .iter()
                .map(|e| format!("{}{}", pad(depth + 1), indented(e, depth + 1)))
                .collect();
            format!("[\n{}\n{}]", lines.join(",\n"), pad(depth))
        }
        Value::Object(fields) if !fields.is_empty() => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            let line = |(key, value): (&String, &Value)| {
                let key = to_go_json(&Value::from(key.as_str()));
                format!("{}{key}: {}", pad(depth + 1), indented(value, depth + 1))
            };
            let lines: Vec<String> = sorted.into_iter().map(line).collect();
            format!("{{\n{}\n{}}}", lines.join(",\n"), pad(depth))
        }
        other => to_go_json(other),
    }
}
