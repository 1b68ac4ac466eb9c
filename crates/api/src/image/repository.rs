//! `ImageRepository`: the tags of an image.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{
    AccessFrom, Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};
use crate::source::OCIProvider;

/// Which image is scanned, and how its registry is reached.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImageRepository",
    plural = "imagerepositories",
    namespaced,
    status = "ImageRepositoryStatus",
    shortname = "imgrepo",
    shortname = "imagerepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-images",
    doc = "An image whose tags are listed.",
    printcolumn = r#"{"name":"Image","type":"string","jsonPath":".spec.image"}"#,
    printcolumn = r#"{"name":"Tags","type":"string","jsonPath":".status.lastScanResult.tagCount"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Last scan","type":"string","jsonPath":".status.lastScanResult.scanTime","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ImageRepositorySpec {
    /// Name of the image, without scheme, tag and digest.
    pub image: String,

    /// Interval at which the tags are listed.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Timeout of one scan. Defaults to the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"))]
    pub timeout: Option<Duration>,

    /// The Secret with the registry credentials, of type kubernetes.io/dockerconfigjson.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// The Secret with the proxy to use for this registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,

    /// ServiceAccount whose image pull secrets are used, or whose identity at the cloud provider.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,

    /// Secret for TLS: `tls.crt` and `tls.key` of the client, `ca.crt` to verify the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// Suspend scans of this image.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Which other namespaces may refer to this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,

    /// Regular expressions; a tag that matches one of them is excluded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 25), extend("default" = [r"^.*\.sig$"]))]
    pub exclusion_list: Option<Vec<String>>,

    /// Provider of the registry credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "generic"))]
    pub provider: Option<OCIProvider>,

    /// Use HTTP instead of HTTPS.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,
}

/// Result of the last scan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScanResult {
    /// Checksum of the tags.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,

    /// Number of tags.
    #[schemars(with = "Integer")]
    pub tag_count: u64,

    /// Time of the scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scan_time: Option<Time>,

    /// The first ten tags in descending alphabetical order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latest_tags: Vec<String>,
}

/// A number without a format in the schema, as Flux has it.
struct Integer;

impl JsonSchema for Integer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Integer".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "integer" })
    }
}

/// Observed state of the image.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageRepositoryStatus {
    /// Conditions of this image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Name of the image with its registry.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub canonical_image_name: Option<String>,

    /// Result of the last scan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scan_result: Option<ScanResult>,

    /// Exclusion list of the last scan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_exclusion_list: Vec<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(ImageRepositoryStatus);
status_object!(ImageRepository);

/// Tags of cosign's signatures.
const DEFAULT_EXCLUSIONS: [&str; 1] = [r"^.*\.sig$"];
/// A scan has this long at least.
const SHORTEST_TIMEOUT: Duration = Duration::from_secs(1);

impl ImageRepository {
    /// Where credentials come from, the default included.
    #[must_use]
    pub fn provider(&self) -> OCIProvider {
        self.spec.provider.unwrap_or_default()
    }

    /// The exclusion list, the default included.
    #[must_use]
    pub fn exclusion_list(&self) -> Vec<String> {
        let default = || DEFAULT_EXCLUSIONS.map(str::to_owned).to_vec();
        self.spec.exclusion_list.clone().unwrap_or_else(default)
    }

    /// How long a scan may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.spec
            .timeout
            .unwrap_or(self.spec.interval)
            .max(SHORTEST_TIMEOUT)
    }
}
