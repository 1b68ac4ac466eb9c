//! `ResourceSetInputProvider`: sets of inputs, read from a Git service, a registry, a service, or the spec itself.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::image::LabelSelectorRequirement;
use crate::meta::{Condition, Duration, LocalObjectReference, StatusObject, has_conditions};

use super::AnyMap;

/// Where inputs come from, and which of them count.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "fluxcd.controlplane.io",
    version = "v1",
    kind = "ResourceSetInputProvider",
    plural = "resourcesetinputproviders",
    shortname = "rsip",
    namespaced,
    status = "InputProviderStatus",
    doc = "A provider of inputs for ResourceSets.",
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type in ['Static', 'ExternalArtifact'] ? !has(self.url) : has(self.url)",
        "message": "url must be set, except for the types Static and ExternalArtifact, where it must not",
    },
    {
        "rule": "!has(self.url) || !(self.type.startsWith('Git') || self.type.startsWith('AzureDevOps')) || self.url.startsWith('http')",
        "message": "url must start with 'http://' or 'https://' for Git services",
    },
    {
        "rule": "!has(self.url) || !self.type.endsWith('ArtifactTag') || self.url.startsWith('oci://')",
        "message": "url must start with 'oci://' for tags of artifacts",
    },
    {
        "rule": "!has(self.url) || !self.type.startsWith('AWSCodeCommit') || self.url.startsWith('https://')",
        "message": "url must start with 'https://' for AWS CodeCommit",
    },
    {
        "rule": "!has(self.url) || self.type != 'ExternalService' || self.url.startsWith('https://') || (has(self.insecure) && self.insecure && self.url.startsWith('http://'))",
        "message": "url must start with 'https://', or with 'http://' if insecure is set, for the type ExternalService",
    },
    {
        "rule": "!has(self.insecure) || !self.insecure || self.type in ['ExternalService', 'OCIArtifactTag']",
        "message": "insecure can only be set for the types ExternalService and OCIArtifactTag",
    },
    {
        "rule": "!has(self.serviceAccountName) || self.type.startsWith('AzureDevOps') || self.type.startsWith('AWSCodeCommit') || self.type in ['ACRArtifactTag', 'ECRArtifactTag', 'GARArtifactTag']",
        "message": "serviceAccountName cannot be set for this type",
    },
    {
        "rule": "!has(self.secretRef) || !(self.type in ['Static', 'ExternalArtifact'] || self.type.startsWith('AWSCodeCommit'))",
        "message": "secretRef cannot be set for this type",
    },
    {
        "rule": "!has(self.certSecretRef) || !(self.type in ['Static', 'ExternalArtifact'] || self.type.startsWith('AWSCodeCommit') || self.type.startsWith('AzureDevOps'))",
        "message": "certSecretRef cannot be set for this type",
    },
    {
        "rule": "has(self.selectors) == (self.type == 'ExternalArtifact')",
        "message": "selectors must be set for the type ExternalArtifact, and for no other",
    },
]))]
pub struct ResourceSetInputProviderSpec {
    /// What is read.
    #[serde(rename = "type")]
    pub type_: ProviderType,

    /// Address of the repository, artifact or service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 2048), regex(pattern = "^(http|https|oci)://.*$"))]
    pub url: String,

    /// Name of a ServiceAccount in the same namespace: its identity at a cloud provider signs in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub service_account_name: String,

    /// Secret in the same namespace with credentials: `username` and `password`, or a GitHub App, as for GitRepositories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,

    /// Secret in the same namespace with certificates: `ca.crt`, `tls.crt`, `tls.key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,

    /// True to use HTTP without TLS.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure: bool,

    /// Inputs that every set gets where it lacks them. They are the set of the type Static.
    #[serde(default, skip_serializing_if = "AnyMap::is_empty")]
    #[schemars(schema_with = "super::any_object")]
    pub default_values: AnyMap,

    /// Which of what is found counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<InputFilter>,

    /// Pull requests that are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skip: Option<InputSkip>,

    /// When inputs may change. Defaults to any time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub schedule: Vec<InputSchedule>,

    /// Which ExternalArtifacts are read: those that one of these selects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub selectors: Vec<ExternalArtifactSelector>,
}

/// What a provider reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the names are the values of the field")]
pub enum ProviderType {
    #[default]
    Static,
    ExternalService,
    ExternalArtifact,
    GitHubBranch,
    GitHubTag,
    GitHubPullRequest,
    GitLabBranch,
    GitLabTag,
    GitLabMergeRequest,
    GitLabEnvironment,
    GiteaBranch,
    GiteaTag,
    GiteaPullRequest,
    AzureDevOpsBranch,
    AzureDevOpsTag,
    AzureDevOpsPullRequest,
    #[serde(rename = "AWSCodeCommitBranch")]
    AwsCodeCommitBranch,
    #[serde(rename = "AWSCodeCommitTag")]
    AwsCodeCommitTag,
    #[serde(rename = "AWSCodeCommitPullRequest")]
    AwsCodeCommitPullRequest,
    #[serde(rename = "OCIArtifactTag")]
    OciArtifactTag,
    #[serde(rename = "ACRArtifactTag")]
    AcrArtifactTag,
    #[serde(rename = "ECRArtifactTag")]
    EcrArtifactTag,
    #[serde(rename = "GARArtifactTag")]
    GarArtifactTag,
}

/// Where a provider reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceFamily {
    /// In the spec.
    Spec,
    /// A web service.
    Service,
    /// ExternalArtifacts of the cluster.
    Cluster,
    /// GitHub.
    GitHub,
    /// GitLab.
    GitLab,
    /// Gitea and Forgejo.
    Gitea,
    /// Azure DevOps.
    AzureDevOps,
    /// AWS CodeCommit.
    CodeCommit,
    /// A registry, of no cloud in particular.
    Registry,
    /// Azure Container Registry.
    Acr,
    /// Amazon Elastic Container Registry.
    Ecr,
    /// Google Artifact Registry.
    Gar,
}

/// What a provider's sets of inputs stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Values.
    Values,
    /// ExternalArtifacts.
    Artifacts,
    /// Open pull requests.
    PullRequests,
    /// Branches.
    Branches,
    /// Tags.
    Tags,
    /// Environments of GitLab.
    Environments,
}

impl ProviderType {
    /// Returns where it reads, and what.
    #[must_use]
    pub fn parts(self) -> (ServiceFamily, Subject) {
        use {ServiceFamily as From, Subject as What};
        match self {
            Self::Static => (From::Spec, What::Values),
            Self::ExternalService => (From::Service, What::Values),
            Self::ExternalArtifact => (From::Cluster, What::Artifacts),
            Self::GitHubBranch => (From::GitHub, What::Branches),
            Self::GitHubTag => (From::GitHub, What::Tags),
            Self::GitHubPullRequest => (From::GitHub, What::PullRequests),
            Self::GitLabBranch => (From::GitLab, What::Branches),
            Self::GitLabTag => (From::GitLab, What::Tags),
            Self::GitLabMergeRequest => (From::GitLab, What::PullRequests),
            Self::GitLabEnvironment => (From::GitLab, What::Environments),
            Self::GiteaBranch => (From::Gitea, What::Branches),
            Self::GiteaTag => (From::Gitea, What::Tags),
            Self::GiteaPullRequest => (From::Gitea, What::PullRequests),
            Self::AzureDevOpsBranch => (From::AzureDevOps, What::Branches),
            Self::AzureDevOpsTag => (From::AzureDevOps, What::Tags),
            Self::AzureDevOpsPullRequest => (From::AzureDevOps, What::PullRequests),
            Self::AwsCodeCommitBranch => (From::CodeCommit, What::Branches),
            Self::AwsCodeCommitTag => (From::CodeCommit, What::Tags),
            Self::AwsCodeCommitPullRequest => (From::CodeCommit, What::PullRequests),
            Self::OciArtifactTag => (From::Registry, What::Tags),
            Self::AcrArtifactTag => (From::Acr, What::Tags),
            Self::EcrArtifactTag => (From::Ecr, What::Tags),
            Self::GarArtifactTag => (From::Gar, What::Tags),
        }
    }
}

/// Which of what is found counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputFilter {
    /// Regular expression that branches must match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub include_branch: String,

    /// Regular expression that branches must not match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exclude_branch: String,

    /// Regular expression that tags must match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub include_tag: String,

    /// Regular expression that tags must not match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exclude_tag: String,

    /// Regular expression that environments must match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub include_environment: String,

    /// Regular expression that environments must not match.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub exclude_environment: String,

    /// Labels, of which a pull request must have all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,

    /// Maximum number of sets. Defaults to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10000))]
    pub limit: Option<u32>,

    /// Range of versions for tags, the newest version first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub semver: String,
}

/// Pull requests that are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputSkip {
    /// Labels: pull requests with one of them are left out, or without it if it begins with `!`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// When inputs may change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputSchedule {
    /// When it begins, as five fields of cron.
    pub cron: String,

    /// Time zone of the IANA database. Defaults to UTC.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time_zone: String,

    /// How long it lasts: none for a single reconcile, otherwise at least twice the timeout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub window: Option<Duration>,
}

/// Which ExternalArtifacts are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalArtifactSelector {
    /// Labels that they must have.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub match_labels: std::collections::BTreeMap<String, String>,

    /// Requirements that their labels must meet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<LabelSelectorRequirement>,

    /// Their name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,

    /// Their namespace, or `*` for all. Defaults to that of the provider.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Observed state of a provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InputProviderStatus {
    /// The last generation that was reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Conditions: Ready, Reconciling, Stalled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Sets of inputs that were found.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "super::any_inputs")]
    pub exported_inputs: Vec<AnyMap>,

    /// Digest of the sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_exported_revision: Option<String>,

    /// When inputs may change next, by the schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_schedule: Option<NextSchedule>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// The last value of the annotation `reconcile.fluxcd.io/forceAt` that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_force_at: Option<String>,
}

/// When a schedule begins next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NextSchedule {
    /// As in the spec.
    pub cron: String,

    /// As in the spec.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub time_zone: String,

    /// As in the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<Duration>,

    /// When it begins.
    pub when: Time,
}

has_conditions!(InputProviderStatus);

impl StatusObject for ResourceSetInputProvider {
    fn suspended(&self) -> bool {
        super::is_disabled(self)
    }
}
