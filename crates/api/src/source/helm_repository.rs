//! `HelmRepository`: the index of a Helm repository, or the address of charts in a container registry.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_TIMEOUT, OCIProvider, Source};
use crate::meta::{
    AccessFrom, Artifact, Condition, Duration, LocalObjectReference, filled, has_conditions, is_false,
    status_object,
};

/// Where charts are, and how to get them.
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
    doc = "A Helm repository, or a part of a container registry, that charts are taken from.",
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
    /// Address of the repository. It starts with oci:// if the type is oci.
    #[schemars(regex(pattern = r"^(http|https|oci)://.*$"))]
    pub url: String,

    /// Names the Secret to authenticate with: `username` and `password`, or a registry login for oci.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Names the Secret for TLS: `tls.crt` and `tls.key` of the client, `ca.crt` to verify the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// Whether the credentials are sent to other hosts too, if the index has charts there. Take care: whoever
    /// writes the index can then choose who gets the credentials.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pass_credentials: bool,

    /// How often the index is fetched. It may vary a little, to spread the load. Not used for oci.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// Whether the registry is reached over plain HTTP, for oci.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,

    /// How long an operation on the repository may take. If not set, it is 60 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"))]
    pub timeout: Option<Duration>,

    /// Whether this repository is left alone for now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Which namespaces may refer to this repository. It is not enforced.
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

/// The two ways to publish charts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HelmRepositoryType {
    /// Over HTTP, with an index.
    #[default]
    Default,
    /// In a container registry.
    Oci,
}

/// What was seen of a Helm repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositoryStatus {
    /// The generation of the spec that was reconciled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is known about this repository, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Where the newest index can be downloaded inside the cluster.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// The index that was fetched last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(HelmRepositoryStatus);
status_object!(HelmRepository);

impl Source for HelmRepository {
    fn artifact(&self) -> Option<&Artifact> {
        self.status.as_ref()?.artifact.as_ref()
    }

    /// What the spec says, else a minute.
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
