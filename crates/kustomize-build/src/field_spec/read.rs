//! Field specifications from JSON: the files that `configurations` names, and the configurations of plugins.

use serde_json::Value;

use super::{NameReference, TransformerConfig};
use crate::error::Result;
use crate::kustomization::decode::{self, Decode, Fields, Place};

impl TransformerConfig {
    /// Reads a configuration file; unknown fields are errors.
    pub(crate) fn from_json(value: &Value) -> Result<Self> {
        Self::decode(value, &Place::strict_yaml("")).map_err(decode::in_yaml)
    }
}

impl Decode for TransformerConfig {
    fn go_type() -> String {
        "builtinconfig.TransformerConfig".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut config = Self::default();
        if value.is_null() {
            return Ok(config);
        }
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take_named("namePrefix", "types.FsSlice", &mut config.name_prefix);
        fields.take_named("nameSuffix", "types.FsSlice", &mut config.name_suffix);
        fields.take_named("namespace", "types.FsSlice", &mut config.namespace);
        fields.take_named("commonLabels", "types.FsSlice", &mut config.common_labels);
        fields.take_named("labels", "types.FsSlice", &mut config.labels);
        fields.take_named("templateLabels", "types.FsSlice", &mut config.template_labels);
        fields.take_named(
            "volumeClaimTemplateLabels",
            "types.FsSlice",
            &mut config.volume_claim_template_labels,
        );
        fields.take_named(
            "commonAnnotations",
            "types.FsSlice",
            &mut config.common_annotations,
        );
        fields.take_named(
            "nameReference",
            "builtinconfig.nbrSlice",
            &mut config.name_reference,
        );
        fields.take_named("varReference", "types.FsSlice", &mut config.var_reference);
        fields.take_named("images", "types.FsSlice", &mut config.images);
        fields.take_named("replicas", "types.FsSlice", &mut config.replicas);
        fields.finish()?;
        config.sort();
        Ok(config)
    }
}

impl Decode for NameReference {
    fn go_type() -> String {
        "builtinconfig.NameBackReferences".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut reference = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.embedded(|fields| {
            fields.take("group", &mut reference.target.group);
            fields.take("version", &mut reference.target.version);
            fields.take("kind", &mut reference.target.kind);
        });
        fields.take_named("fieldSpecs", "types.FsSlice", &mut reference.referrers);
        fields.finish()?;
        Ok(reference)
    }
}
