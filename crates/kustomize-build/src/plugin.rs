//! Built-in generators and transformers that are configured by resources of their own (`generators`, `transformers`).

mod configuration;
mod generator;
mod iam_policy;
mod json_patch;
mod transformer;
mod value_add;

use manifest::yaml;

use crate::error::{Error, Result};
use crate::id;
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::resource::Resource;
use configuration::Configuration;

pub(crate) use generator::Generator;
pub(crate) use transformer::Transformer;

pub(crate) use json_patch::{JsonPatch, load_json_patch};

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
