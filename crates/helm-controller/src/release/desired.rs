//! Desired release: the fetched chart and the composed values, beside the spec of the object.

use serde_json::{Map, Value};

/// The chart and the values to release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Desired {
    /// Name of the chart.
    pub chart_name: String,
    /// Version of the chart; that of an OCI artifact has the beginning of its digest as build metadata.
    pub chart_version: String,
    /// Version of what the chart installs; may be empty.
    pub app_version: String,
    /// Digest of the OCI artifact that the chart came from.
    pub oci_digest: Option<String>,
    /// Digest of the values.
    pub values_digest: String,
    /// True if an action whose strategy the spec does not name is tried again after a failure (gate
    /// DefaultToRetryOnFailure).
    pub retries_by_default: bool,
}

impl Desired {
    /// A chart and its values.
    pub fn new(name: &str, version: &str, app_version: &str, values: &Map<String, Value>) -> Self {
        Self {
            chart_name: name.to_owned(),
            chart_version: version.to_owned(),
            app_version: app_version.to_owned(),
            oci_digest: None,
            values_digest: helm_release::values::digest(values),
            retries_by_default: false,
        }
    }
}
