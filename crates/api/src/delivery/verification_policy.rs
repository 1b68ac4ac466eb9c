//! `VerificationPolicy`: which images and sources may be delivered, and what must have been signed and attested about them.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Duration, LocalObjectReference};
use crate::source::{ArtifactVerification, GitRepositoryVerification};

/// What images and sources must meet before they are delivered.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "delivery.windlass.dev",
    version = "v1alpha1",
    kind = "VerificationPolicy",
    plural = "verificationpolicies",
    namespaced,
    category = "all",
    category = "windlass",
    doc = "What images must meet before Kustomizations, HelmReleases and ResourceSets deliver them, and sources before they become artifacts: where they come from, who signed them, what is attested about them.",
    printcolumn = r#"{"name":"Action","type":"string","jsonPath":".spec.action"}"#,
    printcolumn = r#"{"name":"Images","type":"string","jsonPath":".spec.images.match"}"#,
    printcolumn = r#"{"name":"Sources","type":"string","jsonPath":".spec.sources.match"}"#,
    printcolumn = r#"{"name":"Suspended","type":"boolean","jsonPath":".spec.suspend"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.images) || has(self.sources)",
        "message": "one of spec.images and spec.sources is required",
    },
    {
        "rule": "!has(self.images) || has(self.verify) || (has(self.attestations) && size(self.attestations) > 0) || (has(self.images.from) && size(self.images.from) > 0) || (has(self.images.pin) && self.images.pin)",
        "message": "spec.images needs one of spec.verify, spec.attestations, spec.images.from and spec.images.pin",
    },
    {
        "rule": "!has(self.sources) || has(self.verify) || (has(self.attestations) && size(self.attestations) > 0) || (has(self.sources.from) && size(self.sources.from) > 0) || has(self.sources.git)",
        "message": "spec.sources needs one of spec.verify, spec.attestations, spec.sources.from and spec.sources.git",
    },
    {
        "rule": "has(self.verify) || !has(self.attestations) || self.attestations.all(one, has(one.verify))",
        "message": "attestations without verify need spec.verify",
    },
    {
        "rule": "!has(self.verify) || has(self.verify.secretRef) || (has(self.verify.matchOIDCIdentity) && size(self.verify.matchOIDCIdentity) > 0)",
        "message": "spec.verify needs secretRef or matchOIDCIdentity: otherwise anyone's signature would do",
    },
    {
        "rule": "!has(self.attestations) || self.attestations.all(one, !has(one.verify) || has(one.verify.secretRef) || (has(one.verify.matchOIDCIdentity) && size(one.verify.matchOIDCIdentity) > 0))",
        "message": "verify of an attestation needs secretRef or matchOIDCIdentity: otherwise anyone's attestation would do",
    },
]))]
pub struct VerificationPolicySpec {
    /// Reason, for people. Refusals repeat it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub reason: Option<String>,

    /// Action on images and sources that do not meet the policy. Defaults to Enforce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Enforce"))]
    pub action: Option<PolicyAction>,

    /// Namespaces to which it applies, such as `shop` or `prod-*`: those of sources, of Kustomizations, HelmReleases and ResourceSets,
    /// and of the objects that they deliver. Outside the namespace of the controllers, a policy applies at most to the sources of its
    /// own namespace and to deliveries from it. Defaults to the namespace of the policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 253)))]
    pub namespaces: Vec<String>,

    /// Images to which it applies; to none if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<PolicyImages>,

    /// Sources to which it applies; to none if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<PolicySources>,

    /// Signature that each image, OCI artifact and chart in a registry must have. Its Secrets are in the namespace of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<ArtifactVerification>,

    /// Attestations that each image, OCI artifact and chart in a registry must have, of every type that is listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub attestations: Vec<RequiredAttestation>,

    /// Secret of type kubernetes.io/dockerconfigjson in the namespace of the policy, with credentials for the registries of images.
    /// Each is sent to the registry that the Secret names it for, and to no other. Sources have their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Secret in the namespace of the policy with the key ca.crt: certificate authorities of the registries of images, trusted besides
    /// the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// True to end it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// Action on images and sources that do not meet a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PolicyAction {
    /// Nothing of the revision is stored or applied, and Ready says why.
    #[default]
    Enforce,
    /// It is delivered, and an event says what would be refused.
    Warn,
}

/// Images to which a policy applies, by their repositories: registry and path, without tag and digest. `nginx` is
/// `docker.io/library/nginx`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyImages {
    /// Repositories, such as `ghcr.io/org/*`, in which `*` stands for any characters. Defaults to all.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 300)))]
    pub matching: Vec<String>,

    /// Repositories to which it does not apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 300)))]
    pub except: Vec<String>,

    /// Repositories from which they may come. No other registry is asked. Defaults to all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 300)))]
    pub from: Vec<String>,

    /// True to apply each image by the digest that was verified. Otherwise nodes resolve the tag again, and may get something else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pin: bool,
}

/// Sources to which a policy applies, by place: host and path, such as `github.com/org/app`, without scheme, user and `.git`. The place
/// of a chart is that of its HelmRepository and the chart's name; the place of a bucket is endpoint and name. Places of sources that
/// are fetched without TLS begin with `http://`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySources {
    /// Kinds of sources. Defaults to all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5))]
    pub kinds: Vec<PolicySourceKind>,

    /// Places, such as `github.com/org/*`, in which `*` stands for any characters. Defaults to all.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 300)))]
    pub matching: Vec<String>,

    /// Places to which it does not apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 300)))]
    pub except: Vec<String>,

    /// Places where they may be. Nothing is fetched from anywhere else, submodules and dependencies of charts included. Defaults to
    /// all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), inner(length(min = 1, max = 300)))]
    pub from: Vec<String>,

    /// Who must have signed the commits or tags of GitRepositories. The Secret with the keys is in the namespace of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitRepositoryVerification>,
}

/// A kind of source to which a policy applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum PolicySourceKind {
    /// Buckets. They have no signatures, and meet no policy that demands one.
    Bucket,
    /// GitRepositories.
    GitRepository,
    /// Charts. Those of an index over HTTP have no signatures; those that are packaged from another source are verified with it.
    HelmChart,
    /// Indexes of charts, of which only the place counts.
    HelmRepository,
    /// Artifacts in registries.
    OCIRepository,
}

impl PolicySourceKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Bucket,
        Self::GitRepository,
        Self::HelmChart,
        Self::HelmRepository,
        Self::OCIRepository,
    ];

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name, as in manifests.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bucket => "Bucket",
            Self::GitRepository => "GitRepository",
            Self::HelmChart => "HelmChart",
            Self::HelmRepository => "HelmRepository",
            Self::OCIRepository => "OCIRepository",
        }
    }
}

/// An attestation that an image, an artifact or a chart must have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredAttestation {
    /// Type of its predicate, such as `https://slsa.dev/provenance/v1`.
    #[schemars(length(min = 1, max = 500))]
    pub predicate_type: String,

    /// Who must have made it. Defaults to who must have signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<ArtifactVerification>,

    /// CEL expression over `predicate` that must be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 5000))]
    pub expression: Option<String>,

    /// How old it may be at most, by the transparency log that recorded it, such as `168h` for a scan of the last week. Attestations
    /// made with a key only have no such time, and do not meet it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub max_age: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_a_few_lines() {
        let policy: VerificationPolicy = serde_json::from_value(json!({
            "metadata": {"name": "signed", "namespace": "windlass-system"},
            "spec": {
                "namespaces": ["shop-*"],
                "images": {"match": ["ghcr.io/org/*"], "pin": true},
                "verify": {"provider": "cosign", "secretRef": {"name": "keys"}},
            },
        }))
        .unwrap();
        assert_eq!(policy.spec.images.as_ref().unwrap().matching, ["ghcr.io/org/*"]);
        assert_eq!(policy.spec.action.unwrap_or_default(), PolicyAction::Enforce);
        let written = serde_json::to_value(&policy.spec).unwrap();
        assert_eq!(written["images"]["match"], json!(["ghcr.io/org/*"]));
    }
}
