//! Field specifications from JSON: the files that `configurations` names, and the configurations of plugins.

use serde_json::Value;

use super::{NameReference, TransformerConfig};
use crate::error::{Error, Result};
use crate::kustomization::decode::{Decode, Fields};

impl TransformerConfig {
    /// Reads a configuration file; unknown fields are errors.
    pub(crate) fn from_json(value: &Value) -> Result<Self> {
        Self::decode(value, "TransformerConfig").map_err(|error: Error| {
            error
                .context("while decoding JSON")
                .context("error unmarshaling JSON")
        })
    }
}

impl Decode for TransformerConfig {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        let mut config = Self::default();
        if value.is_null() {
            return Ok(config);
        }
        let mut fields = Fields::of(value, path, "builtinconfig.TransformerConfig")?;
        fields.take("namePrefix", &mut config.name_prefix)?;
        fields.take("nameSuffix", &mut config.name_suffix)?;
        fields.take("namespace", &mut config.namespace)?;
        fields.take("commonLabels", &mut config.common_labels)?;
        fields.take("labels", &mut config.labels)?;
        fields.take("templateLabels", &mut config.template_labels)?;
        fields.take(
            "volumeClaimTemplateLabels",
            &mut config.volume_claim_template_labels,
        )?;
        fields.take("commonAnnotations", &mut config.common_annotations)?;
        fields.take("nameReference", &mut config.name_reference)?;
        fields.take("varReference", &mut config.var_reference)?;
        fields.take("images", &mut config.images)?;
        fields.take("replicas", &mut config.replicas)?;
        fields.finish()?;
        config.sort();
        Ok(config)
    }
}

impl Decode for NameReference {
    fn decode(value: &Value, path: &str) -> Result<Self> {
        let mut reference = Self::default();
        let mut fields = Fields::of(value, path, "builtinconfig.NameBackReferences")?;
        fields.take("group", &mut reference.target.group)?;
        fields.take("version", &mut reference.target.version)?;
        fields.take("kind", &mut reference.target.kind)?;
        fields.take("fieldSpecs", &mut reference.referrers)?;
        fields.finish()?;
        Ok(reference)
    }
}
