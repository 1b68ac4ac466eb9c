//! `Preview`: what pull requests would change in clusters, said on the pull requests.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{
    Condition, Duration, KubeConfigReference, LocalObjectReference, StatusObject, has_conditions,
};

use super::ForgeSpec;

/// Which pull requests are compared with which clusters, and as whom.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "delivery.windlass.dev",
    version = "v1alpha1",
    kind = "Preview",
    plural = "previews",
    namespaced,
    category = "all",
    category = "windlass",
    status = "PreviewStatus",
    doc = "A preview of pull requests: what their merge would change in clusters, as a comment and a commit status.",
    printcolumn = r#"{"name":"Forge","type":"string","jsonPath":".spec.forge.provider"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct PreviewSpec {
    /// GitRepositories in the same namespace. They must follow a branch: pull requests to that branch are compared. Defaults to all
    /// GitRepositories of the namespace that follow a branch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub repositories: Vec<LocalObjectReference>,

    /// The Git service: GitHub, GitLab or Gitea. The token must be allowed to read pull requests, to comment on them, and to set the
    /// status of commits.
    pub forge: ForgeSpec,

    /// Which pull requests are compared. Defaults to all whose branch is in the repository itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_requests: Option<PullRequestFilter>,

    /// Name of a ServiceAccount in the same namespace. As this account, objects are read and server-side dry runs are made. It needs the
    /// verbs get, list, create and patch on these objects; an admission policy can restrict it to dry runs. Readers of a pull request
    /// may see what the account can read, except for values from Secrets.
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: String,

    /// Clusters with which pull requests are compared. Defaults to this cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub clusters: Vec<PreviewCluster>,

    /// Checks of the repository's files after the merge, without a cluster, as `windlass check` makes them: builds, schemas, APIs that are
    /// no longer served, objects that are applied twice, and rules. Findings that the branch already has are not reported. Errors fail
    /// the commit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checks: Option<PreviewChecks>,

    /// Whether a comment says what would change. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub comment: Option<bool>,

    /// Whether a commit status says how the comparison ended: pending, then success, or failure if something cannot be built or
    /// would be refused. Branch protection can require it. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub commit_status: Option<bool>,

    /// How often the Git service is asked for pull requests. A Receiver makes it at once. Defaults to 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// Longest time for the comparison of one pull request. Defaults to 2m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// True to stop comparing. What was said stays as it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// Which pull requests are compared: those that all of these accept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestFilter {
    /// Labels, of which a pull request must have all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub labels: Vec<String>,

    /// Branches of pull requests, as names or with `*` for any characters, such as `feature/*`. One must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub branches: Vec<String>,

    /// Users at the Git service. One of them must have opened the pull request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100))]
    pub authors: Vec<String>,

    /// True to compare pull requests from forks as well. Of these, objects and the names of fields are said, no values and no messages
    /// of the API server. Admission webhooks are called for what a stranger wrote. Defaults to false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forks: bool,
}

/// How the files of pull requests are checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewChecks {
    /// A version of Kubernetes, such as 1.37. APIs that it does not serve are errors; without it, APIs that any version has removed are
    /// warnings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^1\.[0-9]{1,3}$"))]
    pub kubernetes_version: Option<String>,

    /// A ConfigMap in the same namespace, read as the account in serviceAccountName. Each entry is a rule: a CEL expression over
    /// `object` that is true for accepted objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules_ref: Option<LocalObjectReference>,

    /// True to also show findings beside the lines of the pull request, as a check run. GitHub only; the GitHub App needs the
    /// permission `checks: write`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub annotations: bool,

    /// True to fail the commit status on warnings, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub strict: bool,
}

/// A cluster with which pull requests are compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewCluster {
    /// Its name in comments.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// How to reach it, if it is another cluster: a Secret or ConfigMap in the same namespace. The preview covers GitRepositories there
    /// with the same URL and branch, and the Kustomizations and HelmReleases that use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,
}

/// Observed state of a Preview.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PreviewStatus {
    /// The last generation that was reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// Conditions: `Ready` is True when all open pull requests are compared, whatever came of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Open pull requests that this Preview compares, up to 100.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pull_requests: Vec<PreviewedRequest>,
}

/// A pull request, and what came of its comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreviewedRequest {
    /// The first of the GitRepositories that follow its base.
    pub repository: String,

    /// Its number.
    pub number: u64,

    /// Its page at the Git service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,

    /// The commit of its branch that was compared.
    pub head: String,

    /// The commit of the branch into which it was merged for that.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub base: String,

    /// The generation of the Preview by which it was compared.
    #[serde(default)]
    pub generation: i64,

    /// How the comparison ended.
    pub state: PreviewState,

    /// What would change, in a line, or why nothing was compared.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,

    /// When it was compared, or when that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared_at: Option<Time>,
}

/// How a comparison ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PreviewState {
    /// It has not been compared at this commit yet.
    #[default]
    Pending,
    /// All that it reaches was compared.
    Succeeded,
    /// Something cannot be built, would be refused, or could not be compared.
    Failed,
}

has_conditions!(PreviewStatus);

impl StatusObject for Preview {
    fn suspended(&self) -> bool {
        self.spec.suspend
    }
}
