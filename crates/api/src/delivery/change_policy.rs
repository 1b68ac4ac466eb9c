//! `ChangePolicy`: how changes go into Git.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Duration, LocalObjectReference};

/// How changes that a controller makes go into Git.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "delivery.windlass.dev",
    version = "v1alpha1",
    kind = "ChangePolicy",
    plural = "changepolicies",
    namespaced,
    category = "all",
    category = "windlass",
    doc = "How changes go into Git: by commit or by pull request, when, and who is asked.",
    printcolumn = r#"{"name":"Type","type":"string","jsonPath":".spec.type"}"#,
    printcolumn = r#"{"name":"Forge","type":"string","jsonPath":".spec.pullRequest.forge.provider"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type != 'PullRequest' || has(self.pullRequest)",
        "message": "spec.pullRequest is required when spec.type is PullRequest",
    },
    {
        "rule": "self.type == 'PullRequest' || !has(self.pullRequest)",
        "message": "spec.pullRequest is only accepted when spec.type is PullRequest",
    },
]))]
pub struct ChangePolicySpec {
    /// Whether changes are committed to the branch, proposed to it by pull request, or only announced by an event, for other
    /// systems to make. Event is accepted for pipelines only.
    #[serde(rename = "type")]
    pub kind: ChangeKind,

    /// The pull requests. Required with the type PullRequest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestSpec>,

    /// Times at which changes go in. Outside of all windows nothing is pushed, opened or merged. Without windows it is
    /// always time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub windows: Vec<Window>,
}

/// How a change goes into Git.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ChangeKind {
    /// A commit on the branch.
    #[default]
    Commit,
    /// A pull request to the branch.
    PullRequest,
    /// An event announces the change; people or other systems make it.
    Event,
}

/// Pull requests: where, how many, what they say, and when they are merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestSpec {
    /// The Git service that has the repository.
    pub forge: ForgeSpec,

    /// Go template of the branch that holds a change. Defaults to
    /// `windlass/{{ .AutomationObject.Namespace }}-{{ .AutomationObject.Name }}`, followed by `-{{ .Policy }}` when
    /// changes are grouped by policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub branch: Option<String>,

    /// Go template of the title. By default the title names the images and their new tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub title: Option<String>,

    /// Go template of the description, in Markdown. By default `{{ .Table }}{{ .Images }}{{ .Objects }}`: what changes from
    /// what to what and where, the origin of the images, and the fields that change in objects of `kustomizations`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 65536))]
    pub body: Option<String>,

    /// Source repositories at the same Git service whose commits the description may list, such as `shop/web` or `shop/*`.
    /// The labels of an image name its repository and commit. Empty by default: the builder of an image chooses its labels,
    /// and readers of the pull request may have no access to that repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub source_repositories: Vec<String>,

    /// Kustomizations of the ChangePolicy's namespace. The description says which fields of their objects the change alters.
    /// Their source must be the GitRepository of the automation. Empty by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub kustomizations: Vec<String>,

    /// Which changes share a pull request: all of an automation, or those of one image policy each. Defaults to All.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "All"))]
    pub grouping: Option<Grouping>,

    /// Highest number of open pull requests of one automation. Further changes wait until one is merged or closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub max_open: Option<u32>,

    /// Labels of the pull request. Bitbucket has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub labels: Vec<String>,

    /// Whose review is asked for: user names; at GitHub also `organisation/team`; at Bitbucket Cloud account IDs; at
    /// Azure DevOps identity IDs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub reviewers: Vec<String>,

    /// When the pull request is merged without a person. Never by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<MergeSpec>,
}

/// A repository at a Git service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForgeSpec {
    /// The Git service.
    pub provider: ForgeProvider,

    /// Address of the repository, as for a clone. Defaults to the URL of the GitRepository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048), regex(pattern = r"^(http|https|ssh)://.*$"))]
    pub url: Option<String>,

    /// Secret in the same namespace with the key `token` (or `password`, with `username` at Bitbucket),
    /// or the keys of a GitHub App; `ca.crt` for a certificate authority of its own.
    pub secret_ref: LocalObjectReference,

    /// Secret with the `address` of a proxy, and its `username` and `password`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
}

/// A Git service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ForgeProvider {
    /// GitHub and GitHub Enterprise.
    #[default]
    GitHub,
    /// GitLab.
    GitLab,
    /// Gitea and Forgejo.
    Gitea,
    /// Bitbucket Cloud.
    Bitbucket,
    /// Bitbucket Server and Data Center.
    BitbucketServer,
    /// Azure DevOps.
    AzureDevOps,
}

/// Which changes share a pull request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Grouping {
    /// All of an automation.
    #[default]
    All,
    /// Those of one image policy.
    Policy,
}

/// When and how a pull request is merged without a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MergeSpec {
    /// How it becomes part of the branch. Defaults to Merge. GitLab merges as the project is set up, except for Squash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Merge"))]
    pub method: Option<MergeMethod>,

    /// Checks of the commit that must have passed, by name. Without names all must have passed, and one at least must
    /// be there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub checks: Vec<String>,

    /// How long the pull request must have been open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub minimum_age: Option<Duration>,
}

/// How a pull request becomes part of its branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MergeMethod {
    /// With a merge commit.
    #[default]
    Merge,
    /// As one new commit.
    Squash,
    /// As new commits on top of the branch.
    Rebase,
}

/// A time of the week.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    /// Days on which it begins. Every day by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7))]
    pub days: Vec<Day>,

    /// Time of the day at which it begins, such as `08:00`.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub from: String,

    /// Time of the day at which it ends. If that is not after `from`, it is on the next day.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub to: String,

    /// Time zone by its name in the IANA database, such as `Europe/Berlin`. Defaults to UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub time_zone: Option<String>,
}

/// A day of the week.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub enum Day {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}
