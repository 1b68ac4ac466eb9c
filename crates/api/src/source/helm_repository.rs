//! `HelmRepository`: the index of a Helm repository, or the address of charts in a container registry.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::oci_repository::OCIProvider;
use super::origin::{DEFAULT_TIMEOUT, Source};
use crate::meta::{
    AccessFrom, Artifact, Condition, Duration, LocalObjectReference, filled, has_conditions, is_false,
    status_object,
};

/// Specification of the HelmRepository.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "HelmRepository",
    plural = "helmrepositories",
    namespaced,
    status = "HelmRepositoryStatus",
    shortname = "helmrepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    doc = "A Helm repository, or a container registry with Helm charts.",
    printcolumn = r#"{"name":"URL","type":"string","jsonPath":".spec.url"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositorySpec {
    /// URL of the repository. For type oci, it starts with oci://.
    #[schemars(regex(pattern = r"^(http|https|oci)://.*$"))]
    pub url: String,

    /// The Secret to authenticate with: `username` and `password`, or a registry login for oci.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Secret for TLS: `tls.crt` and `tls.key` of the client, `ca.crt` to verify the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// Send the credentials also to other hosts that the index refers to. Use with care: anyone who can write the index
    /// can then obtain the credentials.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pass_credentials: bool,

    /// Interval at which the index is fetched. Jitter may be added to spread the load. Not used for type oci.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// Use HTTP instead of HTTPS, for type oci.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,

    /// Timeout of operations on the repository. Defaults to 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"))]
    pub timeout: Option<Duration>,

    /// Suspend reconciliation of this repository.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Namespaces that may refer to this repository. Not enforced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,

    /// Whether it is a classic repository with an index (default) or a container registry (oci).
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<HelmRepositoryType>,

    /// Where credentials come from, for oci: generic takes them from the Secret, the others from the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "generic"))]
    pub provider: Option<OCIProvider>,
}

/// Type of the repository.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HelmRepositoryType {
    /// Over HTTP, with an index.
    #[default]
    Default,
    /// In a container registry.
    Oci,
}

/// Observed state of the Helm repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositoryStatus {
    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions of this repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// URL of the latest index inside the cluster.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// Last fetched index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(HelmRepositoryStatus);
status_object!(HelmRepository);

impl Source for HelmRepository {
    fn artifact(&self) -> Option<&Artifact> {
        self.status.as_ref()?.artifact.as_ref()
    }

    /// The interval of the spec, else one minute.
    fn interval(&self) -> Duration {
        self.spec
            .interval
            .filter(|interval| !interval.is_zero())
            .unwrap_or(Duration::from_secs(60))
    }

    fn timeout(&self) -> Duration {
        self.spec.timeout.unwrap_or(DEFAULT_TIMEOUT)
    }
}
