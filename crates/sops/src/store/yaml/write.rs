//! From trees to YAML: four spaces, sequences below their keys indented, strings quoted where YAML 1.1 or 1.2 would
//! take them for something else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::yaml::number::format_g;
use manifest::yaml::scalar::{Scalar, resolve_plain};
use manifest::yaml::{Node, NodeId, Nodes, Style, Tag, write_tree_with_indent};

use crate::store::{Problem, told};
use crate::tree::{Branch, Key, Value};

const INDENT: usize = 4;

pub(crate) fn write(branches: &[Branch]) -> Result<Vec<u8>, Problem> {
    let mut documents = Vec::new();
    for branch in branches {
        let mut nodes = Nodes::default();
        let root =
            mapping(branch, &mut nodes).map_err(|problem| format!("Error marshaling to YAML: {problem}"))?;
        documents.push(write_tree_with_indent(&nodes, root, INDENT));
    }
    Ok(documents.join("---\n").into_bytes())
}

fn mapping(branch: &Branch, nodes: &mut Nodes) -> Result<NodeId, Problem> {
    let mut content = Vec::new();
    for item in branch {
        let key = match &item.key {
            Key::Text(text) => string(text),
            Key::Comment(_) => continue,
            Key::Other(_) => return Err(format!("the key {} is no text", told(&item.key))),
        };
        let key = nodes.add(key);
        let value = node(&item.value, nodes)?;
        content.extend([key, value]);
    }
    Ok(nodes.add(Node {
        content,
        ..Node::mapping()
    }))
}

fn node(value: &Value, nodes: &mut Nodes) -> Result<NodeId, Problem> {
    let scalar = match value {
        Value::Map(branch) => return mapping(branch, nodes),
        Value::List(list) => return sequence(list, nodes),
        Value::Null => Node::scalar("null"),
        Value::Bool(flag) => Node::scalar(flag.to_string()),
        Value::Int(integer) => Node::scalar(integer.to_string()),
        Value::Float(float) => Node::scalar(format_g(*float)),
        Value::Time(time) => Node::scalar(time.as_nanoseconds()),
        Value::Text(text) => string(text),
        Value::Bytes(_) | Value::Comment(_) | Value::Other(_) => {
            return Err(format!("unsupported type: {}", value.kind()));
        }
    };
    Ok(nodes.add(scalar))
}

fn sequence(list: &[Value], nodes: &mut Nodes) -> Result<NodeId, Problem> {
    let mut content = Vec::new();
    for value in list {
        if let Value::Comment(_) = value {
            continue;
        }
        content.push(node(value, nodes)?);
    }
    Ok(nodes.add(Node {
        content,
        ..Node::sequence()
    }))
}

/// A string in the style that go-yaml chooses for it.
fn string(text: &[u8]) -> Node {
    let Ok(text) = std::str::from_utf8(text) else {
        return Node {
            tagged: true,
            ..Node::tagged_scalar(STANDARD.encode(text), Tag::Binary)
        };
    };
    if text == "<<" {
        // go-yaml reads its own quotes back, forgets them, and then needs the tag.
        return Node {
            tagged: true,
            ..Node::tagged_scalar(text, Tag::Merge)
        };
    }
    let style = if text.contains('\n') {
        Style::Literal
    } else if resolve_plain(text) != Scalar::Str || is_old_bool(text) || is_base_60(text) {
        Style::DoubleQuoted
    } else {
        Style::Plain
    };
    Node {
        style,
        ..Node::tagged_scalar(text, Tag::Str)
    }
}

/// YAML 1.1's booleans that are strings in 1.2.
fn is_old_bool(text: &str) -> bool {
    matches!(
        text,
        "y" | "Y"
            | "yes"
            | "Yes"
            | "YES"
            | "on"
            | "On"
            | "ON"
            | "n"
            | "N"
            | "no"
            | "No"
            | "NO"
            | "off"
            | "Off"
            | "OFF"
    )
}

/// YAML 1.1's base 60 numbers: `12:30:45`.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let sixtieth = |text: &str| match text.as_bytes() {
        [digit] => digit.is_ascii_digit(),
        [b'0'..=b'5', digit] => digit.is_ascii_digit(),
        _ => false,
    };
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else {
        return false;
    };
    let (whole, fraction) = last.split_once('.').unwrap_or((last, ""));
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits(first)
        && middle.iter().all(|part| sixtieth(part))
        && sixtieth(whole)
        && digits(fraction)
}
