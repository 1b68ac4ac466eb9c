//! `GitRepository`: a revision of a Git repository as an artifact.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::origin::{DEFAULT_TIMEOUT, Source};
use crate::meta::{
    Artifact, Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};

/// Specification of the GitRepository.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "GitRepository",
    plural = "gitrepositories",
    namespaced,
    status = "GitRepositoryStatus",
    shortname = "gitrepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    doc = "A Git repository whose content is fetched as an artifact.",
    printcolumn = r#"{"name":"URL","type":"string","jsonPath":".spec.url"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.serviceAccountName) || (has(self.provider) && (self.provider == 'azure' || self.provider == 'aws'))",
    "message": "serviceAccountName can only be set when provider is 'azure' or 'aws'",
}]))]
pub struct GitRepositorySpec {
    /// URL of the repository, with HTTP, HTTPS or SSH.
    #[schemars(regex(pattern = r"^(http|https|ssh)://.*$"))]
    pub url: String,

    /// The Secret to authenticate with: `username` and `password`, or `bearerToken`, for HTTPS; `identity` and
    /// `known_hosts` for SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Where credentials come from: generic takes them from the Secret, the others from the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<GitProvider>,

    /// ServiceAccount for workload identity at the cloud provider, azure or aws.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// Interval at which the repository is checked for updates. Jitter may be added to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Timeout of operations on the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"), extend("default" = "60s"))]
    pub timeout: Option<Duration>,

    /// Branch, tag or commit to fetch. Defaults to the branch master.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRepositoryRef>,

    /// Signature verification.
    #[serde(rename = "verify", default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<GitRepositoryVerification>,

    /// The Secret with the proxy to use for this repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,

    /// Patterns of files to exclude, in .gitignore format. Replaces the default patterns.
    // Not `filled`: an empty text is a choice here, namely to leave nothing out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,

    /// Suspend reconciliation of this repository.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Also fetch submodules, with the same credentials.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recurse_submodules: bool,

    /// Artifacts of other GitRepositories to include in this artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<GitRepositoryInclude>,

    /// Directories to check out. Defaults to all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse_checkout: Vec<String>,
}

/// Provider of the Git credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum GitProvider {
    /// From a Secret.
    #[default]
    Generic,
    /// From the identity at Amazon Web Services.
    Aws,
    /// From the identity at Azure.
    Azure,
    /// From a GitHub App.
    Github,
}

/// Which revision to follow. Of what is set, commit goes before name, name before semver, semver before tag, and
/// tag before branch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRepositoryRef {
    /// Branch.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,

    /// Tag.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,

    /// Semantic version range; the newest matching tag is selected.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,

    /// Full name of a Git reference, such as refs/heads/main or refs/pull/7/head.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Commit SHA. If branch is also set, the commit must be on that branch.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Which signatures are demanded, and whose.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryVerification {
    /// Whether the commit is verified, the tag, or both. The spelling head means the same as HEAD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "HEAD"))]
    pub mode: Option<GitVerificationMode>,

    /// The Secret with the public keys of the authors: PGP keys end in .asc, SSH keys in .sshpub.
    pub secret_ref: LocalObjectReference,
}

/// Git objects that must be signed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GitVerificationMode {
    /// The commit; the old spelling.
    #[serde(rename = "head")]
    LowercaseHead,
    /// The commit.
    #[default]
    #[serde(rename = "HEAD")]
    Head,
    /// The tag.
    Tag,
    /// The tag and the commit.
    #[serde(rename = "TagAndHEAD")]
    TagAndHead,
}

/// Includes the artifact of another GitRepository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryInclude {
    /// The other GitRepository.
    pub repository: LocalObjectReference,

    /// Path to copy from. Defaults to the root of the other artifact.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub from_path: Option<String>,

    /// Path to copy to. Defaults to the name of the other GitRepository.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub to_path: Option<String>,
}

impl GitRepositoryInclude {
    /// The folder to copy to, the default included.
    #[must_use]
    pub fn to_path(&self) -> &str {
        self.to_path.as_deref().unwrap_or(&self.repository.name)
    }
}

/// Observed state of the Git repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryStatus {
    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions of this repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Last fetched artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// Included artifacts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included_artifacts: Vec<Artifact>,

    /// Exclusion patterns of the current artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,

    /// Whether the current artifact contains submodules.
    #[serde(default, skip_serializing_if = "is_false")]
    pub observed_recurse_submodules: bool,

    /// Inclusions of the current artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_include: Vec<GitRepositoryInclude>,

    /// Directories of the current artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_sparse_checkout: Vec<String>,

    /// Mode of the last signature verification, if any.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub source_verification_mode: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(GitRepositoryStatus);
status_object!(GitRepository);

impl Source for GitRepository {
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

impl GitRepository {
    /// Where credentials come from, the default included.
    #[must_use]
    pub fn provider(&self) -> GitProvider {
        self.spec.provider.unwrap_or_default()
    }
}

impl GitRepositoryVerification {
    /// Returns whether the signature of the commit is demanded.
    #[must_use]
    pub fn verifies_head(&self) -> bool {
        self.mode.unwrap_or_default() != GitVerificationMode::Tag
    }

    /// Returns whether the signature of the tag is demanded.
    #[must_use]
    pub fn verifies_tag(&self) -> bool {
        matches!(
            self.mode,
            Some(GitVerificationMode::Tag | GitVerificationMode::TagAndHead)
        )
    }
}
