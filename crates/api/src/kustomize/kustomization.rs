//! `Kustomization`: a folder of an artifact, built and applied.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CrossNamespaceSourceReference, KustomizationStatus};
use crate::meta::{
    CommonMetadata, CustomHealthCheck, DependencyReference, Duration, IgnoreRule, Image, KubeConfigReference,
    LocalObjectReference, NamespacedObjectKindReference, Patch, ValuesKind, filled, is_false, status_object,
};

/// The least time that validating, applying and waiting get, and what an interval leaves to spare for them.
const LEAST_TIMEOUT: Duration = Duration::from_secs(30);

/// What to build from a source, and how to apply it.
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
    doc = "A folder of a source that is built with kustomize and applied to a cluster.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpec {
    /// Labels and annotations for every object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,

    /// Kustomizations that must be ready before this one is reconciled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependencyReference>,

    /// How encrypted Secrets are decrypted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,

    /// How often the cluster is compared with the source. It may vary a little, to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// How long to wait after a failure. If not set, it is the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub retry_interval: Option<Duration>,

    /// How to reach the cluster to apply to, if it is not this one. With serviceAccountName, that account of the
    /// remote cluster is impersonated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,

    /// The folder in the source. If it has no kustomization.yaml, one is generated for its YAML files. If not
    /// set, it is the root of the source.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,

    /// What is done with the built objects before they are applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_build: Option<PostBuild>,

    /// Whether objects that are no longer in the source are deleted.
    pub prune: bool,

    /// What becomes of the objects when this Kustomization is deleted. MirrorPrune, which is the default,
    /// deletes them if prune is set and leaves them otherwise; WaitForTermination deletes them and waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion_policy: Option<DeletionPolicy>,

    /// The objects that must be healthy, besides what was applied or instead of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<NamespacedObjectKindReference>,

    /// Put before the name of every object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_prefix: Option<String>,

    /// Put after the name of every object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_suffix: Option<String>,

    /// Strategic merge patches and JSON patches for the built objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,

    /// Names, tags and digests of container images to replace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,

    /// Names the ServiceAccount to impersonate when objects are applied.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// The source to build from.
    pub source_ref: CrossNamespaceSourceReference,

    /// Whether this Kustomization is left alone for now. What has begun is not broken off.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// The namespace that every namespaced object gets.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_namespace: Option<String>,

    /// How long validating, applying and waiting for health may take. If not set, it follows from the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// Whether an object is deleted and created anew if a field that cannot be changed has changed.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub force: bool,

    /// Whether to wait until everything that was applied is healthy. If set, healthChecks is not looked at.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wait: bool,

    /// What the build notes about itself in annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_metadata: Vec<BuildMetadataOption>,

    /// Folders of kustomize components, relative to the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,

    /// Whether components that are not in the source are passed over.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_missing_components: bool,

    /// CEL expressions that decide about the health of custom resources. They matter with wait or healthChecks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_check_exprs: Vec<CustomHealthCheck>,

    /// Fields of objects that are neither compared nor applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<IgnoreRule>,
}

/// What becomes of the objects when their Kustomization is deleted.
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

/// What the build notes about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BuildMetadataOption {
    /// On every object, the file that it came from.
    OriginAnnotations,
    /// On every object, the transformers that changed it.
    TransformerAnnotations,
}

/// How encrypted Secrets are decrypted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// The tool that the Secrets were encrypted with.
    pub provider: DecryptionProvider,

    /// Names the ServiceAccount whose identity at the cloud provider may use the keys. Credentials in the Secret
    /// go before it.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Names the Secret with private keys, or with credentials for a key service.
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

/// What is done with the built objects before they are applied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostBuild {
    /// When variables are substituted: Always, or, which is the default, WithVariables: only if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub substitute_strategy: Option<SubstituteStrategy>,

    /// Variables and their values. They replace `${name}` in the manifests, and go before those of
    /// substituteFrom.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub substitute: BTreeMap<String, String>,

    /// ConfigMaps and Secrets whose keys are variables. Later ones go before earlier ones.
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

/// Names a ConfigMap or Secret whose keys are variables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SubstituteReference {
    /// Whether it is a Secret or a ConfigMap.
    pub kind: ValuesKind,

    /// Name of it, in the namespace of the Kustomization.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Whether it is fine if it is not there. It counts as empty then.
    #[serde(default, skip_serializing_if = "is_false")]
    #[schemars(extend("default" = false))]
    pub optional: bool,
}

status_object!(Kustomization);

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

    /// What becomes of the objects when this Kustomization is deleted, the default included.
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
