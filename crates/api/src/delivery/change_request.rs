//! `ChangeRequest`: a change of manifests that a person asks for, made by pull request.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, Duration, LocalObjectReference, StatusObject, has_conditions};

use super::Author;

/// Files with new contents, or a change that is taken back.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "delivery.windlass.dev",
    version = "v1alpha1",
    kind = "ChangeRequest",
    plural = "changerequests",
    namespaced,
    category = "all",
    category = "windlass",
    status = "ChangeRequestStatus",
    doc = "A change of manifests in Git, proposed by pull request at the request of a user.",
    printcolumn = r#"{"name":"Title","type":"string","jsonPath":".spec.title"}"#,
    printcolumn = r#"{"name":"By","type":"string","jsonPath":".spec.requestedBy"}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.pullRequest.state"}"#,
    printcolumn = r#"{"name":"Pull request","type":"string","jsonPath":".status.pullRequest.url"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status","priority":1}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message","priority":1}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self == oldSelf",
        "message": "spec cannot be changed: create another ChangeRequest",
    },
    {
        "rule": "has(self.revert) != (has(self.files) && size(self.files) > 0)",
        "message": "give either files or revert",
    },
]))]
pub struct ChangeRequestSpec {
    /// The Kustomization that applies the manifests. It must be built from a GitRepository that follows a branch and is in the
    /// namespace of the ChangeRequest, or whose annotation `windlass.dev/access-from` lists that namespace.
    pub kustomization_ref: KustomizationReference,

    /// ChangePolicy in the same namespace, of the type PullRequest. Its windows apply; `merge` does not: the pull request is for
    /// people to merge.
    pub change_policy_ref: LocalObjectReference,

    /// Title of the pull request, and first line of the commit.
    #[schemars(length(min = 1, max = 200), regex(pattern = r"^[^\r\n]*$"))]
    pub title: String,

    /// Why the change is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub reason: Option<String>,

    /// Name of the user who asks for it. Where the chart's admission policy is installed, it must be the name of the user who
    /// creates the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 512))]
    pub requested_by: Option<String>,

    /// Author of the commit. Defaults to pipeline-controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,

    /// The files. Required, unless `revert` is set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub files: Vec<FileChange>,

    /// A change that is taken back, in all files that the Kustomization is built from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<Revert>,

    /// How often the Git service is asked about the pull request. Defaults to 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// How long the object is kept after its pull request was merged or closed. Defaults to 168h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub keep_for: Option<Duration>,
}

/// A Kustomization.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KustomizationReference {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Its namespace. Defaults to that of the ChangeRequest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// A new file, or a manifest in a file that is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.object) == has(self.digest)",
        "message": "object and digest are given together, for a manifest that is there, or both left out, for a new file",
    },
]))]
pub struct FileChange {
    /// Path of the file in the repository, such as `apps/web/release.yaml`. A new file must be below the path of the Kustomization. If
    /// a kustomization.yaml lists the files there, the new one is added to its resources.
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[^\r\n]*\.ya?ml$"))]
    pub path: String,

    /// The manifest in the file that is replaced. Without it, the file is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<ManifestReference>,

    /// SHA-256 of the manifest's text as it was read, in hex. If the text in Git is another one, nothing is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub digest: Option<String>,

    /// The new text: of a manifest that is replaced, or of the new file, which may hold several manifests. Secrets are accepted only if
    /// they are encrypted with SOPS.
    #[schemars(length(min = 1, max = 65536))]
    pub content: String,
}

/// What is taken back: files that changed from the revision `to` to the revision `from` become what they were. Both are commits of the
/// branch. Nothing is proposed if one of the files has been changed again since. Hidden files and those of CI services stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Revert {
    /// The revision that is taken back, such as `main@sha1:` and the commit.
    #[schemars(length(max = 512), regex(pattern = r"^([^\r\n]*@)?sha1:[0-9a-f]{40}$"))]
    pub from: String,

    /// The earlier revision, whose files are wanted again.
    #[schemars(length(max = 512), regex(pattern = r"^([^\r\n]*@)?sha1:[0-9a-f]{40}$"))]
    pub to: String,

    /// Path of the only file that is taken back. Defaults to all files that the Kustomization is built from: YAML below its path and in
    /// what kustomizations there lead to, and other files that they name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), regex(pattern = r"^[^\r\n]*\.ya?ml$"))]
    pub path: Option<String>,
}

/// A manifest, by what it says it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestReference {
    /// Its API version, such as `apps/v1`.
    #[schemars(length(min = 1, max = 253))]
    pub api_version: String,

    /// Its kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Namespace of the object. The manifest may leave it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// What is known of a change that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeRequestStatus {
    /// The last generation that was reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// Conditions: `Ready` is Unknown while the pull request is open, True when it is merged, and False when it is closed or cannot
    /// be opened.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestStatus>,

    /// Time at which the pull request was seen to be merged or closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Time>,
}

/// A pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestStatus {
    /// Its number.
    pub number: u64,

    /// Its page at the Git service.
    pub url: String,

    /// Whether it is open, merged or closed.
    pub state: PullRequestState,
}

/// How a pull request stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PullRequestState {
    /// It waits for people.
    #[default]
    Open,
    /// The branch has the change.
    Merged,
    /// It was closed without being merged.
    Closed,
}

has_conditions!(ChangeRequestStatus);

impl StatusObject for ChangeRequest {
    fn suspended(&self) -> bool {
        false
    }
}
