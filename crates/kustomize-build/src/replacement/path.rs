//! The paths of replacements' targets (kyaml's `PathMatcher`): wildcards, matches by expression, and creation.

use manifest::yaml::{self, Dialect, Kind, Node, NodeId};

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

/// Type of the node to create before the next part of a path.
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
    let found = if name.is_empty() {
        // What has no name is the scalar itself, if it is empty.
        lookup::expect_kind(nodes, at, Kind::Scalar)?;
        Some(at).filter(|at| nodes[*at].value.is_empty() && !nodes[*at].is_null())
    } else {
        lookup::get(nodes, at, name)?
    };
    let field = match (found, create) {
        (Some(field), _) => field,
        (None, None) => return Ok(Vec::new()),
        (None, Some(create)) => {
            let field = nodes.add(lookup::empty(kind_before(rest, create)));
            nodes.push_field(at, name, field);
            field
        }
    };
    if nodes[field].kind == Kind::Scalar && !rest.is_empty() {
        return in_text(nodes, field, rest, create);
    }
    find(nodes, field, rest, create)
}

/// Goes into text that holds YAML; what is found there is a copy, so that nothing comes of it but errors.
fn in_text(nodes: &mut Nodes, field: NodeId, rest: &[String], create: Option<Kind>) -> Result<Vec<NodeId>> {
    let text = nodes[field].value.clone();
    match yaml::compose_first(&text, nodes, Dialect::Kyaml) {
        Ok(Some(document)) => find(nodes, document, rest, create),
        Ok(None) => Err(nothing_in_text(&rest[0])),
        Err(problem) => Err(Error::invalid(problem.to_string())),
    }
}

/// A text without a document gives a node of no kind.
fn nothing_in_text(part: &str) -> Error {
    let is_in_list = part.parse::<usize>().is_ok() || lookup::is_list_index(part) || part == "*";
    let expected = match part {
        "" => "ScalarNode",
        _ if is_in_list => "SequenceNode",
        _ => "MappingNode",
    };
    Error::invalid(format!(
        "wrong node kind: expected {expected} but got : node contents:\nnull\n"
    ))
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
    let elements = nodes[at].content.clone();
    if elements.is_empty() {
        return Ok(Vec::new());
    }
    let pattern = selector::compile(pattern)?;
    let mut found = Vec::new();
    for element in elements {
        let value = if name.is_empty() {
            Some(element)
        } else {
            nodes.field(element, name)
        };
        let Some(value) = value.filter(|value| pattern.is_match(yaml::write_tree(nodes, *value).trim()))
        else {
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
