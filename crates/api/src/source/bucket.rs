//! `Bucket`: the files of an object store as an artifact.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::{DEFAULT_TIMEOUT, Source};
use crate::meta::{
    Artifact, Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};

/// Specification of the bucket to fetch.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "Bucket",
    plural = "buckets",
    namespaced,
    status = "BucketStatus",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    doc = "A bucket of an object store whose files are fetched as an artifact.",
    printcolumn = r#"{"name":"Endpoint","type":"string","jsonPath":".spec.endpoint"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.provider == 'aws' || self.provider == 'generic' || !has(self.sts)",
        "message": "STS configuration is only supported for the 'aws' and 'generic' Bucket providers",
    },
    {
        "rule": "self.provider != 'aws' || !has(self.sts) || self.sts.provider == 'aws'",
        "message": "'aws' is the only supported STS provider for the 'aws' Bucket provider",
    },
    {
        "rule": "self.provider != 'generic' || !has(self.sts) || self.sts.provider == 'ldap'",
        "message": "'ldap' is the only supported STS provider for the 'generic' Bucket provider",
    },
    {
        "rule": "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.secretRef)",
        "message": "spec.sts.secretRef is not required for the 'aws' STS provider",
    },
    {
        "rule": "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.certSecretRef)",
        "message": "spec.sts.certSecretRef is not required for the 'aws' STS provider",
    },
    {
        "rule": "self.provider != 'generic' || !has(self.serviceAccountName)",
        "message": "ServiceAccountName is not supported for the 'generic' Bucket provider",
    },
    {
        "rule": "!has(self.secretRef) || !has(self.serviceAccountName)",
        "message": "cannot set both .spec.secretRef and .spec.serviceAccountName",
    },
]))]
pub struct BucketSpec {
    /// Provider of the object store: generic speaks S3, the others use the cloud's own protocol and
    /// identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "generic"))]
    pub provider: Option<BucketProvider>,

    /// Name of the bucket.
    pub bucket_name: String,

    /// Host, and optionally port, of the object store.
    pub endpoint: String,

    /// Temporary credentials from a security token service, for the providers aws and generic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sts: Option<BucketSts>,

    /// Use HTTP instead of HTTPS.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,

    /// Region of the bucket.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,

    /// Fetch only objects with this prefix. Filtering is done by the object store.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,

    /// The Secret to authenticate with. Excludes serviceAccountName.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// ServiceAccount for workload identity at the cloud provider.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Secret for TLS: `tls.crt` and `tls.key` of the client, `ca.crt` to verify the object store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// The Secret with the proxy to use for this bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,

    /// Interval at which the bucket is checked for updates. Jitter may be added to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Timeout of operations on the bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"), extend("default" = "60s"))]
    pub timeout: Option<Duration>,

    /// Patterns of files to exclude, in .gitignore format. Replaces the default patterns.
    // Not `filled`: an empty text is a choice here, namely to leave nothing out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,

    /// Suspend reconciliation of this bucket.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// Provider of the object store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BucketProvider {
    /// Any that speaks S3.
    #[default]
    Generic,
    /// Amazon Web Services.
    Aws,
    /// Google Cloud.
    Gcp,
    /// Azure.
    Azure,
}

/// How to get temporary credentials from a token service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketSts {
    /// The kind of token service.
    pub provider: StsProvider,

    /// URL of the token service.
    #[schemars(regex(pattern = r"^(http|https)://.*$"))]
    pub endpoint: String,

    /// The Secret with `username` and `password` for the token service, for the provider ldap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Secret for TLS with the token service, for the provider ldap: `tls.crt`, `tls.key`, `ca.crt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
}

/// The kinds of token services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StsProvider {
    /// That of Amazon Web Services.
    #[default]
    Aws,
    /// One that authenticates with LDAP, as MinIO has it.
    Ldap,
}

/// Observed state of the bucket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatus {
    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions of this bucket.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// URL of the latest artifact inside the cluster.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,

    /// Last fetched artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// Exclusion patterns of the current artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(BucketStatus);
status_object!(Bucket);

impl Source for Bucket {
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
