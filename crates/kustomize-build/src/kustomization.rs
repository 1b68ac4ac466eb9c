//! The kustomization file, with types.
//!
//! Read as encoding/json reads into kustomize's struct: unknown fields are errors, names match in any case, null is
//! no value, and a value of another type is refused in Go's words.

pub(crate) mod decode;
mod generator;
mod helm;
mod types;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::error::{Error, Result};
use decode::{Decode, Fields, Place};

use helm::{HelmChart, HelmGlobals, OldHelmChart};
use types::ObjectMetadata;

pub(crate) use generator::{GeneratorArgs, GeneratorOptions};
pub(crate) use helm::chart_fields;
pub(crate) use types::{
    FieldOptions, Image, Label, Patch, PatchOptions, Replacement, ReplacementField, Replica, Selector,
    SortOptions, SourceSelector, StrategicMerge, TargetSelector, Variable,
};

pub(crate) const KIND: &str = "Kustomization";
pub(crate) const COMPONENT_KIND: &str = "Component";
const API_VERSION: &str = "kustomize.config.k8s.io/v1beta1";
const COMPONENT_API_VERSION: &str = "kustomize.config.k8s.io/v1alpha1";

/// The names that a kustomization file may have.
pub(crate) const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// Deprecated fields, what to use instead, and whether kustomize's conversion is experimental; in order of warning.
const DEPRECATED: [(&str, &str, bool); 6] = [
    ("bases", "resources", false),
    ("commonLabels", "labels", false),
    ("imageTags", "images", false),
    ("patchesJson6902", "patches", false),
    ("patchesStrategicMerge", "patches", false),
    ("vars", "replacements", true),
];

/// A kustomization or a component.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kustomization {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    metadata: Option<ObjectMetadata>,
    pub(crate) open_api: BTreeMap<String, String>,
    pub(crate) name_prefix: String,
    pub(crate) name_suffix: String,
    pub(crate) namespace: String,
    pub(crate) common_labels: BTreeMap<String, String>,
    pub(crate) labels: Vec<Label>,
    pub(crate) common_annotations: BTreeMap<String, String>,
    pub(crate) patches_strategic_merge: Vec<String>,
    pub(crate) patches_json6902: Vec<Patch>,
    pub(crate) patches: Vec<Patch>,
    pub(crate) images: Vec<Image>,
    image_tags: Vec<Image>,
    pub(crate) replacements: Vec<ReplacementField>,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) vars: Vec<Variable>,
    pub(crate) sort_options: Option<SortOptions>,
    pub(crate) resources: Vec<String>,
    pub(crate) components: Vec<String>,
    pub(crate) crds: Vec<String>,
    bases: Vec<String>,
    pub(crate) config_map_generator: Vec<GeneratorArgs>,
    pub(crate) secret_generator: Vec<GeneratorArgs>,
    helm_globals: Option<HelmGlobals>,
    helm_charts: Vec<HelmChart>,
    old_helm_charts: Vec<OldHelmChart>,
    pub(crate) generator_options: Option<GeneratorOptions>,
    pub(crate) configurations: Vec<String>,
    pub(crate) generators: Vec<String>,
    pub(crate) transformers: Vec<String>,
    pub(crate) validators: Vec<String>,
    pub(crate) build_metadata: Vec<String>,
    says_something: bool,
    deprecated: Vec<&'static str>,
}

impl Kustomization {
    /// Reads a kustomization from the JSON of its file.
    pub(crate) fn read(value: &Value) -> Result<Self> {
        Self::decode(value, &Place::json("Kustomization"))
            .map_err(|error| error.context("invalid Kustomization"))
    }

    /// Says which fields should not be used any more, in kustomize's words.
    pub(crate) fn deprecations(&self) -> impl Iterator<Item = String> {
        let sentence = |(old, new, experimental): &(&str, &str, bool)| {
            let experimental = if *experimental { "[EXPERIMENTAL] " } else { "" };
            format!(
                "# Warning: '{old}' is deprecated. Please use '{new}' instead. {experimental}Run 'kustomize edit fix' to \
                 update your Kustomization automatically."
            )
        };
        let set = |(old, ..): &&(&str, &str, bool)| self.deprecated.contains(old);
        DEPRECATED.iter().filter(set).map(sentence)
    }

    /// Brings deprecated fields into the form of today's.
    pub(crate) fn fix(&mut self) {
        if self.kind.is_empty() {
            self.kind = KIND.to_owned();
        }
        if self.api_version.is_empty() {
            let component = self.kind == COMPONENT_KIND;
            self.api_version = if component {
                COMPONENT_API_VERSION
            } else {
                API_VERSION
            }
            .to_owned();
        }
        self.resources.append(&mut self.bases);
        self.images.append(&mut self.image_tags);
        let old_globals = OldHelmChart::globals(&self.old_helm_charts);
        if self.helm_globals.is_none() && old_globals != HelmGlobals::default() {
            self.helm_globals = Some(old_globals);
        }
        let old_charts = self.old_helm_charts.drain(..);
        self.helm_charts.extend(old_charts.map(|chart| chart.chart()));
    }

    /// Fails when the file says nothing, or says to be something else; `folder` is for the message.
    pub(crate) fn check(&self, folder: &str) -> Result<()> {
        if !self.says_something {
            return Err(Error::invalid("kustomization.yaml is empty"));
        }
        let mut problems = Vec::new();
        if self.kind != KIND && self.kind != COMPONENT_KIND {
            problems.push(format!("kind should be {KIND} or {COMPONENT_KIND}"));
        }
        let expected = if self.kind == COMPONENT_KIND {
            COMPONENT_API_VERSION
        } else {
            API_VERSION
        };
        if self.api_version != expected {
            problems.push(format!("apiVersion for {} should be {expected}", self.kind));
        }
        if problems.is_empty() {
            return Ok(());
        }
        let problems = problems.join("\n");
        Err(Error::invalid(format!(
            "Failed to read kustomization file under {folder}:\n{problems}"
        )))
    }

    /// Returns the configurations of the Helm charts; `inherited` is the namespace of the kustomizations above.
    pub(crate) fn helm_charts(&self, inherited: &str) -> Vec<Map<String, Value>> {
        let globals = self.helm_globals.clone().unwrap_or_default();
        let namespace = match self.namespace.as_str() {
            "" => inherited,
            own => own,
        };
        let charts = self.helm_charts.iter();
        charts
            .map(|chart| chart.configuration(&globals, namespace))
            .collect()
    }

    /// Returns whether an option of `buildMetadata` is set.
    pub(crate) fn has_build_metadata(&self, option: &str) -> bool {
        self.build_metadata.iter().any(|set| set == option)
    }
}

impl Decode for Kustomization {
    fn go_type() -> String {
        "types.Kustomization".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut k = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("apiVersion", &mut k.api_version);
        fields.take("kind", &mut k.kind);
        fields.take("namePrefix", &mut k.name_prefix);
        fields.take("nameSuffix", &mut k.name_suffix);
        fields.take("namespace", &mut k.namespace);
        k.says_something = !(k.name_prefix.is_empty() && k.name_suffix.is_empty() && k.namespace.is_empty());
        let before = fields.taken();
        fields.take("metadata", &mut k.metadata);
        fields.take("openapi", &mut k.open_api);
        fields.take("commonLabels", &mut k.common_labels);
        fields.take("labels", &mut k.labels);
        fields.take("commonAnnotations", &mut k.common_annotations);
        let mut strategic: Vec<StrategicMerge> = Vec::new();
        fields.take("patchesStrategicMerge", &mut strategic);
        k.patches_strategic_merge = strategic.into_iter().map(|entry| entry.0).collect();
        fields.take("patchesJson6902", &mut k.patches_json6902);
        fields.take("patches", &mut k.patches);
        fields.take("images", &mut k.images);
        fields.take("imageTags", &mut k.image_tags);
        fields.take("replacements", &mut k.replacements);
        fields.take("replicas", &mut k.replicas);
        fields.take("vars", &mut k.vars);
        fields.take("sortOptions", &mut k.sort_options);
        fields.take("resources", &mut k.resources);
        fields.take("components", &mut k.components);
        fields.take("crds", &mut k.crds);
        fields.take("bases", &mut k.bases);
        fields.take("configMapGenerator", &mut k.config_map_generator);
        let mut secrets: Vec<generator::SecretArgs> = Vec::new();
        fields.take("secretGenerator", &mut secrets);
        k.secret_generator = secrets.into_iter().map(|args| args.0).collect();
        fields.take("helmGlobals", &mut k.helm_globals);
        fields.take("helmCharts", &mut k.helm_charts);
        fields.take("helmChartInflationGenerator", &mut k.old_helm_charts);
        fields.take("generatorOptions", &mut k.generator_options);
        fields.take("configurations", &mut k.configurations);
        fields.take("generators", &mut k.generators);
        fields.take("transformers", &mut k.transformers);
        fields.take("validators", &mut k.validators);
        fields.take("buildMetadata", &mut k.build_metadata);
        // kustomize takes their elements over, and does not look whether there are any.
        let emptied = [
            ("bases", k.bases.is_empty()),
            ("imageTags", k.image_tags.is_empty()),
            ("helmChartInflationGenerator", k.old_helm_charts.is_empty()),
        ];
        let emptied = emptied
            .iter()
            .filter(|(name, is_empty)| *is_empty && fields.has(name));
        k.says_something |= fields.taken() > before + emptied.count();
        let names = DEPRECATED.iter().map(|(old, ..)| *old);
        k.deprecated = names.filter(|old| fields.has(old)).collect();
        fields.finish()?;
        Ok(k)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: &Value) -> Result<Kustomization> {
        let mut kustomization = Kustomization::read(value)?;
        kustomization.fix();
        kustomization.check(".")?;
        Ok(kustomization)
    }

    fn error(value: &Value) -> String {
        read(value).expect_err("invalid").to_string()
    }

    #[test]
    fn wrong_kustomizations_are_refused_in_gos_words() {
        for (value, message) in [
            (json!({}), "kustomization.yaml is empty"),
            (
                json!({"kind": "Kustomization", "namePrefix": ""}),
                "kustomization.yaml is empty",
            ),
            (
                json!({"bogus": 1}),
                "invalid Kustomization: json: unknown field \"bogus\"",
            ),
            (
                json!({"images": [{"name": "a", "newTag": 1}]}),
                "invalid Kustomization: json: cannot unmarshal number into Go struct field \
                 Kustomization.images.0.newTag of type string",
            ),
            (
                json!({"kind": "Thing", "resources": []}),
                "Failed to read kustomization file under .:\nkind should be Kustomization or Component",
            ),
        ] {
            assert_eq!(error(&value), message);
        }
    }

    /// Expected: kustomize 5.8.3's message for one field, after `invalid Kustomization: json: cannot
    /// unmarshal `.
    #[test]
    fn values_of_other_types_are_named_with_their_place_and_gos_type() {
        for (value, words) in [
            (json!(3), "number into Go value of type types.Kustomization"),
            (
                json!({"images": 3}),
                "number into Go struct field Kustomization.images of type []types.Image",
            ),
            (
                json!({"images": [3]}),
                "number into Kustomization.images.0 of type types.Image",
            ),
            (
                json!({"resources": [1]}),
                "number into Kustomization.resources.0 of type string",
            ),
            (
                json!({"commonLabels": {"a": 1}}),
                "number into Go struct field Kustomization.commonLabels.a of type string",
            ),
            (
                json!({"replicas": [{"name": "a", "count": 1.5}]}),
                "number 1.5 into Go struct field Kustomization.replicas.0.count of type int64",
            ),
            (
                json!({"patches": [{"target": "a"}]}),
                "string into Go struct field Kustomization.patches.0.target of type types.Selector",
            ),
            (
                json!({"helmCharts": [{"valuesInline": 1}]}),
                "number into Go struct field Kustomization.helmCharts.0.valuesInline of type map[string]interface {}",
            ),
            (
                json!({"metadata": 1}),
                "number into Go struct field Kustomization.metadata of type types.ObjectMeta",
            ),
            (
                json!({"replacements": [{"targets": 1}]}),
                "number into Go struct field Kustomization.replacements.0.targets of type []*types.TargetSelector",
            ),
            (
                json!({"replacements": [{"targets": [{"options": {"index": "a"}}]}]}),
                "string into Go struct field Kustomization.replacements.0.targets.0.options.index of type int",
            ),
            (
                json!({"patchesStrategicMerge": [1]}),
                "number into Kustomization.patchesStrategicMerge.0 of type types.PatchStrategicMerge",
            ),
            (
                json!({"NAMEPREFIX": 3}),
                "number into Go struct field Kustomization.NAMEPREFIX of type string",
            ),
        ] {
            let expected = format!("invalid Kustomization: json: cannot unmarshal {words}");
            assert_eq!(error(&value), expected);
        }
    }

    #[test]
    fn names_match_in_any_case_and_deprecated_fields_join_the_new() {
        let value = json!({"NAMESPACE": "x", "resources": ["a"], "bases": ["b"], "replicas": null});
        let k = read(&value).expect("valid");
        assert_eq!(
            (k.namespace.as_str(), k.resources),
            ("x", vec!["a".to_owned(), "b".to_owned()])
        );
    }

    #[test]
    fn deprecated_fields_are_told_in_kustomizes_order() {
        let kustomization =
            Kustomization::read(&json!({"vars": [], "bases": [], "imageTags": null})).unwrap();
        let told: Vec<String> = kustomization.deprecations().collect();
        assert_eq!(
            told,
            [
                "# Warning: 'bases' is deprecated. Please use 'resources' instead. Run 'kustomize edit fix' to update \
                 your Kustomization automatically.",
                "# Warning: 'vars' is deprecated. Please use 'replacements' instead. [EXPERIMENTAL] Run 'kustomize edit \
                 fix' to update your Kustomization automatically."
            ]
        );
    }
}
