//! `OCIRepository`: one layer of an OCI artifact as an artifact.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::{DEFAULT_TIMEOUT, Source};
use super::verification::ArtifactVerification;
use crate::meta::{
    Artifact, Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};

/// Specification of the OCI artifact to pull.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "OCIRepository",
    plural = "ocirepositories",
    namespaced,
    status = "OCIRepositoryStatus",
    shortname = "ocirepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    doc = "An OCI artifact in a container registry that is pulled as an artifact.",
    printcolumn = r#"{"name":"URL","type":"string","jsonPath":".spec.url"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositorySpec {
    /// URL of the repository in the registry, starting with oci://, without tag or digest.
    #[schemars(regex(pattern = r"^oci://.*$"))]
    pub url: String,

    /// Tag or digest to pull. Defaults to the tag latest.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<OCIRepositoryRef>,

    /// Selection of the layer. By default, the first layer is extracted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_selector: Option<OCILayerSelector>,

    /// Where credentials come from: generic takes them from the Secret or the ServiceAccount, the others from
    /// the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "generic"))]
    pub provider: Option<OCIProvider>,

    /// Secret of type kubernetes.io/dockerconfigjson with the registry credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Signature verification.
    #[serde(rename = "verify", default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<ArtifactVerification>,

    /// ServiceAccount whose image pull secrets, or workload identity at the cloud provider, are used.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Secret for TLS: `tls.crt` and `tls.key` of the client, `ca.crt` to verify the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// The Secret with the proxy to use for this registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,

    /// Interval at which the registry is checked for updates. Jitter may be added to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Timeout of operations on the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"), extend("default" = "60s"))]
    pub timeout: Option<Duration>,

    /// Patterns of files to exclude, in .gitignore format. Replaces the default patterns.
    // Not `filled`: an empty text is a choice here, namely to leave nothing out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,

    /// Use HTTP instead of HTTPS.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,

    /// Suspend reconciliation of this repository.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// Provider of the registry credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OCIProvider {
    /// From a Secret or a ServiceAccount.
    #[default]
    Generic,
    /// From the identity at Amazon Web Services.
    Aws,
    /// From the identity at Azure.
    Azure,
    /// From the identity at Google Cloud.
    Gcp,
}

/// Which revision to follow. Of what is set, digest goes before semver, and semver before tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryRef {
    /// The digest of a manifest, as `sha256:<hex>`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,

    /// Semantic version range; the newest matching tag is selected.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,

    /// Regular expression that filters tags before the version range is applied.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub semver_filter: Option<String>,

    /// Tag.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// Which layer to take, and what to do with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCILayerSelector {
    /// Media type of the layer; the first matching layer is selected.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,

    /// Whether the layer is unpacked, or stored as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<OCILayerOperation>,
}

impl OCILayerSelector {
    /// The operation on the layer, or its default.
    #[must_use]
    pub fn operation(&self) -> OCILayerOperation {
        self.operation.unwrap_or_default()
    }
}

/// How the layer is processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OCILayerOperation {
    /// Unpack it, leave out what is to be ignored, and pack it anew.
    #[default]
    Extract,
    /// Store it as it is.
    Copy,
}

/// Observed state of the OCI repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryStatus {
    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions of this repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// URL of the latest artifact inside the cluster.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// Last pulled artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// Exclusion patterns of the current artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,

    /// Layer selection of the current artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_layer_selector: Option<OCILayerSelector>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(OCIRepositoryStatus);
status_object!(OCIRepository);

impl Source for OCIRepository {
    fn artifact(&self) -> Option<&Artifact> {
        self.status.as_ref()?.artifact.as_ref()
    }

    fn interval(&self) -> Duration {
        self.spec.interval
    }

    fn timeout(&self) -> Duration {
        self.spec.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}

impl OCIRepository {
    /// Where credentials come from, the default included.
    #[must_use]
    pub fn provider(&self) -> OCIProvider {
        self.spec.provider.unwrap_or_default()
    }
}
