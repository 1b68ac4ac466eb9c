//! `configMapGenerator`, `secretGenerator` and `generatorOptions`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::decode::{Decode, Fields, Place};
use crate::error::Result;

/// One ConfigMap or Secret to generate.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GeneratorArgs {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) behavior: String,
    pub(crate) literals: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) envs: Vec<String>,
    pub(crate) options: Option<GeneratorOptions>,
    /// A Secret's type.
    pub(crate) secret_type: String,
}

impl GeneratorArgs {
    /// Takes the fields out of a generator's entry, which may be part of a plugin's configuration.
    pub(crate) fn take(&mut self, fields: &mut Fields<'_>) {
        fields.take("namespace", &mut self.namespace);
        fields.take("name", &mut self.name);
        fields.take("behavior", &mut self.behavior);
        fields.take("literals", &mut self.literals);
        fields.take("files", &mut self.files);
        fields.take("envs", &mut self.envs);
        fields.take("options", &mut self.options);
    }

    /// Takes the one file of `env`, which a kustomization may have and a plugin's configuration not.
    fn take_env(&mut self, fields: &mut Fields<'_>) {
        let mut env = String::new();
        fields.take("env", &mut env);
        if !env.is_empty() {
            self.envs.push(env);
        }
    }

    /// Returns the entry with the kustomization's options below its own.
    #[must_use]
    pub(crate) fn with_defaults(mut self, defaults: Option<&GeneratorOptions>) -> Self {
        if let Some(defaults) = defaults {
            self.options
                .get_or_insert_with(GeneratorOptions::default)
                .add_below(defaults);
        }
        self
    }
}

impl Decode for GeneratorArgs {
    fn go_type() -> String {
        "types.ConfigMapArgs".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut args = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        args.take(&mut fields);
        args.take_env(&mut fields);
        fields.finish()?;
        Ok(args)
    }
}

/// A generator of Secrets, which have a type.
#[derive(Default)]
pub(super) struct SecretArgs(pub(super) GeneratorArgs);

impl Decode for SecretArgs {
    fn go_type() -> String {
        "types.SecretArgs".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut args = GeneratorArgs::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        args.take(&mut fields);
        args.take_env(&mut fields);
        fields.take("type", &mut args.secret_type);
        fields.finish()?;
        Ok(Self(args))
    }
}

/// Metadata of generated objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct GeneratorOptions {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) disable_name_suffix_hash: bool,
    pub(crate) immutable: bool,
}

impl GeneratorOptions {
    fn add_below(&mut self, defaults: &Self) {
        let add = |own: &mut BTreeMap<String, String>, defaults: &BTreeMap<String, String>| {
            for (key, value) in defaults {
                own.entry(key.clone()).or_insert_with(|| value.clone());
            }
        };
        add(&mut self.labels, &defaults.labels);
        add(&mut self.annotations, &defaults.annotations);
        self.disable_name_suffix_hash |= defaults.disable_name_suffix_hash;
        self.immutable |= defaults.immutable;
    }
}

impl Decode for GeneratorOptions {
    fn go_type() -> String {
        "types.GeneratorOptions".to_owned()
    }

    fn decode(value: &Value, place: &Place) -> Result<Self> {
        let mut options = Self::default();
        let mut fields = Fields::new::<Self>(value, place)?;
        fields.take("labels", &mut options.labels);
        fields.take("annotations", &mut options.annotations);
        fields.take("disableNameSuffixHash", &mut options.disable_name_suffix_hash);
        fields.take("immutable", &mut options.immutable);
        fields.finish()?;
        Ok(options)
    }
}
