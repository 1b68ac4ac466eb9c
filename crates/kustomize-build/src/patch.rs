//! Patches: strategic merge and JSON 6902, from files or inline, by target or by name.

pub(crate) mod json6902;
mod merge;
mod strategic;

use crate::error::{Error, Result};
use crate::kustomization::{Patch, PatchOptions, Selector};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::resource::{self, Resource};
use crate::resource_map::ResourceMap;
use crate::selector;

pub(crate) use merge::merge;
pub(crate) use strategic::{apply_by_name, in_kustomize_words, load_all_strategic};

/// A patch that was read.
pub(crate) struct LoadedPatch {
    content: Content,
    target: Option<Selector>,
    source: String,
}

enum Content {
    Strategic(Vec<Resource>),
    Json(json6902::Operations),
}

/// Reads an entry of `patches`. `shown` writes the configuration for a message.
pub(crate) fn load(
    nodes: &mut Nodes,
    loader: &Loader<'_>,
    patch: &Patch,
    file: &str,
    shown: &dyn Fn() -> String,
) -> Result<LoadedPatch> {
    let inline = patch.patch.trim();
    let (text, source, file) = match (inline.is_empty(), patch.path.is_empty()) {
        (true, true) => {
            return Err(Error::invalid(format!(
                "must specify one of patch and path in\n{}",
                shown()
            )));
        }
        (false, false) => {
            let message = format!("patch and path can't be set at the same time\n{}", shown());
            return Err(Error::invalid(message));
        }
        (false, true) => (inline.to_owned(), format!("[patch: {inline:?}]"), file.to_owned()),
        (true, false) => {
            let path = &patch.path;
            let text = loader
                .load_text(path)
                .map_err(|error| error.context(format!("failed to get the patch file from path({path})")))?;
            (text, format!("[path: {path:?}]"), loader.place(path))
        }
    };
    let content = parse(nodes, &text, &source, &file, patch.options.unwrap_or_default())?;
    Ok(LoadedPatch {
        content,
        target: patch.target.clone(),
        source,
    })
}

/// Decides which of the two a text is: it must be exactly one.
fn parse(nodes: &mut Nodes, text: &str, source: &str, file: &str, options: PatchOptions) -> Result<Content> {
    let strategic = resource::parse_resources(nodes, text, file);
    let json = json6902::Operations::parse(text, |_| String::new());
    match (strategic, json) {
        (Ok(strategic), Ok(json)) if !strategic.is_empty() && !json.is_empty() => Err(Error::patch(format!(
            "illegally qualifies as both an SM and JSON patch: {source}"
        ))),
        (Ok(mut strategic), _) => {
            for patch in &mut strategic {
                set_options(nodes, patch, options)?;
            }
            Ok(Content::Strategic(strategic))
        }
        (Err(_), Ok(json)) => Ok(Content::Json(json)),
        (Err(strategic), Err(_)) => {
            Err(strategic.reworded(format!("unable to parse SM or JSON patch from {source}")))
        }
    }
}

/// Notes what a patch may change; kustomize notes it in the patch's annotations, which all become strings.
fn set_options(nodes: &mut Nodes, patch: &mut Resource, options: PatchOptions) -> Result<()> {
    patch.history.allow_name_change = options.allow_name_change;
    patch.history.allow_kind_change = options.allow_kind_change;
    match patch.root {
        Some(root) if options != PatchOptions::default() => {
            let mut annotations = resource::annotations(nodes, root);
            let own = patch.history.annotations();
            annotations.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
            resource::set_texts(nodes, root, "annotations", &annotations)
        }
        _ => Ok(()),
    }
}

/// Applies a patch to what it is for.
pub(crate) fn apply(nodes: &mut Nodes, map: &mut ResourceMap, patch: &LoadedPatch) -> Result<()> {
    match (&patch.content, &patch.target) {
        (Content::Strategic(patches), _) if patches.is_empty() => Ok(()),
        (Content::Strategic(patches), Some(target)) => match &patches[..] {
            [one] => strategic::apply_to_selected(nodes, map, target, one),
            _ => Err(Error::patch(format!(
                "Multiple Strategic-Merge Patches in one `patches` entry is not allowed to set `patches.target` \
                 field: {}",
                patch.source
            ))),
        },
        (Content::Strategic(patches), None) => patches
            .iter()
            .try_for_each(|patch| strategic::apply_to_named(nodes, map, patch)),
        (Content::Json(operations), _) if operations.is_empty() => Ok(()),
        (Content::Json(operations), Some(target)) => {
            for index in selector::select(nodes, map, target)? {
                let resource = &mut map.list_mut()[index];
                resource.store_previous_id(nodes);
                json6902::apply(nodes, resource, operations)?;
            }
            Ok(())
        }
        (Content::Json(_), None) => Err(Error::patch(format!(
            "must specify a target for JSON patch {}",
            patch.source
        ))),
    }
}
