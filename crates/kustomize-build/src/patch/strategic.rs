//! Strategic merge patches and their targets.

use manifest::yaml::NodeId;

use super::merge;
use crate::error::{Error, Result};
use crate::id::ResourceId;
use crate::kustomization::Selector;
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::resource::{self, Resource};
use crate::resource_map::ResourceMap;
use crate::selector;

/// Reads the entries of `patchesStrategicMerge`, and what a plugin's configuration has inline.
pub(crate) fn load_all_strategic(
    nodes: &mut Nodes,
    loader: &Loader<'_>,
    entries: &[String],
    inline: &str,
    file: &str,
) -> Result<Vec<Resource>> {
    let mut patches = Vec::new();
    for entry in entries {
        patches.extend(load_strategic(nodes, loader, entry, file)?);
    }
    if !inline.is_empty() {
        patches.extend(resource::parse_resources(nodes, inline, file)?);
    }
    if patches.is_empty() {
        let files = entries.join(" ");
        return Err(Error::patch(format!(
            "patch appears to be empty; files=[{files}], Patch={inline}"
        )));
    }
    Ok(patches)
}

/// Reads an entry: inline text if it reads as a resource, else a file.
fn load_strategic(nodes: &mut Nodes, loader: &Loader<'_>, entry: &str, file: &str) -> Result<Vec<Resource>> {
    if let Ok(patches) = resource::parse_resources(nodes, entry, file) {
        return Ok(patches);
    }
    let text = loader.load_text(entry)?;
    resource::parse_resources(nodes, &text, &loader.place(entry))
        .map_err(|error| in_kustomize_words(error, entry))
}

/// Adds the file to a message about malformed YAML.
pub(crate) fn in_kustomize_words(error: Error, file: &str) -> Error {
    let message = error.to_string();
    if message.contains("MalformedYAMLError") {
        error.reworded(format!("{message} in File: {file}"))
    } else {
        error
    }
}

/// Applies an entry of `patchesStrategicMerge` to the resource of its name.
pub(crate) fn apply_by_name(nodes: &mut Nodes, map: &mut ResourceMap, patch: &Resource) -> Result<()> {
    let index = map
        .by_id(nodes, &patch.original_id(nodes))
        .map_err(|error| at(error, patch))?;
    apply_to_all(nodes, map, &[index], patch)
}

/// Applies an entry of `patches` without target to the resource of its name.
pub(super) fn apply_to_named(nodes: &mut Nodes, map: &mut ResourceMap, patch: &Resource) -> Result<()> {
    let id = patch.original_id(nodes);
    let index = map.by_id(nodes, &id).map_err(|error| {
        at(
            error.context(format!(
                "no resource matches strategic merge patch {:?}",
                id.to_string()
            )),
            patch,
        )
    })?;
    let Some(root) = patch.root else { return Ok(()) };
    apply_to_one(nodes, &mut map.list_mut()[index], root, patch)
}

/// Applies an entry of `patches` to all resources that its target selects.
pub(super) fn apply_to_selected(
    nodes: &mut Nodes,
    map: &mut ResourceMap,
    target: &Selector,
    patch: &Resource,
) -> Result<()> {
    let selected = selector::select(nodes, map, target).map_err(|error| {
        error.context(format!(
            "unable to find patch target {:?} in `resources`",
            selector::show(target)
        ))
    })?;
    apply_to_all(nodes, map, &selected, patch)
}

fn at(error: Error, patch: &Resource) -> Error {
    match &patch.source {
        Some(source) => error.in_file(&source.file, source.line),
        None => error,
    }
}

/// Applies copies of a patch that take over the type of each resource.
fn apply_to_all(
    nodes: &mut Nodes,
    map: &mut ResourceMap,
    selected: &[usize],
    patch: &Resource,
) -> Result<()> {
    let Some(patch_root) = patch.root else {
        return Ok(());
    };
    let kind = resource::text(nodes, patch_root, "kind").to_owned();
    for index in selected {
        let Some(target) = map.list()[*index].root else {
            continue;
        };
        let copy = nodes.deep_copy(patch_root);
        take_own_metadata(nodes, copy)?;
        let api_version = resource::text(nodes, target, "apiVersion").to_owned();
        for (field, value) in [("kind", &kind), ("apiVersion", &api_version)] {
            let value = nodes.add(manifest::yaml::Node::scalar(value.as_str()));
            crate::lookup::set_field(nodes, copy, field, value)?;
        }
        apply_to_one(nodes, &mut map.list_mut()[*index], copy, patch)?;
    }
    map.drop_empty(nodes);
    map.refuse_duplicates(nodes)
}

/// kustomize copies the patch's metadata over itself, which makes strings of all labels and annotations.
fn take_own_metadata(nodes: &mut Nodes, patch: NodeId) -> Result<()> {
    let labels = resource::labels(nodes, patch);
    resource::set_texts(nodes, patch, "labels", &labels)?;
    let annotations = resource::annotations(nodes, patch);
    resource::set_texts(nodes, patch, "annotations", &annotations)?;
    let name = resource::name(nodes, patch).to_owned();
    resource::set_name(nodes, patch, &name)?;
    let namespace = resource::namespace(nodes, patch).to_owned();
    resource::set_namespace(nodes, patch, &namespace)
}

/// Merges a patch into a resource, which keeps its name, namespace and kind unless the patch may change them.
fn apply_to_one(
    nodes: &mut Nodes,
    target: &mut Resource,
    patch_root: NodeId,
    patch: &Resource,
) -> Result<()> {
    let Some(root) = target.root else { return Ok(()) };
    let id = target.id(nodes);
    if patch.history.allow_name_change || patch.history.allow_kind_change {
        target.store_previous_id(nodes);
    }
    target.with_history_in_annotations(nodes, |nodes, target| {
        if !merge::merge(nodes, root, patch_root).map_err(|error| at(error, patch))? {
            target.root = None;
        }
        let Some(root) = target.root.filter(|_| !target.is_empty(nodes)) else {
            return Ok(());
        };
        keep_identity(nodes, root, &id, patch)
    })
}

fn keep_identity(nodes: &mut Nodes, root: NodeId, id: &ResourceId, patch: &Resource) -> Result<()> {
    if !patch.history.allow_kind_change {
        let kind = nodes.add(manifest::yaml::Node::scalar(id.gvk.kind.as_str()));
        crate::lookup::set_field(nodes, root, "kind", kind)?;
    }
    if !patch.history.allow_name_change {
        resource::set_name(nodes, root, &id.name)?;
    }
    resource::set_namespace(nodes, root, &id.namespace)
}
