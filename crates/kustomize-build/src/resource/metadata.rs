//! Reading and writing an object's metadata in its tree.

use std::collections::BTreeMap;

use manifest::GroupVersionKind;
use manifest::yaml::{Kind, Node, NodeId};

use crate::error::Result;
use crate::id::ResourceId;
use crate::lookup;
use crate::nodes::Nodes;

/// Returns the text of a top-level field, whatever its type; empty when there is none.
pub(crate) fn text<'a>(nodes: &'a Nodes, object: NodeId, field: &str) -> &'a str {
    nodes
        .field(object, field)
        .map_or("", |value| nodes[value].value.as_str())
}

fn metadata(nodes: &Nodes, object: NodeId) -> Option<NodeId> {
    nodes
        .field(object, "metadata")
        .filter(|metadata| !nodes[*metadata].is_null_or_empty())
}

fn metadata_text<'a>(nodes: &'a Nodes, object: NodeId, field: &str) -> &'a str {
    let value = metadata(nodes, object).and_then(|metadata| nodes.field(metadata, field));
    value
        .filter(|value| !nodes[*value].is_null_or_empty())
        .map_or("", |value| nodes[value].value.as_str())
}

/// Returns `metadata.name`.
pub(crate) fn name(nodes: &Nodes, object: NodeId) -> &str {
    metadata_text(nodes, object, "name")
}

/// Returns `metadata.namespace`.
pub(crate) fn namespace(nodes: &Nodes, object: NodeId) -> &str {
    metadata_text(nodes, object, "namespace")
}

/// Returns the id of an object.
pub(crate) fn id_of(nodes: &Nodes, object: NodeId) -> ResourceId {
    let gvk = GroupVersionKind::new(text(nodes, object, "apiVersion"), text(nodes, object, "kind"));
    ResourceId::current(
        &nodes.schemas,
        gvk,
        name(nodes, object).to_owned(),
        namespace(nodes, object).to_owned(),
    )
}

/// Sets `metadata.name`.
pub(crate) fn set_name(nodes: &mut Nodes, object: NodeId, name: &str) -> Result<()> {
    let metadata = lookup::get_or_create(nodes, object, "metadata", Kind::Mapping)?;
    let value = nodes.add(Node::scalar(name));
    lookup::set_field(nodes, metadata, "name", value)
}

/// Sets `metadata.namespace`, or takes it away when it is empty.
pub(crate) fn set_namespace(nodes: &mut Nodes, object: NodeId, namespace: &str) -> Result<()> {
    if namespace.is_empty() {
        if let Some(metadata) = nodes.field(object, "metadata") {
            nodes.remove_field(metadata, "namespace");
        }
        return Ok(());
    }
    let metadata = lookup::get_or_create(nodes, object, "metadata", Kind::Mapping)?;
    let value = nodes.add(Node::scalar(namespace));
    lookup::set_field(nodes, metadata, "namespace", value)
}

fn texts(nodes: &Nodes, object: NodeId, field: &str) -> BTreeMap<String, String> {
    let Some(map) = metadata(nodes, object).and_then(|metadata| nodes.field(metadata, field)) else {
        return BTreeMap::new();
    };
    nodes
        .pairs(map)
        .map(|(key, value)| (nodes[key].value.clone(), nodes[value].value.clone()))
        .collect()
}

/// Returns the annotations, all values as text.
pub(crate) fn annotations(nodes: &Nodes, object: NodeId) -> BTreeMap<String, String> {
    texts(nodes, object, "annotations")
}

/// Returns the labels, all values as text.
pub(crate) fn labels(nodes: &Nodes, object: NodeId) -> BTreeMap<String, String> {
    texts(nodes, object, "labels")
}

/// Sets labels or annotations anew, as strings; takes the field away when there are none.
pub(crate) fn set_texts(
    nodes: &mut Nodes,
    object: NodeId,
    field: &str,
    texts: &BTreeMap<String, String>,
) -> Result<()> {
    let metadata = lookup::get_or_create(nodes, object, "metadata", Kind::Mapping)?;
    nodes.remove_field(metadata, field);
    if texts.is_empty() {
        return Ok(());
    }
    let map = nodes.add(Node::mapping());
    for (key, value) in texts {
        let value = nodes.add(Node::string(value.as_str()));
        lookup::set_field(nodes, map, key, value)?;
    }
    nodes.push_field(metadata, field, map);
    Ok(())
}

/// Shows an object's metadata as Go's `%v` shows kyaml's struct, for messages about what is missing.
pub(crate) fn describe(nodes: &Nodes, object: NodeId) -> String {
    let shown = |field: Option<NodeId>| {
        let field = field.filter(|field| !nodes[*field].is_null());
        field.map_or("", |field| nodes[field].value.as_str())
    };
    let map = |field: &str| {
        let map = metadata(nodes, object).and_then(|metadata| nodes.field(metadata, field));
        let mut pairs: Vec<(&str, &str)> = map
            .into_iter()
            .flat_map(|map| nodes.pairs(map))
            .map(|(key, value)| (shown(Some(key)), shown(Some(value))))
            .collect();
        pairs.sort_unstable();
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(key, value)| format!("{key}:{value}"))
            .collect();
        pairs.join(" ")
    };
    format!(
        "{{{{{} {}}} {{{{{} {}}} map[{}] map[{}]}}}}",
        shown(nodes.field(object, "apiVersion")),
        shown(nodes.field(object, "kind")),
        name(nodes, object),
        namespace(nodes, object),
        map("labels"),
        map("annotations"),
    )
}
