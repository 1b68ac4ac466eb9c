//! Built-in generators and transformers that are configured by resources of their own (`generators`, `transformers`).

mod iam_policy;
mod value_add;

use std::collections::BTreeMap;

use manifest::yaml;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::field_spec::FieldSpec;
use crate::generate::Generated;
use crate::kustomization::decode::{self, Decode, Fields, Place};
use crate::kustomization::{GeneratorArgs, Image, Patch, Replacement, ReplacementField, Replica, Selector};
use crate::load::Loader;
use crate::nodes::Nodes;
use crate::patch::{self, json6902};
use crate::resource::Resource;
use crate::resource_map::ResourceMap;
use crate::transform::affix::Affix;
use crate::transform::namespace::{Namespace, Subjects};
use crate::{generate, id, replacement, selector, transform};

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
    let operations = json6902::Operations::parse(&text)?;
    if operations.is_empty() {
        let message = format!("patch appears to be empty; file={}, JsonOp={text}", entry.path);
        return Err(Error::invalid(message));
    }
    Ok(JsonPatch { operations, target })
}

/// Reads the configuration of a built-in plugin; refuses all others.
fn configuration(nodes: &Nodes, config: &Resource) -> Result<(String, Value)> {
    let id = config.original_id(nodes);
    if !(id.gvk.group.is_empty() && id.gvk.version == "builtin") {
        let kind = &id.gvk.kind;
        return Err(Error::unsupported(format!(
            "external plugins disabled; unable to load external plugin '{kind}'"
        )));
    }
    let root = config
        .root
        .ok_or_else(|| Error::invalid("the configuration of a plugin is empty"))?;
    let value =
        yaml::json::decode_kyaml(nodes, root).map_err(|problem| Error::invalid(problem.to_string()))?;
    Ok((id.gvk.kind, value))
}

fn unknown(nodes: &Nodes, config: &Resource) -> Error {
    Error::unsupported(format!(
        "unable to load builtin {}",
        id::show_gvk(&config.original_id(nodes).gvk)
    ))
}

fn failed(nodes: &Nodes, config: &Resource, error: Error) -> Error {
    error.context(format!(
        "plugin {} fails configuration",
        config.original_id(nodes)
    ))
}

/// A generator that a resource configures.
pub(crate) enum Generator {
    Data(Generated, Box<GeneratorArgs>),
    Policy(iam_policy::IamPolicy),
}

impl Generator {
    /// Reads a generator's configuration.
    pub(crate) fn load(nodes: &Nodes, config: &Resource) -> Result<Self> {
        let (kind, value) = configuration(nodes, config)?;
        let place = Place::yaml(&format!("{kind}Plugin"));
        let what = match kind.as_str() {
            "ConfigMapGenerator" => Generated::ConfigMap,
            "SecretGenerator" => Generated::Secret,
            "IAMPolicyGenerator" => {
                return iam_policy::IamPolicy::decode(&value, &place)
                    .map(Self::Policy)
                    .map_err(|error| failed(nodes, config, decode::in_yaml(error)));
            }
            "HelmChartInflationGenerator" => return Err(Error::unsupported("must specify --enable-helm")),
            _ => return Err(unknown(nodes, config)),
        };
        let mut args = GeneratorArgs::default();
        let mut fields = Fields::of::<GeneratorArgs>(&value, &place)?;
        args.take(&mut fields);
        if what == Generated::Secret {
            fields.take("type", &mut args.secret_type);
        }
        fields
            .finish_loosely()
            .map_err(|error| failed(nodes, config, decode::in_yaml(error)))?;
        let id = config.id(nodes);
        if args.name.is_empty() {
            args.name = id.name;
        }
        if args.namespace.is_empty() {
            args.namespace = id.namespace;
        }
        Ok(Self::Data(what, Box::new(args)))
    }

    /// Makes the object.
    pub(crate) fn run(&self, nodes: &mut Nodes, loader: &Loader<'_>) -> Result<Resource> {
        match self {
            Self::Data(what, args) => generate::generate(nodes, loader, *what, args),
            Self::Policy(policy) => policy.generate(nodes),
        }
    }
}

/// A transformer that a resource configures.
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
    ValueAdd(value_add::ValueAdd),
    Hash,
}

impl Transformer {
    /// Reads a transformer's configuration.
    pub(crate) fn load(nodes: &mut Nodes, loader: &Loader<'_>, config: &Resource) -> Result<Self> {
        let (kind, value) = configuration(nodes, config)?;
        let file = config
            .source
            .as_ref()
            .map_or_else(String::new, |source| source.file.to_string());
        let loaded = Reader {
            loader,
            value: &value,
            place: Place::yaml(&format!("{kind}Plugin")),
            file: &file,
        }
        .read(nodes, &kind);
        match loaded {
            Ok(Some(transformer)) => Ok(transformer),
            Ok(None) => Err(unknown(nodes, config)),
            Err(error) => Err(failed(nodes, config, error).in_file(&file, 0)),
        }
    }

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

struct Reader<'a, 'b> {
    loader: &'a Loader<'b>,
    value: &'a Value,
    place: Place,
    file: &'a str,
}

impl Reader<'_, '_> {
    fn read(&self, nodes: &mut Nodes, kind: &str) -> Result<Option<Transformer>> {
        Ok(Some(match kind {
            "PatchTransformer" => {
                let mut entry = Patch::default();
                let mut fields = self.fields()?;
                entry.take(&mut fields);
                fields.finish_loosely().map_err(decode::in_yaml)?;
                Transformer::Patch(patch::load(nodes, self.loader, &entry, self.file)?)
            }
            "PatchJson6902Transformer" => Transformer::JsonPatch(self.json_patch()?),
            "PatchStrategicMergeTransformer" => Transformer::Strategic(self.strategic(nodes)?),
            "NamespaceTransformer" => self.namespace()?,
            "PrefixTransformer" => self.affixes(&[(Affix::Prefix, "prefix")])?,
            "SuffixTransformer" => self.affixes(&[(Affix::Suffix, "suffix")])?,
            "PrefixSuffixTransformer" => {
                self.affixes(&[(Affix::Prefix, "prefix"), (Affix::Suffix, "suffix")])?
            }
            "LabelTransformer" => Transformer::Texts(self.take("labels")?, self.field_specs()?),
            "AnnotationsTransformer" => Transformer::Texts(self.take("annotations")?, self.field_specs()?),
            "ReplicaCountTransformer" => Transformer::Replica(self.take("replica")?, self.field_specs()?),
            "ImageTagTransformer" => Transformer::Image(self.take("imageTag")?, self.field_specs()?),
            "ReplacementTransformer" => {
                let entries: Vec<ReplacementField> = self.take("replacements")?;
                Transformer::Replacements(replacement::load(self.loader, &entries)?)
            }
            "ValueAddTransformer" => {
                Transformer::ValueAdd(value_add::ValueAdd::load(self.loader, self.value)?)
            }
            "HashTransformer" => Transformer::Hash,
            _ => return Ok(None),
        }))
    }

    fn fields(&self) -> Result<Fields<'_>> {
        Fields::of::<Value>(self.value, &self.place)
    }

    fn take<T: crate::kustomization::decode::Decode + Default>(&self, name: &str) -> Result<T> {
        let mut value = T::default();
        let mut fields = self.fields()?;
        fields.take(name, &mut value);
        fields.finish_loosely().map_err(decode::in_yaml)?;
        Ok(value)
    }

    fn field_specs(&self) -> Result<Vec<FieldSpec>> {
        self.take("fieldSpecs")
    }

    fn affixes(&self, which: &[(Affix, &str)]) -> Result<Transformer> {
        let fields: Option<Vec<FieldSpec>> = self.take("fieldSpecs")?;
        let fields = fields.ok_or_else(|| Error::invalid("fieldSpecs is not expected to be nil"))?;
        let affixes = which.iter().map(|(which, name)| Ok((*which, self.take(name)?)));
        Ok(Transformer::Affixes(affixes.collect::<Result<_>>()?, fields))
    }

    fn json_patch(&self) -> Result<JsonPatch> {
        let entry = Patch {
            path: self.take("path")?,
            patch: self.take("jsonOp")?,
            target: self.take("target")?,
            ..Patch::default()
        };
        load_json_patch(self.loader, &entry)
    }

    fn strategic(&self, nodes: &mut Nodes) -> Result<Vec<Resource>> {
        let paths: Vec<String> = self.take("paths")?;
        let inline: String = self.take("patches")?;
        if paths.is_empty() && inline.is_empty() {
            return Err(Error::invalid("empty file path and empty patch content"));
        }
        let mut patches = Vec::new();
        for path in &paths {
            patches.extend(patch::load_strategic(nodes, self.loader, path, self.file)?);
        }
        if !inline.is_empty() {
            patches.extend(crate::resource::parse_resources(nodes, &inline, self.file)?);
        }
        Ok(patches)
    }

    fn namespace(&self) -> Result<Transformer> {
        let failed = |error: Error| error.context("unmarshalling NamespaceTransformer config");
        let metadata: Value = self.take("metadata").map_err(failed)?;
        let mode: String = self.take("setRoleBindingSubjects").map_err(failed)?;
        let unset_only = self.take("unsetOnly").map_err(failed)?;
        let specs = self.field_specs().map_err(failed)?;
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
        let name = metadata
            .get("namespace")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let namespace = Namespace {
            name,
            unset_only,
            subjects,
        };
        Ok(Transformer::Namespace(namespace, specs))
    }
}
