//! Transformers that a resource configures.

use std::collections::BTreeMap;

use super::configuration::Configuration;
use super::json_patch::{JsonPatch, load_json_patch};
use super::value_add::ValueAdd;
use crate::error::{Error, Result};
use crate::field_spec::FieldSpec;
use crate::kustomization::{Image, Patch, Replacement, ReplacementField, Replica, StrategicMerge};
use crate::nodes::Nodes;
use crate::resource::Resource;
use crate::resource_map::ResourceMap;
use crate::transform::affix::Affix;
use crate::transform::namespace::{Namespace, Subjects};
use crate::{patch, replacement, transform};

/// Transformer of resources.
pub(crate) enum Transformer {
    Patch(patch::LoadedPatch),
    JsonPatch(JsonPatch),
    Strategic(Vec<Resource>),
    Namespace(Namespace, Vec<FieldSpec>),
    Affixes(Vec<(Affix, String)>, Vec<FieldSpec>),
    Texts(BTreeMap<String, String>, Vec<FieldSpec>),
    Replica(Replica, Vec<FieldSpec>),
    Image(Image, Vec<FieldSpec>),
    Replacements(Vec<Replacement>),
    ValueAdd(ValueAdd),
    Hash,
}

impl Transformer {
    /// Runs the transformer.
    pub(crate) fn run(&self, nodes: &mut Nodes, map: &mut ResourceMap) -> Result<()> {
        match self {
            Self::Patch(loaded) => patch::apply(nodes, map, loaded),
            Self::JsonPatch(loaded) => loaded.apply(nodes, map),
            Self::Strategic(patches) => patches
                .iter()
                .try_for_each(|patch| patch::apply_by_name(nodes, map, patch)),
            Self::Namespace(namespace, fields) => transform::namespace::apply(nodes, map, namespace, fields),
            Self::Affixes(affixes, fields) => affixes
                .iter()
                .try_for_each(|(which, text)| transform::affix::apply(nodes, map, *which, text, fields)),
            Self::Texts(texts, fields) => transform::text::apply(nodes, map, texts, fields),
            Self::Replica(replica, fields) => transform::replica::apply(nodes, map, replica, fields),
            Self::Image(image, fields) => transform::image::apply(nodes, map, image, fields),
            Self::Replacements(replacements) => replacement::apply(nodes, map, replacements),
            Self::ValueAdd(value) => value.apply(nodes, map),
            Self::Hash => crate::accumulate::add_hashes(nodes, map),
        }
    }
}

/// Reads a configuration; None for a kind that is no transformer.
pub(super) fn read(
    nodes: &mut Nodes,
    config: &Configuration<'_, '_>,
    kind: &str,
) -> Result<Option<Transformer>> {
    Ok(Some(match kind {
        "PatchTransformer" => Transformer::Patch(patch(nodes, config)?),
        "PatchJson6902Transformer" => Transformer::JsonPatch(json_patch(config)?),
        "PatchStrategicMergeTransformer" => Transformer::Strategic(strategic(nodes, config)?),
        "NamespaceTransformer" => namespace(config)?,
        "PrefixTransformer" => affixes(config, &[(Affix::Prefix, "prefix")])?,
        "SuffixTransformer" => affixes(config, &[(Affix::Suffix, "suffix")])?,
        "PrefixSuffixTransformer" => {
            affixes(config, &[(Affix::Prefix, "prefix"), (Affix::Suffix, "suffix")])?
        }
        "LabelTransformer" => texts(config, "labels")?,
        "AnnotationsTransformer" => texts(config, "annotations")?,
        "ReplicaCountTransformer" => config.decode(|fields| {
            let (mut replica, mut specs) = (Replica::default(), Vec::new());
            fields.take("replica", &mut replica);
            fields.take("fieldSpecs", &mut specs);
            Transformer::Replica(replica, specs)
        })?,
        "ImageTagTransformer" => config.decode(|fields| {
            let (mut image, mut specs) = (Image::default(), Vec::new());
            fields.take("imageTag", &mut image);
            fields.take("fieldSpecs", &mut specs);
            Transformer::Image(image, specs)
        })?,
        "ReplacementTransformer" => {
            let mut entries: Vec<ReplacementField> = Vec::new();
            config.decode(|fields| fields.take("replacements", &mut entries))?;
            Transformer::Replacements(replacement::load(config.loader, &entries)?)
        }
        "ValueAddTransformer" => Transformer::ValueAdd(ValueAdd::load(config)?),
        "HashTransformer" => Transformer::Hash,
        _ => return Ok(None),
    }))
}

fn patch(nodes: &mut Nodes, config: &Configuration<'_, '_>) -> Result<patch::LoadedPatch> {
    let mut entry = Patch::default();
    config.decode(|fields| entry.take(fields))?;
    patch::load(nodes, config.loader, &entry, config.file, &|| config.to_yaml())
}

fn json_patch(config: &Configuration<'_, '_>) -> Result<JsonPatch> {
    let entry = config.decode(|fields| {
        let mut entry = Patch::default();
        fields.take("path", &mut entry.path);
        fields.take("jsonOp", &mut entry.patch);
        fields.take("target", &mut entry.target);
        entry
    })?;
    load_json_patch(config.loader, &entry)
}

fn strategic(nodes: &mut Nodes, config: &Configuration<'_, '_>) -> Result<Vec<Resource>> {
    let (paths, inline) = config.decode(|fields| {
        let (mut paths, mut inline) = (Vec::<StrategicMerge>::new(), String::new());
        fields.take("paths", &mut paths);
        fields.take("patches", &mut inline);
        let paths: Vec<String> = paths.into_iter().map(|path| path.0).collect();
        (paths, inline)
    })?;
    if paths.is_empty() && inline.is_empty() {
        return Err(Error::invalid("empty file path and empty patch content"));
    }
    patch::load_all_strategic(nodes, config.loader, &paths, &inline, config.file)
}

fn namespace(config: &Configuration<'_, '_>) -> Result<Transformer> {
    let (mut mode, mut unset_only, mut specs) = (String::new(), false, Vec::new());
    config
        .decode(|fields| {
            fields.take("fieldSpecs", &mut specs);
            fields.take("unsetOnly", &mut unset_only);
            fields.take("setRoleBindingSubjects", &mut mode);
        })
        .map_err(|error| error.context("unmarshalling NamespaceTransformer config"))?;
    let subjects = match mode.as_str() {
        "" | "defaultOnly" => Subjects::DefaultOnly,
        "allServiceAccounts" => Subjects::AllServiceAccounts,
        "none" => Subjects::None,
        other => {
            return Err(Error::invalid(format!(
                "invalid value {other:?} for setRoleBindingSubjects: must be one of \"defaultOnly\", \"none\" or \
                 \"allServiceAccounts\""
            )));
        }
    };
    let namespace = Namespace {
        name: config.namespace.to_owned(),
        unset_only,
        subjects,
    };
    Ok(Transformer::Namespace(namespace, specs))
}

fn affixes(config: &Configuration<'_, '_>, which: &[(Affix, &str)]) -> Result<Transformer> {
    let (affixes, specs) = config.decode(|fields| {
        let mut specs: Option<Vec<FieldSpec>> = None;
        fields.take("fieldSpecs", &mut specs);
        let affix = |(which, name): &(Affix, &str)| {
            let mut text = String::new();
            fields.take(name, &mut text);
            (*which, text)
        };
        (which.iter().map(affix).collect(), specs)
    })?;
    let specs = specs.ok_or_else(|| Error::invalid("fieldSpecs is not expected to be nil"))?;
    Ok(Transformer::Affixes(affixes, specs))
}

fn texts(config: &Configuration<'_, '_>, name: &str) -> Result<Transformer> {
    config.decode(|fields| {
        let (mut texts, mut specs) = (BTreeMap::new(), Vec::new());
        fields.take(name, &mut texts);
        fields.take("fieldSpecs", &mut specs);
        Transformer::Texts(texts, specs)
    })
}
