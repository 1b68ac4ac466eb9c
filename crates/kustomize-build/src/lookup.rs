//! Finding and setting fields in a tree of nodes, as kyaml's filters do.
//!
//! The rules are kyaml's (`yaml/fns.go`), oddities included, because later steps and the final types depend on them:
//! setting a field keeps the style of the scalar that was there, and a null in place of a mapping is no error.

use std::borrow::Cow;

use manifest::yaml::{Kind, Node, NodeId, Style, Tag, scalar};

use crate::error::{Error, Result};
use crate::nodes::Nodes;

/// Fails when a node is neither null nor of the kind.
pub(crate) fn expect_kind(nodes: &Nodes, id: NodeId, kind: Kind) -> Result<()> {
    let node = &nodes[id];
    if node.is_null() || node.kind == kind {
        return Ok(());
    }
    let (expected, got) = (kind_name(kind), kind_name(node.kind));
    let content = shown(nodes, id);
    Err(Error::invalid(format!(
        "wrong node kind: expected {expected} but got {got}: node contents:\n{content}"
    )))
}

/// Writes a node for a message; what a Secret holds is left out.
fn shown(nodes: &Nodes, id: NodeId) -> String {
    let text = |field: &str| nodes.field(id, field).map(|value| nodes[value].value.as_str());
    if text("kind") != Some("Secret") {
        return manifest::yaml::write_tree(nodes, id);
    }
    let mut copy = manifest::yaml::Nodes::clone(nodes);
    for field in ["data", "stringData"] {
        copy.remove_field(id, field);
    }
    manifest::yaml::write_tree(&copy, id)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Scalar => "ScalarNode",
        Kind::Mapping => "MappingNode",
        Kind::Sequence => "SequenceNode",
        Kind::Alias => "AliasNode",
    }
}

/// Gets a mapping's field; None below null.
pub(crate) fn get(nodes: &Nodes, mapping: NodeId, name: &str) -> Result<Option<NodeId>> {
    expect_kind(nodes, mapping, Kind::Mapping)?;
    Ok(nodes.field(mapping, name))
}

/// Follows a path of fields, indexes, `-` for the last element, and `[key=value]`.
pub(crate) fn lookup<S: AsRef<str>>(nodes: &Nodes, start: NodeId, path: &[S]) -> Result<Option<NodeId>> {
    let mut at = start;
    for part in path
        .iter()
        .map(|part| part.as_ref().trim())
        .filter(|part| !part.is_empty())
    {
        match step(nodes, at, part)? {
            Some(next) => at = next,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// Returns whether a part of a path is more than the name of a field: an index, `-`, `*` or `[…]`.
pub(crate) fn is_no_name(part: &str) -> bool {
    part.parse::<i64>().is_ok() || matches!(part, "-" | "*") || is_list_index(part)
}

fn step(nodes: &Nodes, at: NodeId, part: &str) -> Result<Option<NodeId>> {
    if let Ok(index) = part.parse::<i64>() {
        let index = usize::try_from(index)
            .map_err(|_| Error::invalid(format!("array index {index} cannot be negative")))?;
        expect_kind(nodes, at, Kind::Sequence)?;
        return Ok(nodes[at].content.get(index).copied());
    }
    match part {
        "-" => {
            expect_kind(nodes, at, Kind::Sequence)?;
            Ok(nodes[at].content.last().copied())
        }
        "*" => Err(Error::invalid("wildcard is not supported in PathGetter")),
        _ if is_list_index(part) => {
            let (name, value) = split_index(part)?;
            expect_kind(nodes, at, Kind::Sequence)?;
            Ok(find_element(nodes, at, &[name], &[value]))
        }
        _ => get(nodes, at, part),
    }
}

/// Returns whether a part of a path is `[…]`.
pub(crate) fn is_list_index(part: &str) -> bool {
    part.starts_with('[') && part.ends_with(']')
}

/// Takes `[key=value]` apart.
pub(crate) fn split_index(part: &str) -> Result<(&str, &str)> {
    let inner = part.strip_suffix(']').unwrap_or(part);
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    inner.split_once('=').ok_or_else(|| {
        Error::invalid("list path element must contain fieldName=fieldValue for element to match")
    })
}

/// Finds the element of a sequence whose fields have these texts; with one empty key, the scalar of that text.
pub(crate) fn find_element(
    nodes: &Nodes,
    sequence: NodeId,
    keys: &[&str],
    values: &[&str],
) -> Option<NodeId> {
    let elements = &nodes[sequence].content;
    if keys.first().is_none_or(|key| key.is_empty()) {
        let value = values.first().copied().unwrap_or_default();
        return elements
            .iter()
            .copied()
            .find(|element| nodes[*element].value == value);
    }
    elements.iter().copied().find(|element| {
        nodes[*element].kind == Kind::Mapping
            && keys.iter().zip(values).all(|(key, value)| {
                nodes
                    .field(*element, key)
                    .is_some_and(|field| nodes[field].value == *value)
            })
    })
}

/// Sets a field of a mapping: the node that is there takes over the value's content and keeps its own style.
pub(crate) fn set_field(nodes: &mut Nodes, mapping: NodeId, name: &str, value: NodeId) -> Result<()> {
    quote_yaml_1_1(nodes, value);
    expect_kind(nodes, mapping, Kind::Mapping)?;
    if nodes[value].is_null() {
        nodes.remove_field(mapping, name);
        return Ok(());
    }
    set_field_kept(nodes, mapping, name, value);
    Ok(())
}

/// Sets a field as [`set_field`] does, also to null.
pub(crate) fn set_field_kept(nodes: &mut Nodes, mapping: NodeId, name: &str, value: NodeId) {
    match nodes.field(mapping, name) {
        Some(field) => {
            keep_style(nodes, value, field);
            replace(nodes, field, value);
        }
        None => nodes.push_field(mapping, name, value),
    }
}

/// Gives a node the style of another: quotes, flow, and whether the tag is written.
pub(crate) fn keep_style(nodes: &mut Nodes, of: NodeId, like: NodeId) {
    let (style, flow, tagged) = (nodes[like].style, nodes[like].flow, nodes[like].tagged);
    let node = &mut nodes[of];
    (node.style, node.flow, node.tagged) = (style, flow, tagged);
}

/// Sets a scalar in place, which keeps its style.
pub(crate) fn set_scalar(nodes: &mut Nodes, at: NodeId, mut value: Node) -> Result<()> {
    expect_kind(nodes, at, Kind::Scalar)?;
    if value.is_null() {
        return Ok(());
    }
    let old = &nodes[at];
    (value.style, value.flow, value.tagged) = (old.style, old.flow, old.tagged);
    value.line = old.line;
    nodes[at] = value;
    Ok(())
}

/// Puts the content of one node into another, in all places where that stands.
pub(crate) fn replace(nodes: &mut Nodes, at: NodeId, value: NodeId) {
    if at != value {
        nodes[at] = nodes[value].clone();
    }
}

/// Quotes a new string that a YAML 1.1 reader would take for something else.
fn quote_yaml_1_1(nodes: &mut Nodes, id: NodeId) {
    let node = &mut nodes[id];
    let is_string = node.kind == Kind::Scalar && matches!(node.tag, Tag::Str | Tag::Empty);
    if is_string && node.style == Style::Plain && scalar::is_no_string_in_yaml_1_1(&node.value) {
        node.style = Style::DoubleQuoted;
    }
}

/// Gets a mapping's field, and makes an empty one of the kind when there is none.
pub(crate) fn get_or_create(nodes: &mut Nodes, mapping: NodeId, name: &str, kind: Kind) -> Result<NodeId> {
    if let Some(field) = get(nodes, mapping, name)? {
        return Ok(field);
    }
    let field = nodes.add(empty(kind));
    nodes.push_field(mapping, name, field);
    Ok(field)
}

/// Makes an empty node without a tag.
pub(crate) fn empty(kind: Kind) -> Node {
    let node = match kind {
        Kind::Sequence => Node::sequence(),
        Kind::Mapping => Node::mapping(),
        Kind::Scalar | Kind::Alias => Node::scalar(""),
    };
    Node {
        tag: Tag::Empty,
        ..node
    }
}

/// Splits a path at a delimiter that a backslash may escape; a delimiter at the start is left out.
pub(crate) fn split_path(path: &str, delimiter: char) -> Vec<String> {
    let mut parts = path.split(delimiter).peekable();
    if path.starts_with(delimiter) {
        parts.next();
    }
    let mut result: Vec<String> = Vec::new();
    for part in parts {
        match result.last_mut() {
            Some(last) if last.ends_with('\\') => {
                last.pop();
                last.push(delimiter);
                last.push_str(part);
            }
            _ => result.push(part.to_owned()),
        }
    }
    result
}

/// Splits off the first part of a path, at a delimiter that a backslash may escape; the rest is None behind the last part.
pub(crate) fn split_first(path: &str, delimiter: char) -> (Cow<'_, str>, Option<&str>) {
    let mut first = Cow::Borrowed("");
    let mut rest = path;
    loop {
        let (part, behind) = match rest.split_once(delimiter) {
            Some((part, behind)) => (part, Some(behind)),
            None => (rest, None),
        };
        first += part;
        match (first.strip_suffix('\\'), behind) {
            (Some(escaped), Some(behind)) => {
                first = Cow::Owned(format!("{escaped}{delimiter}"));
                rest = behind;
            }
            _ => return (first, behind),
        }
    }
}

/// Splits a path at dots, which do not count inside brackets: `a.[b.c].d`, `containers.[name=x.y].image`.
pub(crate) fn split_field_path(path: &str) -> Vec<String> {
    let mut result = Vec::new();
    let mut parts = split_path(path, '.').into_iter();
    while let Some(part) = parts.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            result.push(part);
            continue;
        }
        let mut bracketed = part;
        for next in parts.by_ref() {
            bracketed.push('.');
            bracketed.push_str(&next);
            if next.ends_with(']') {
                break;
            }
        }
        let keep = bracketed.contains('=');
        result.push(if keep {
            bracketed
        } else {
            bracketed.trim_matches(['[', ']']).to_owned()
        });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_as_kyaml_splits_them() {
        for (path, parts) in [
            ("a.b", vec!["a", "b"]),
            (r"a.b\.c", vec!["a", "b.c"]),
            ("a.[b.c/d].e", vec!["a", "b.c/d", "e"]),
            ("c.[name=x.y].image", vec!["c", "[name=x.y]", "image"]),
            (".a", vec!["a"]),
        ] {
            assert_eq!(split_field_path(path), parts, "{path}");
        }
        assert_eq!(
            split_path(r"metadata/annotations/a.io\/b", '/'),
            ["metadata", "annotations", "a.io/b"]
        );
    }

    #[test]
    fn parts_of_a_path_split_off_one_by_one_are_those_of_the_whole() {
        for path in [
            "",
            "a",
            "a/b/c",
            "a//b",
            "a/",
            r"a\/b/c",
            r"a\/b\/c/d",
            r"a/b\",
            r"a\/",
            r"\/",
        ] {
            let (mut parts, mut rest) = (Vec::new(), Some(path));
            while let Some(path) = rest {
                let (part, behind) = split_first(path, '/');
                parts.push(part.into_owned());
                rest = behind;
            }
            assert_eq!(parts, split_path(path, '/'), "{path}");
        }
    }
}
