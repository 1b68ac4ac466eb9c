//! The transformations of a kustomization: its own fields in kustomize's order, then the plugins of `transformers`.

use std::collections::BTreeMap;

use super::Target;
use crate::accumulate::accumulated::Accumulated;
use crate::error::{Error, Result};
use crate::field_spec::FieldSpec;
use crate::kustomization::{Image, Patch, Replacement, Replica};
use crate::nodes::Nodes;
use crate::resource::{BuildOrigin, Resource};
use crate::transform::affix::Affix;
use crate::transform::namespace::Namespace;
use crate::{configuration, patch, plugin, replacement, transform};

impl Target<'_> {
    /// Reads the patches first, as kustomize configures all transformers before it runs one.
    pub(super) fn run_transformers(&self, nodes: &mut Nodes, base: &mut Accumulated) -> Result<()> {
        let k = &self.kustomization;
        let file = self.file();
        let steps = self.load_steps(nodes, base)?;
        let externals = self.plugin_configs(nodes, &k.transformers, "configuring external transformer")?;
        let mut plugins = Vec::new();
        for config in externals {
            let origin = self.plugin_origin(nodes, &config);
            plugins.push((plugin::Transformer::load(nodes, &self.loader, &config)?, origin));
        }
        let mut patches = k.patches.iter().peekable();
        for (kind, step) in steps {
            let entry = patches.next_if(|_| matches!(step, Step::Patch(_)));
            step.run(nodes, base)
                .map_err(|error| self.at_inline_patch(error, entry).in_file(&file, 0))?;
            let origin = self
                .origin
                .as_ref()
                .map(|origin| origin.of_field(self.file_name, kind));
            self.note_transformation(nodes, base, origin);
        }
        for (plugin, origin) in plugins {
            plugin.run(nodes, &mut base.map)?;
            self.note_transformation(nodes, base, origin);
        }
        Ok(())
    }

    /// Places an error about a patch that stands in the kustomization file: its lines are counted from its own first.
    fn at_inline_patch(&self, error: Error, entry: Option<&Patch>) -> Error {
        let Some(entry) = entry.filter(|entry| !entry.patch.is_empty()) else {
            return error;
        };
        let file = self.file();
        if error.file().is_some_and(|named| named != file) {
            return error;
        }
        match (self.line_of(&entry.patch), entry.patch.contains('\n')) {
            (0, _) => error,
            (line, false) => error.placed(&file, line),
            // The text of a block starts below the line of its field.
            (line, true) => {
                let below = error.line().max(1);
                error.placed(&file, line + below)
            }
        }
    }

    fn note_transformation(&self, nodes: &mut Nodes, base: &mut Accumulated, origin: Option<BuildOrigin>) {
        if let Some(origin) = origin {
            for resource in base.map.list_mut() {
                if resource.origin.is_none() {
                    resource.origin = Some(origin.clone());
                } else {
                    resource.transformations.push(origin.clone());
                }
                resource.rewrite_annotations(nodes);
            }
        }
        base.map.drop_empty(nodes);
    }

    fn load_steps(&self, nodes: &mut Nodes, base: &Accumulated) -> Result<Vec<(&'static str, Step)>> {
        let k = &self.kustomization;
        let config = &base.config;
        let file = self.file();
        let mut steps: Vec<(&'static str, Step)> = Vec::new();
        if !k.patches_strategic_merge.is_empty() {
            steps.push(("PatchStrategicMergeTransformer", self.load_strategic(nodes)?));
        }
        for entry in &k.patches {
            let shown = || configuration::of_patch(entry);
            let loaded = patch::load(nodes, &self.loader, entry, &file, &shown)
                .map_err(|error| self.at_entry(error, &entry.path))
                .map_err(|error| self.in_configuration(error, "PatchTransformer", &shown()))?;
            steps.push(("PatchTransformer", Step::Patch(loaded)));
        }
        if !k.namespace.is_empty() {
            let namespace = Namespace {
                name: k.namespace.clone(),
                ..Namespace::default()
            };
            steps.push(("NamespaceTransformer", Step::Namespace(namespace)));
        }
        if !k.name_prefix.is_empty() {
            steps.push((
                "PrefixTransformer",
                Step::Affix(Affix::Prefix, k.name_prefix.clone()),
            ));
        }
        if !k.name_suffix.is_empty() {
            steps.push((
                "SuffixTransformer",
                Step::Affix(Affix::Suffix, k.name_suffix.clone()),
            ));
        }
        for label in &k.labels {
            let fields = transform::text::fields_of_label(label, config)?;
            steps.push(("LabelTransformer", Step::Texts(label.pairs.clone(), fields)));
        }
        if !k.labels.is_empty() || !k.common_labels.is_empty() {
            let labels = Step::Texts(k.common_labels.clone(), config.common_labels.clone());
            steps.push(("LabelTransformer", labels));
        }
        if !k.common_annotations.is_empty() {
            let annotations = Step::Texts(k.common_annotations.clone(), config.common_annotations.clone());
            steps.push(("AnnotationsTransformer", annotations));
        }
        for entry in &k.patches_json6902 {
            let loaded = plugin::load_json_patch(&self.loader, entry).map_err(|error| {
                self.in_configuration(
                    error,
                    "PatchJson6902Transformer",
                    &configuration::of_json_patch(entry),
                )
            })?;
            steps.push(("PatchJson6902Transformer", Step::JsonPatch(loaded)));
        }
        for replica in &k.replicas {
            steps.push(("ReplicaCountTransformer", Step::Replica(replica.clone())));
        }
        for image in &k.images {
            steps.push(("ImageTagTransformer", Step::Image(image.clone())));
        }
        if !k.replacements.is_empty() {
            let replacements = replacement::load(&self.loader, &k.replacements).map_err(|error| {
                let shown = configuration::of_replacements(&k.replacements);
                self.in_configuration(error, "ReplacementTransformer", &shown)
            })?;
            steps.push(("ReplacementTransformer", Step::Replacements(replacements)));
        }
        Ok(steps)
    }

    fn load_strategic(&self, nodes: &mut Nodes) -> Result<Step> {
        let paths = &self.kustomization.patches_strategic_merge;
        patch::load_all_strategic(nodes, &self.loader, paths, "", &self.file())
            .map(Step::Strategic)
            .map_err(|error| {
                let shown = configuration::of_strategic_patches(paths);
                self.in_configuration(error, "PatchStrategicMergeTransformer", &shown)
            })
    }
}

/// A transformation that was read and is ready to run.
enum Step {
    Strategic(Vec<Resource>),
    Patch(patch::LoadedPatch),
    Namespace(Namespace),
    Affix(Affix, String),
    Texts(BTreeMap<String, String>, Vec<FieldSpec>),
    JsonPatch(plugin::JsonPatch),
    Replica(Replica),
    Image(Image),
    Replacements(Vec<Replacement>),
}

impl Step {
    fn run(&self, nodes: &mut Nodes, base: &mut Accumulated) -> Result<()> {
        let Accumulated { map, config, .. } = base;
        match self {
            Self::Strategic(patches) => patches
                .iter()
                .try_for_each(|patch| patch::apply_by_name(nodes, map, patch)),
            Self::Patch(loaded) => patch::apply(nodes, map, loaded),
            Self::Namespace(namespace) => {
                transform::namespace::apply(nodes, map, namespace, &config.namespace)
            }
            Self::Affix(which, text) => {
                let fields = match which {
                    Affix::Prefix => &config.name_prefix,
                    Affix::Suffix => &config.name_suffix,
                };
                transform::affix::apply(nodes, map, *which, text, fields)
            }
            Self::Texts(texts, fields) => transform::text::apply(nodes, map, texts, fields),
            Self::JsonPatch(loaded) => loaded.apply(nodes, map),
            Self::Replica(replica) => transform::replica::apply(nodes, map, replica, &config.replicas),
            Self::Image(image) => transform::image::apply(nodes, map, image, &config.images),
            Self::Replacements(replacements) => replacement::apply(nodes, map, replacements),
        }
    }
}
