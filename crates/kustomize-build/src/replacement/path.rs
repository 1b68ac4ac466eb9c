//! The paths of replacements' targets (kyaml's `PathMatcher`): wildcards, matches by expression, and creation.

use manifest::yaml::{Kind, Node, NodeId, Style};

use crate::error::{Error, Result};
use crate::lookup;
use crate::nodes::Nodes;
use crate::selector;

/// Finds all nodes that a path leads to, and creates what is missing when a kind to create is given.
pub(super) fn find(
    nodes: &mut Nodes,
    at: NodeId,
    path: &[String],
    create: Option<Kind>,
) -> Result<Vec<NodeId>> {
    let Some((part, rest)) = path.split_first() else {
        return Ok(vec![at]);
    };
    if let Ok(index) = part.parse::<usize>() {
        return in_index(nodes, at, index, rest, create);
    }
    if lookup::is_list_index(part) {
        return in_matches(nodes, at, part, rest, create);
    }
    if part == "*" {
        lookup::expect_kind(nodes, at, Kind::Sequence)?;
        let mut found = Vec::new();
        for element in nodes[at].content.clone() {
            found.extend(find(nodes, element, rest, create)?);
        }
        return Ok(found);
    }
    in_field(nodes, at, part, rest, create)
}

/// What is created before the next part of a path.
fn kind_before(rest: &[String], create: Kind) -> Kind {
    match rest.first() {
        None => create,
        Some(next) if lookup::is_list_index(next) || next.parse::<usize>().is_ok() => Kind::Sequence,
        Some(_) => Kind::Mapping,
    }
}

fn in_field(
    nodes: &mut Nodes,
    at: NodeId,
    name: &str,
    rest: &[String],
    create: Option<Kind>,
) -> Result<Vec<NodeId>> {
    let field = match (lookup::get(nodes, at, name)?, create) {
        (Some(field), _) => field,
        (None, None) => return Ok(Vec::new()),
        (None, Some(create)) => {
            let field = nodes.add(lookup::empty(kind_before(rest, create)));
            nodes.push_field(at, name, field);
            field
        }
    };
    if nodes[field].kind == Kind::Scalar && !nodes[field].is_null() && !rest.is_empty() {
        // kyaml goes into text that holds YAML; what it finds there is a copy, and a scalar text is no mapping.
        let text = Node::scalar(nodes[field].value.clone());
        let text = nodes.add(text);
        return find(nodes, text, rest, create);
    }
    find(nodes, field, rest, create)
}

fn in_index(
    nodes: &mut Nodes,
    at: NodeId,
    index: usize,
    rest: &[String],
    create: Option<Kind>,
) -> Result<Vec<NodeId>> {
    lookup::expect_kind(nodes, at, Kind::Sequence)?;
    let count = nodes[at].content.len();
    if let Some(create) = create.filter(|_| index == count) {
        let element = nodes.add(lookup::empty(kind_before(rest, create)));
        nodes[at].content.push(element);
    }
    match nodes[at].content.get(index) {
        Some(element) => {
            let element = *element;
            find(nodes, element, rest, create)
        }
        None => Err(Error::invalid(format!(
            "index {index} specified but only {count} elements found"
        ))),
    }
}

fn in_matches(
    nodes: &mut Nodes,
    at: NodeId,
    part: &str,
    rest: &[String],
    create: Option<Kind>,
) -> Result<Vec<NodeId>> {
    let (name, pattern) = lookup::split_index(part)?;
    let found = matches(nodes, at, name, pattern, rest, create)?;
    if !found.is_empty() || create.is_none() {
        return Ok(found);
    }
    let value = nodes.add(Node::scalar(pattern));
    let element = if name.is_empty() {
        value
    } else {
        let element = nodes.add(lookup::empty(Kind::Mapping));
        nodes.push_field(element, name, value);
        element
    };
    nodes[at].content.push(element);
    matches(nodes, at, name, pattern, rest, create)
}

fn matches(
    nodes: &mut Nodes,
    at: NodeId,
    name: &str,
    pattern: &str,
    rest: &[String],
    create: Option<Kind>,
) -> Result<Vec<NodeId>> {
    lookup::expect_kind(nodes, at, Kind::Sequence)?;
    let pattern = selector::compile(pattern)?;
    let mut found = Vec::new();
    for element in nodes[at].content.clone() {
        let value = if name.is_empty() {
            Some(element)
        } else {
            nodes.field(element, name)
        };
        let Some(value) = value.filter(|value| pattern.is_match(&as_text(nodes, *value))) else {
            continue;
        };
        if name.is_empty() {
            found.push(value);
        } else {
            found.extend(find(nodes, element, rest, create)?);
        }
    }
    Ok(found)
}

/// A scalar as it would be written.
fn as_text(nodes: &Nodes, id: NodeId) -> String {
    let node = &nodes[id];
    match node.style {
        Style::DoubleQuoted => format!("\"{}\"", node.value),
        Style::SingleQuoted => format!("'{}'", node.value),
        _ => node.value.clone(),
    }
}
