//! Merges a generated object with an existing one of the same name.

use std::collections::BTreeMap;

use manifest::yaml::NodeId;

use super::data;
use crate::error::{Error, Result};
use crate::nodes::Nodes;
use crate::resource::{self, Resource};

/// Gives a generated object the name, namespace, labels, annotations and history of the one that it replaces; its own
/// labels and annotations go over the old ones.
pub(crate) fn take_metadata_of(nodes: &mut Nodes, new: &mut Resource, old: &Resource) -> Result<()> {
    let (Some(root), Some(old_root)) = (new.root, old.root) else {
        return Ok(());
    };
    let over = |mut below: BTreeMap<String, String>, above: BTreeMap<String, String>| {
        below.extend(above);
        below
    };
    let labels = over(resource::labels(nodes, old_root), resource::labels(nodes, root));
    let annotations = over(
        resource::annotations(nodes, old_root),
        resource::annotations(nodes, root),
    );
    resource::set_texts(nodes, root, "labels", &labels)?;
    resource::set_texts(nodes, root, "annotations", &annotations)?;
    let (name, namespace) = (
        resource::name(nodes, old_root).to_owned(),
        resource::namespace(nodes, old_root).to_owned(),
    );
    resource::set_name(nodes, root, &name)?;
    resource::set_namespace(nodes, root, &namespace)?;
    let adds_hash = new.history.adds_hash && old.history.adds_hash;
    new.history = old.history.clone();
    new.history.adds_hash = adds_hash;
    new.variables.clone_from(&old.variables);
    new.transformations.clone_from(&old.transformations);
    Ok(())
}

/// Puts the data of a generated object over those of the one that is there.
pub(crate) fn merge_into_old(nodes: &mut Nodes, new: &mut Resource, old: &Resource) -> Result<()> {
    let (Some(root), Some(old_root)) = (new.root, old.root) else {
        return Ok(());
    };
    let is_secret =
        resource::text(nodes, root, "apiVersion") == "v1" && resource::text(nodes, root, "kind") == "Secret";
    take_metadata_of(nodes, new, old)?;
    let mut merged = texts(nodes, old_root, "data");
    if is_secret {
        for (key, value) in string_data(nodes, old_root)? {
            merged.insert(key, data::encode(value.as_bytes()));
        }
    }
    merged.extend(texts(nodes, root, "data"));
    let mut binary = texts(nodes, old_root, "binaryData");
    binary.extend(texts(nodes, root, "binaryData"));
    for (field, values) in [("data", merged), ("binaryData", binary)] {
        nodes.remove_field(root, field);
        for (key, value) in values {
            data::set(nodes, root, field, &key, value)?;
        }
    }
    if old.origin.is_some() {
        new.origin.clone_from(&old.origin);
    }
    Ok(())
}

/// Reads a map of texts; null counts as empty.
fn texts(nodes: &Nodes, object: NodeId, field: &str) -> BTreeMap<String, String> {
    let Some(map) = nodes.field(object, field) else {
        return BTreeMap::new();
    };
    let text = |id: NodeId| {
        if nodes[id].is_null() {
            String::new()
        } else {
            nodes[id].value.clone()
        }
    };
    nodes
        .pairs(map)
        .map(|(key, value)| (text(key), text(value)))
        .collect()
}

fn string_data(nodes: &Nodes, object: NodeId) -> Result<BTreeMap<String, String>> {
    if let Some(map) = nodes.field(object, "stringData") {
        let scalar = |value: NodeId| nodes[value].kind == manifest::yaml::Kind::Scalar;
        if let Some((key, _)) = nodes.pairs(map).find(|(_, value)| !scalar(*value)) {
            let key = &nodes[key].value;
            return Err(Error::invalid(format!(
                "stringData value for key {key:?} must be a scalar"
            )));
        }
    }
    Ok(texts(nodes, object, "stringData"))
}
