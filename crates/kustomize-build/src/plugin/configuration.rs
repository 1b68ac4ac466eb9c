//! Configuration of a plugin.

use manifest::yaml;
use serde_json::Value;

use crate::error::Result;
use crate::kustomization::decode::{self, Fields, Place};
use crate::load::Loader;

/// A plugin's configuration, and what it may read.
pub(super) struct Configuration<'a, 'b> {
    pub(super) loader: &'a Loader<'b>,
    pub(super) value: &'a Value,
    pub(super) name: &'a str,
    pub(super) namespace: &'a str,
    pub(super) file: &'a str,
}

impl Configuration<'_, '_> {
    /// Takes fields as sigs.k8s.io/yaml does.
    pub(super) fn decode<T>(&self, take: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T> {
        self.decode_at(&Place::yaml(""), take)
    }

    pub(super) fn decode_at<T>(&self, place: &Place, take: impl FnOnce(&mut Fields<'_>) -> T) -> Result<T> {
        let decoded = || {
            let mut fields = Fields::new::<Value>(self.value, place)?;
            let taken = take(&mut fields);
            fields.finish().map(|()| taken)
        };
        decoded().map_err(decode::in_yaml)
    }

    /// Returns the configuration as kustomize shows it.
    pub(super) fn to_yaml(&self) -> String {
        yaml::write(self.value).unwrap_or_default()
    }
}
