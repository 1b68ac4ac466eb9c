//! `Kustomization`: a folder of an artifact, built and applied.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CrossNamespaceSourceReference, KustomizationStatus};
use crate::meta::{
    CommonMetadata, CustomHealthCheck, DependencyReference, Duration, IgnoreRule, Image, KubeConfigReference,
    LocalObjectReference, NamespacedObjectKindReference, Patch, ValuesKind, delivers, filled, is_false,
    status_object,
};

/// The least time that validating, applying and waiting get, and what an interval leaves to spare for them.
const LEAST_TIMEOUT: Duration = Duration::from_secs(30);

/// Specification of the Kustomization.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kustomize.toolkit.fluxcd.io",
    version = "v1",
    kind = "Kustomization",
    plural = "kustomizations",
    namespaced,
    status = "KustomizationStatus",
    shortname = "ks",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-appliers",
    doc = "A directory of a source that is built with kustomize and applied to a cluster.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpec {
    /// Labels and annotations added to all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,

    /// Kustomizations that must be ready before this one is reconciled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependencyReference>,

    /// Decryption of Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,

    /// Interval at which the Kustomization is reconciled. Jitter may be added to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Delay before a retry after a failure. Defaults to the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub retry_interval: Option<Duration>,

    /// Access to a remote cluster. With serviceAccountName, that service account of the remote cluster is impersonated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,

    /// Path of the directory in the source. If it has no kustomization.yaml, one is generated for its YAML files.
    /// Defaults to the root of the source.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// Variable substitution after the build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_build: Option<PostBuild>,

    /// Delete objects that were removed from the source.
    pub prune: bool,

    /// Handling of the objects when this Kustomization is deleted. MirrorPrune (the default) deletes them if
    /// prune is set and leaves them otherwise; WaitForTermination deletes them and waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// Objects whose health is checked after the apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<NamespacedObjectKindReference>,

    /// Prefix of the names of all objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_prefix: Option<String>,

    /// Suffix of the names of all objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_suffix: Option<String>,

    /// Strategic merge patches and JSON patches for the built objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,

    /// Container images to replace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,

    /// ServiceAccount to impersonate when applying objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// The source to build from.
    pub source_ref: CrossNamespaceSourceReference,

    /// Suspend reconciliation of this Kustomization. A reconciliation in progress is not interrupted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Namespace set on all namespaced objects.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_namespace: Option<String>,

    /// Timeout of validation, apply and health checks. Defaults to the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Delete and re-create objects if an immutable field has changed.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub force: bool,

    /// Wait until all applied objects are healthy. If true, healthChecks is ignored.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wait: bool,

    /// Build metadata added as annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_metadata: Vec<BuildMetadataOption>,

    /// Paths of kustomize components, relative to spec.path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,

    /// Ignore components that do not exist in the source.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_missing_components: bool,

    /// CEL expressions that determine the health of custom resources. Used with wait or healthChecks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_check_exprs: Vec<CustomHealthCheck>,

    /// Fields that are excluded from apply and drift detection.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<IgnoreRule>,
}

/// Handling of the objects when the Kustomization is deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DeletionPolicy {
    /// As `spec.prune` says: deleted if it is set, left otherwise.
    #[default]
    MirrorPrune,
    /// They are deleted.
    Delete,
    /// They are deleted, and the Kustomization stays until they are gone.
    WaitForTermination,
    /// They are left.
    Orphan,
}

/// Build metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BuildMetadataOption {
    /// On every object, the file that it came from.
    OriginAnnotations,
    /// On every object, the transformers that changed it.
    TransformerAnnotations,
}

/// Decryption of Secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Tool with which the Secrets were encrypted.
    pub provider: DecryptionProvider,

    /// ServiceAccount for workload identity at the cloud provider that manages the keys. Credentials in the Secret take
    /// precedence.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Secret with private keys, or with credentials for a key service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// The tools that Secrets can be encrypted with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DecryptionProvider {
    /// SOPS.
    #[default]
    Sops,
}

/// Variable substitution after the build.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostBuild {
    /// When variables are substituted: Always, or, which is the default, WithVariables: only if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute_strategy: Option<SubstituteStrategy>,

    /// Values of variables. They replace `${name}` in the manifests, and take precedence over substituteFrom.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub substitute: BTreeMap<String, String>,

    /// ConfigMaps and Secrets whose keys are variables. Later entries take precedence over earlier ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitute_from: Vec<SubstituteReference>,
}

/// When variables are substituted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SubstituteStrategy {
    /// If there is at least one variable.
    #[default]
    WithVariables,
    /// Always, since an expression can have a default.
    Always,
}

/// Reference to a ConfigMap or Secret whose keys are variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubstituteReference {
    /// Secret or ConfigMap.
    pub kind: ValuesKind,

    /// Name of the ConfigMap or Secret, in the namespace of the Kustomization.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Treat a missing ConfigMap or Secret as empty.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub optional: bool,
}

status_object!(Kustomization);
delivers!(Kustomization);

impl Kustomization {
    /// How long validating, applying and waiting for health may take: what the spec says, else the interval less
    /// 30 seconds, and never less than 30 seconds.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        let spare = LEAST_TIMEOUT.as_nanos();
        let from_interval = Duration::from_nanos(self.spec.interval.as_nanos().saturating_sub(spare));
        self.spec.timeout.unwrap_or(from_interval).max(LEAST_TIMEOUT)
    }

    /// How long to wait after a failure, the default included.
    #[must_use]
    pub fn retry_interval(&self) -> Duration {
        self.spec.retry_interval.unwrap_or(self.spec.interval)
    }

    /// The deletion policy, or its default.
    #[must_use]
    pub fn deletion_policy(&self) -> DeletionPolicy {
        self.spec.deletion_policy.unwrap_or_default()
    }

    /// When variables are substituted, the default included.
    #[must_use]
    pub fn substitute_strategy(&self) -> SubstituteStrategy {
        self.spec
            .post_build
            .as_ref()
            .and_then(|post_build| post_build.substitute_strategy)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kustomization(interval: &str, timeout: Option<&str>) -> Kustomization {
        let spec = KustomizationSpec {
            interval: interval.parse().unwrap(),
            timeout: timeout.map(|timeout| timeout.parse().unwrap()),
            ..KustomizationSpec::default()
        };
        Kustomization::new("shop", spec)
    }

    #[test]
    fn the_timeout_is_what_the_interval_leaves_and_never_below_thirty_seconds() {
        for (interval, timeout, outcome) in [
            ("10m", None, "9m30s"),
            ("10m", Some("1h"), "1h0m0s"),
            ("10m", Some("5s"), "30s"),
            ("45s", None, "30s"),
            ("0s", None, "30s"),
        ] {
            assert_eq!(
                kustomization(interval, timeout).timeout().to_string(),
                outcome,
                "{interval} {timeout:?}"
            );
        }
    }

    #[test]
    fn what_is_not_set_has_its_default() {
        let bare = kustomization("10m", None);
        assert_eq!(bare.retry_interval().to_string(), "10m0s");
        assert_eq!(bare.deletion_policy(), DeletionPolicy::MirrorPrune);
        assert_eq!(bare.substitute_strategy(), SubstituteStrategy::WithVariables);
    }
}
