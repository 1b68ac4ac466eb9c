//! ConfigMaps and Secrets made of files, literals and environment files.

mod data;
pub(crate) mod hash;
mod key_values;
mod merge;

use std::collections::BTreeMap;

use manifest::yaml::{Node, NodeId, Style, Tag};

use crate::error::{Error, Result};
use crate::kustomization::{GeneratorArgs, GeneratorOptions};
use crate::load::Loader;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource::{Behavior, Resource};

pub(crate) use merge::{merge_into_old, take_metadata_of};

/// A generated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generated {
    ConfigMap,
    Secret,
}

impl Generated {
    fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
        }
    }
}

/// Makes a ConfigMap or Secret.
pub(crate) fn generate(
    nodes: &mut Nodes,
    loader: &Loader<'_>,
    what: Generated,
    args: &GeneratorArgs,
) -> Result<Resource> {
    if args.name.is_empty() {
        return Err(Error::invalid("a configmap must have a name"));
    }
    let object = base_object(nodes, what, args);
    let values = key_values::load(loader, args).map_err(|error| error.context("loading KV pairs"))?;
    let values = without_repetition(&args.name, values)?;
    match what {
        Generated::ConfigMap => data::set_config_map_data(nodes, object, &values)?,
        Generated::Secret => {
            let secret_type = if args.secret_type.is_empty() {
                "Opaque"
            } else {
                &args.secret_type
            };
            add_string(nodes, object, "type", secret_type);
            data::set_secret_data(nodes, object, &values)?;
        }
    }
    if let Some(options) = &args.options {
        set_options(nodes, object, options)?;
    }
    let mut resource = Resource::new(object, None);
    resource.history.behavior = Some(Behavior::parse(&args.behavior));
    resource.history.adds_hash = args
        .options
        .as_ref()
        .is_none_or(|options| !options.disable_name_suffix_hash);
    Ok(resource)
}

fn base_object(nodes: &mut Nodes, what: Generated, args: &GeneratorArgs) -> NodeId {
    let object = nodes.add(Node::mapping());
    add_string(nodes, object, "apiVersion", "v1");
    add_string(nodes, object, "kind", what.kind());
    let metadata = nodes.add(Node::mapping());
    nodes.push_field(object, "metadata", metadata);
    add_string(nodes, metadata, "name", &args.name);
    if !args.namespace.is_empty() {
        add_string(nodes, metadata, "namespace", &args.namespace);
    }
    object
}

fn add_string(nodes: &mut Nodes, mapping: NodeId, field: &str, value: &str) {
    let value = nodes.add(Node::string(value));
    nodes.push_field(mapping, field, value);
}

fn without_repetition(name: &str, values: Vec<(String, Vec<u8>)>) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut known = BTreeMap::new();
    for (key, value) in values {
        if known.contains_key(&key) {
            return Err(Error::invalid(format!(
                "configmap {name} illegally repeats the key `{key}`"
            )));
        }
        known.insert(key, value);
    }
    Ok(known)
}

fn set_options(nodes: &mut Nodes, object: NodeId, options: &GeneratorOptions) -> Result<()> {
    let Some(metadata) = nodes.field(object, "metadata") else {
        return Ok(());
    };
    for (field, texts) in [("labels", &options.labels), ("annotations", &options.annotations)] {
        if texts.is_empty() {
            continue;
        }
        let map = lookup::get_or_create(nodes, metadata, field, manifest::yaml::Kind::Mapping)?;
        for (key, value) in texts {
            let value = Node {
                style: Style::SingleQuoted,
                ..Node::string(value.as_str())
            };
            let value = nodes.add(value);
            lookup::set_field(nodes, map, key, value)?;
        }
    }
    if options.immutable {
        let value = nodes.add(Node::tagged_scalar("true", Tag::Bool));
        nodes.push_field(object, "immutable", value);
    }
    Ok(())
}
