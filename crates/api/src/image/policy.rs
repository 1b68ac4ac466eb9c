//! `ImagePolicy`: which tag of an image is wanted.

use std::fmt;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, Duration, filled, has_conditions, is_false, status_object};

/// Rules by which a tag is chosen.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImagePolicy",
    plural = "imagepolicies",
    namespaced,
    status = "ImagePolicyStatus",
    shortname = "imgpol",
    shortname = "imagepol",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-images",
    doc = "A policy that chooses one tag of an image.",
    printcolumn = r#"{"name":"Image","type":"string","jsonPath":".status.latestRef.name"}"#,
    printcolumn = r#"{"name":"Tag","type":"string","jsonPath":".status.latestRef.tag"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.interval) || (has(self.digestReflectionPolicy) && self.digestReflectionPolicy == 'Always')",
        "message": "spec.interval is only accepted when spec.digestReflectionPolicy is set to 'Always'",
    },
    {
        "rule": "has(self.interval) || !has(self.digestReflectionPolicy) || self.digestReflectionPolicy != 'Always'",
        "message": "spec.interval must be set when spec.digestReflectionPolicy is set to 'Always'",
    },
]))]
pub struct ImagePolicySpec {
    /// The ImageRepository whose tags are considered.
    pub image_repository_ref: ImageRepositoryReference,

    /// How tags are ordered.
    pub policy: ImagePolicyChoice,

    /// Which tags are considered. All by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter_tags: Option<TagFilter>,

    /// Whether the digest of the chosen tag is written to the status: never, once for each tag, or at each interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Never"))]
    pub digest_reflection_policy: Option<ReflectionPolicy>,

    /// Interval at which the digest is refreshed, if the reflection policy is Always. Defaults to 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// Suspend reconciliation of this policy.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// Reference to an ImageRepository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageRepositoryReference {
    /// Name of the object.
    pub name: String,

    /// Namespace of the object. Defaults to the namespace of the referring object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// How tags are ordered. The first that is set counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImagePolicyChoice {
    /// By semantic version.
    #[serde(default, rename = "semver", skip_serializing_if = "Option::is_none")]
    pub semver: Option<SemVerPolicy>,

    /// By bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alphabetical: Option<AlphabeticalPolicy>,

    /// By number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numerical: Option<NumericalPolicy>,
}

/// The highest version in a range.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SemVerPolicy {
    /// Range of versions, such as `>=1.0.0 <2.0.0`.
    pub range: String,
}

/// The last or first tag in the order of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AlphabeticalPolicy {
    /// Order of the tags: asc selects Z, desc selects A.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "asc"))]
    pub order: Option<TagOrder>,
}

/// The highest or lowest number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NumericalPolicy {
    /// Order of the tags: asc selects 9, desc selects 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "asc"))]
    pub order: Option<TagOrder>,
}

/// Order of tags; the last is selected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TagOrder {
    /// Ascending.
    #[default]
    Asc,
    /// Descending.
    Desc,
}

/// Which tags are considered, and which part of them is ordered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TagFilter {
    /// Regular expression that a tag must match.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,

    /// What is ordered instead of the tag: a template of groups of the pattern, such as `$ts`.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub extract: Option<String>,
}

/// When the digest of the chosen tag is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReflectionPolicy {
    /// At each interval.
    Always,
    /// Once for each tag.
    IfNotPresent,
    /// Never.
    #[default]
    Never,
}

/// A chosen image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImageRef {
    /// Name of the image, as in the ImageRepository.
    pub name: String,

    /// Tag.
    pub tag: String,

    /// Digest of what the tag points to.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// `name:tag`, and `@digest` if it is known.
impl fmt::Display for ImageRef {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.name, self.tag)?;
        match &self.digest {
            Some(digest) => write!(formatter, "@{digest}"),
            None => Ok(()),
        }
    }
}

/// Observed state of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePolicyStatus {
    /// The chosen image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_ref: Option<ImageRef>,

    /// The image that was chosen before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_previous_ref: Option<ImageRef>,

    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions of this policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(ImagePolicyStatus);
status_object!(ImagePolicy);

/// Interval of digests, if none is given.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(600);

impl ImagePolicy {
    /// When the digest is read, the default included.
    #[must_use]
    pub fn reflection(&self) -> ReflectionPolicy {
        self.spec.digest_reflection_policy.unwrap_or_default()
    }

    /// How often the digest is refreshed.
    #[must_use]
    pub fn interval(&self) -> Duration {
        self.spec.interval.unwrap_or(DEFAULT_INTERVAL)
    }
}
