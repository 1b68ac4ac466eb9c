//! `Pipeline` of Weave GitOps: one application, a line of environments.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::meta::{Condition, HasConditions, LocalObjectReference, StatusObject, is_false};

/// Which application is promoted, through which environments.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "pipelines.weave.works",
    version = "v1alpha1",
    kind = "Pipeline",
    plural = "pipelines",
    namespaced,
    status = "PipelineStatus",
    doc = "A pipeline of Weave GitOps. A Pipeline of delivery.windlass.dev is made of it.",
    printcolumn = r#"{"name":"App Kind","type":"string","jsonPath":".spec.appRef.kind"}"#,
    printcolumn = r#"{"name":"App Name","type":"string","jsonPath":".spec.appRef.name"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSpec {
    /// The application. It has the same name in every target.
    pub app_ref: ApplicationReference,

    /// The environments, from the first to the last.
    pub environments: Vec<Environment>,

    /// How releases enter environments that do not say it themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,
}

/// An application, by kind and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationReference {
    /// API version of the application.
    pub api_version: String,

    /// Kind of the application: HelmRelease or Kustomization.
    pub kind: String,

    /// Name of the application.
    pub name: String,
}

/// An environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Name of the environment, such as `dev` or `prod`.
    pub name: String,

    /// How releases enter this environment. It replaces that of the pipeline as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promotion: Option<Promotion>,

    /// Where the application is.
    pub targets: Vec<Target>,
}

/// A place of the application.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The cluster, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterReference>,

    /// Namespace of the application.
    pub namespace: String,
}

/// A cluster, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterReference {
    /// API version of the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the cluster.
    pub kind: ClusterReferenceKind,

    /// Name of the cluster.
    pub name: String,

    /// Namespace of the cluster. Only that of the pipeline is accepted, which is the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Kind of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ClusterReferenceKind {
    /// A GitopsCluster of gitops.weave.works.
    #[default]
    GitopsCluster,
}

/// How releases enter an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Promotion {
    /// A person must agree to each release before it enters.
    #[serde(default, skip_serializing_if = "is_false")]
    pub manual: bool,

    /// How the change is made.
    pub strategy: Strategy,
}

/// How the change is made: by pull request, or by others who are notified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Strategy {
    /// By pull request.
    #[serde(default, rename = "pull-request", skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<PullRequestStrategy>,

    /// An event says that a release should enter; the change is made by others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notification: Option<Notification>,

    /// Secret with the key `hmac-key`, by which calls of the webhook are signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// A pull request to the repository with the manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PullRequestStrategy {
    /// The Git service.
    #[serde(rename = "type")]
    pub provider: GitProvider,

    /// HTTPS URL of the repository.
    pub url: String,

    /// The branch that receives the changes.
    pub base_branch: String,

    /// Secret with `username` and `password` for Git, and `token` for the API of the Git service.
    pub secret_ref: LocalObjectReference,
}

/// A Git service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GitProvider {
    /// GitHub and GitHub Enterprise.
    #[default]
    #[serde(rename = "github")]
    GitHub,
    /// GitLab.
    #[serde(rename = "gitlab")]
    GitLab,
    /// Gitea and Forgejo, which Weave's controller does not have.
    Gitea,
    /// Bitbucket Server and Data Center.
    BitbucketServer,
    /// Azure DevOps.
    AzureDevops,
}

/// Only an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notification {}

/// What is known of a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PipelineStatus {
    /// Conditions of the pipeline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The environments, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub environments: BTreeMap<String, EnvironmentStatus>,

    /// The last generation that was reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// An environment, as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentStatus {
    /// Its targets, as in the spec.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetStatus>,

    /// The revision that waits until a person agrees.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting_approval: Option<WaitingApproval>,
}

/// A target, as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// The application, with its cluster.
    pub cluster_app_ref: ClusterApplicationReference,

    /// Why it cannot be read, or is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,

    /// Whether it is ready.
    pub ready: bool,

    /// The revision that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
}

/// An application of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterApplicationReference {
    /// API version of the application.
    pub api_version: String,

    /// The cluster, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster_ref: Option<ClusterReference>,

    /// Kind of the application.
    pub kind: String,

    /// Name of the application.
    pub name: String,
}

/// A revision that waits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingApproval {
    /// The revision.
    pub revision: String,
}

impl StatusObject for Pipeline {
    fn suspended(&self) -> bool {
        false
    }
}

impl HasConditions for PipelineStatus {
    fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }

    fn observed_generation(&self) -> Option<i64> {
        self.observed_generation
    }

    fn set_observed_generation(&mut self, generation: i64) {
        self.observed_generation = Some(generation);
    }

    fn last_handled_reconcile_at(&self) -> Option<&str> {
        None
    }

    fn set_last_handled_reconcile_at(&mut self, _: &str) {}
}
