//! Built-in generators and transformers that are configured by resources of their own (`generators`, `transformers`).

mod generator;
mod iam_policy;
mod transformer;
mod value_add;

use manifest::yaml;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::id;
use crate::kustomization::decode::{self, Fields, Place};
use crate::kustomization::{Patch, Selector};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::patch::json6902;
use crate::resource::Resource;
use crate::resource_map::ResourceMap;
use crate::selector;

pub(crate) use generator::Generator;
pub(crate) use transformer::Transformer;

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

/// Plugin that a resource configures.
enum Plugin {
    Generator(Generator),
    Transformer(Transformer),
}

impl Generator {
    /// Reads a generator's configuration.
    pub(crate) fn load(nodes: &mut Nodes, loader: &Loader<'_>, config: &Resource) -> Result<Self> {
        match load(nodes, loader, config)? {
            Plugin::Generator(generator) => Ok(generator),
            Plugin::Transformer(_) => Err(is_not(nodes, config, "generator")),
        }
    }
}

impl Transformer {
    /// Reads a transformer's configuration.
    pub(crate) fn load(nodes: &mut Nodes, loader: &Loader<'_>, config: &Resource) -> Result<Self> {
        match load(nodes, loader, config)? {
            Plugin::Transformer(transformer) => Ok(transformer),
            Plugin::Generator(_) => Err(is_not(nodes, config, "transformer")),
        }
    }
}

fn is_not(nodes: &Nodes, config: &Resource, what: &str) -> Error {
    Error::invalid(format!("plugin {} not a {what}", config.original_id(nodes)))
}

/// Reads the configuration of a built-in plugin; refuses all others.
fn load(nodes: &mut Nodes, loader: &Loader<'_>, config: &Resource) -> Result<Plugin> {
    let id = config.original_id(nodes);
    let file = config
        .source
        .as_ref()
        .map_or_else(String::new, |source| source.file.to_string());
    let line = config.source.as_ref().map_or(0, |source| source.line);
    if !(id.gvk.group.is_empty() && id.gvk.version == "builtin") {
        let kind = &id.gvk.kind;
        let message = format!("external plugins disabled; unable to load external plugin '{kind}'");
        return Err(Error::unsupported(message).in_file(&file, line));
    }
    let root = config
        .root
        .ok_or_else(|| Error::invalid("the configuration of a plugin is empty"))?;
    let value = yaml::json::decode_kyaml(nodes, root).map_err(|problem| {
        Error::invalid(problem.to_string())
            .context(format!("marshalling yaml from res {id}"))
            .in_file(&file, line)
    })?;
    let now = config.id(nodes);
    let configuration = Configuration {
        loader,
        value: &value,
        name: &now.name,
        namespace: &now.namespace,
        file: &file,
    };
    let failed = |error: Error| {
        error
            .context(format!("plugin {id} fails configuration"))
            .in_file(&file, line)
    };
    if let Some(generator) = Generator::read(&configuration, &id.gvk.kind) {
        return generator.map(Plugin::Generator).map_err(failed);
    }
    if let Some(transformer) = transformer::read(nodes, &configuration, &id.gvk.kind).map_err(failed)? {
        return Ok(Plugin::Transformer(transformer));
    }
    let message = format!("unable to load builtin {}", id::show_gvk(&id.gvk));
    Err(Error::unsupported(message).in_file(&file, line))
}

/// A plugin's configuration, and what it may read.
struct Configuration<'a, 'b> {
    loader: &'a Loader<'b>,
    value: &'a Value,
    name: &'a str,
    namespace: &'a str,
    file: &'a str,
}

impl Configuration<'_, '_> {
    /// Takes fields as sigs.k8s.io/yaml does.
    fn decode<T>(&self, take: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T> {
        self.decode_at(&Place::yaml(""), take)
    }

    fn decode_at<T>(&self, place: &Place, take: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T> {
        let decoded = || {
            let mut fields = Fields::of::<Value>(self.value, place)?;
            let taken = take(&mut fields);
            fields.finish().map(|()| taken)
        };
        decoded().map_err(decode::in_yaml)
    }

    /// Returns the configuration as kustomize shows it.
    fn to_yaml(&self) -> String {
        yaml::write(self.value).unwrap_or_default()
    }
}
