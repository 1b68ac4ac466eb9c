//! JSON patches of plugins.

use crate::error::{Error, Result};
use crate::kustomization::{Patch, Selector};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::patch::json6902;
use crate::resource_map::ResourceMap;
use crate::selector;

/// A JSON patch with its target.
pub(crate) struct JsonPatch {
    operations: json6902::Operations,
    target: Selector,
}

impl JsonPatch {
    pub(crate) fn apply(&self, nodes: &mut Nodes, map: &mut ResourceMap) -> Result<()> {
        for index in selector::select(nodes, map, &self.target)? {
            json6902::apply(nodes, &mut map.list_mut()[index], &self.operations)?;
        }
        Ok(())
    }
}

/// Reads an entry of `patchesJson6902`.
pub(crate) fn load_json_patch(loader: &Loader<'_>, entry: &Patch) -> Result<JsonPatch> {
    let target = entry.target.clone().unwrap_or_default();
    if target.id.name.is_empty() {
        return Err(Error::invalid("must specify the target name"));
    }
    let text = match (entry.path.is_empty(), entry.patch.is_empty()) {
        (true, true) => return Err(Error::invalid("empty file path and empty jsonOp")),
        (false, false) => return Err(Error::invalid("must specify a file path or jsonOp, not both")),
        (true, false) => entry.patch.clone(),
        (false, true) => loader.load_text(&entry.path)?,
    };
    if text.is_empty() {
        return Err(Error::invalid(format!(
            "patch file '{}' empty seems to be empty",
            entry.path
        )));
    }
    let operations = json6902::Operations::parse(&text, |shown| format!("decoding {shown}"))?;
    if operations.is_empty() {
        let message = format!("patch appears to be empty; file={}, JsonOp={text}", entry.path);
        return Err(Error::invalid(message));
    }
    Ok(JsonPatch { operations, target })
}
