//! Replacements inside of text that is itself JSON or YAML: `data.config\.json.a.b`.

use manifest::yaml::{self, Dialect, Kind, NodeId};
use serde_json::Value;

use super::path;
use crate::error::{Error, Result};
use crate::generate::hash::to_go_json;
use crate::kustomization::FieldOptions;
use crate::lookup;
use crate::nodes::Nodes;

/// Sets a value inside of the text of a field that the path leads through; returns false when there is no such text,
/// or when it has no such place: kustomize then takes the path for an ordinary one.
///
/// Comments in YAML text would have to be kept, which is not supported: it is refused, so that none is lost.
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
    let has_comments = has_comments(nodes, document, &text);
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
    let trimmed = text.trim_start();
    nodes.charge(text.len());
    let written = if trimmed.starts_with(['{', '[']) {
        match yaml::json::decode_kyaml(nodes, document) {
            Ok(json) if text.contains('\n') && text.contains("  ") => indented(&json, 0),
            Ok(json) => to_go_json(&json),
            Err(_) => return Ok(false),
        }
    } else if has_comments {
        return Err(Error::unsupported(
            "replacements inside of YAML text with comments in a field are not supported",
        ));
    } else {
        yaml::write_tree(nodes, document).trim().to_owned()
    };
    nodes[field].value = written;
    Ok(true)
}

/// Returns whether a text has comments: number signs that are in none of its values.
fn has_comments(nodes: &Nodes, document: NodeId, text: &str) -> bool {
    let count = |text: &str| text.matches('#').count();
    let mut in_values = 0;
    let mut open = vec![document];
    while let Some(id) = open.pop() {
        let node = &nodes[id];
        if node.kind != Kind::Alias {
            in_values += count(&node.value);
        }
        open.extend(&node.content);
    }
    count(text) > in_values
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
