//! `GitRepository`: a revision of a Git repository as an artifact.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DEFAULT_TIMEOUT, Source};
use crate::meta::{
    Artifact, Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};

/// What to fetch from a Git repository, and how.
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
    doc = "A Git repository whose content is fetched and made available as an artifact.",
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
    /// Address of the repository, over HTTP, HTTPS or SSH.
    #[schemars(regex(pattern = r"^(http|https|ssh)://.*$"))]
    pub url: String,

    /// Names the Secret to authenticate with: `username` and `password`, or `bearerToken`, for HTTPS; `identity`
    /// and `known_hosts` for SSH.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Where credentials come from: generic takes them from the Secret, the others from the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<GitProvider>,

    /// Names the ServiceAccount whose identity is used at the cloud provider, azure or aws.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,

    /// How often the repository is checked for something new. It may vary a little, to spread the load.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// How long an operation on the repository may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m))+$"), extend("default" = "60s"))]
    pub timeout: Option<Duration>,

    /// Which branch, tag or commit to follow. If not set, it is the branch master.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRepositoryRef>,

    /// Which signatures are demanded.
    #[serde(rename = "verify", default, skip_serializing_if = "Option::is_none")]
    pub verification: Option<GitRepositoryVerification>,

    /// Names the Secret with the proxy to use for this repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,

    /// Patterns of files to leave out, in the format of .gitignore. They take the place of the usual ones.
    // Not `filled`: an empty text is a choice here, namely to leave nothing out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,

    /// Whether this repository is left alone for now.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,

    /// Whether submodules are fetched too, with the same credentials.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recurse_submodules: bool,

    /// Artifacts of other GitRepositories to put into the artifact of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<GitRepositoryInclude>,

    /// The folders to check out. If not set, all of them are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse_checkout: Vec<String>,
}

/// Where Git credentials come from.
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
    /// A branch.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,

    /// A tag.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,

    /// A range of semantic versions; the newest tag in it is taken.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,

    /// The full name of a reference, such as refs/heads/main or refs/pull/7/head.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// The id of a commit. With a branch beside it, the commit is expected on that branch.
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

    /// Names the Secret with the public keys of the authors: PGP keys end in .asc, SSH keys in .sshpub.
    pub secret_ref: LocalObjectReference,
}

/// Which Git objects must be signed.
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

/// Puts the artifact of another GitRepository into this one's.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryInclude {
    /// The other GitRepository.
    pub repository: LocalObjectReference,

    /// The folder to copy from. If not set, it is the root of the other artifact.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub from_path: Option<String>,

    /// The folder to copy to. If not set, it is named as the other GitRepository.
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

/// What was seen of a Git repository.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryStatus {
    /// The generation of the spec that was reconciled last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// What is known about this repository, aspect by aspect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// What was fetched last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,

    /// The artifacts that were put into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included_artifacts: Vec<Artifact>,

    /// The exclusion patterns that the artifact was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,

    /// Whether the artifact was made with submodules.
    #[serde(default, skip_serializing_if = "is_false")]
    pub observed_recurse_submodules: bool,

    /// The inclusions that the artifact was made with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_include: Vec<GitRepositoryInclude>,

    /// The folders that the artifact was made of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_sparse_checkout: Vec<String>,

    /// How the signatures were verified. Not set if they were not.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub source_verification_mode: Option<String>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled last.
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
    /// Whether the signature of the commit is demanded.
    #[must_use]
    pub fn verifies_head(&self) -> bool {
        self.mode.unwrap_or_default() != GitVerificationMode::Tag
    }

    /// Whether the signature of the tag is demanded.
    #[must_use]
    pub fn verifies_tag(&self) -> bool {
        matches!(
            self.mode,
            Some(GitVerificationMode::Tag | GitVerificationMode::TagAndHead)
        )
    }
}
