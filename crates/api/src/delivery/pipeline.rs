//! `Pipeline`: how releases go from one environment to the next.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ForgeSpec, Window};
use crate::image::LabelSelector;
use crate::meta::{
    Condition, Duration, HELM_GROUP, KUSTOMIZE_GROUP, KubeConfigReference, LocalObjectReference,
    SOURCE_GROUP, has_conditions, is_false, status_object,
};

/// Which applications are promoted, through which environments.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "delivery.windlass.dev",
    version = "v1alpha1",
    kind = "Pipeline",
    plural = "pipelines",
    namespaced,
    status = "PipelineStatus",
    category = "all",
    category = "windlass",
    doc = "A pipeline that promotes what one environment runs to the next, by changes in Git.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct PipelineSpec {
    /// The applications that are promoted together. Each has the same kind and name in every target. An entry has a name or a selector.
    #[schemars(length(min = 1, max = 10))]
    pub apps: Vec<AppReference>,

    /// The environments, from the first to the last. They have 200 targets at most in all.
    #[schemars(length(min = 1, max = 50))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub environments: Vec<Environment>,

    /// What of the applications moves. Everything but paths by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub carry: Vec<Carried>,

    /// GitRepository in the namespace of the pipeline whose Secret may push. By default changes are pushed with the
    /// GitRepository that delivers a target, if that is in the same namespace or allows it by the annotation
    /// `windlass.dev/access-from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_ref: Option<LocalObjectReference>,

    /// ChangePolicy in the namespace of the pipeline: whether changes are committed, proposed by pull request, or only announced.
    /// Without one they are committed. Its templates are those of image automations and are not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_policy_ref: Option<LocalObjectReference>,

    /// Interval at which gates are looked at, and the Git service is asked about open pull requests. Defaults to 5m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// Author of the commits. Defaults to pipeline-controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<Author>,

    /// ServiceAccount in the namespace of the pipeline that must be allowed to `get` targets in other namespaces. Defaults
    /// to `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub service_account_name: Option<String>,

    /// Has each promotion that ends attested: by an in-toto statement, signed with a key of the namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<AttestationSpec>,

    /// Nothing is promoted while it is set.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// How promotions are attested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttestationSpec {
    /// Secret in the namespace of the pipeline with the private key in the entry `signing.key`: PEM, ECDSA with the curve P-256 or
    /// Ed25519, without a passphrase.
    pub secret_ref: LocalObjectReference,
}

/// An application by kind and name, or all that have some labels in the targets of the first environments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AppReference {
    /// Kind of the application.
    pub kind: AppKind,

    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub name: String,

    /// Selects applications by their labels, in place of a name. The ServiceAccount of the pipeline must be allowed to `get` all of the kind
    /// there, and a first environment must have a target in this cluster. `status.apps` lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// Kind of an application.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum AppKind {
    /// A HelmRelease of helm.toolkit.fluxcd.io.
    #[default]
    HelmRelease,
    /// A Kustomization of kustomize.toolkit.fluxcd.io.
    Kustomization,
    /// An OCIRepository of source.toolkit.fluxcd.io, beside what is delivered from it.
    OCIRepository,
    /// A GitRepository of source.toolkit.fluxcd.io, beside what is delivered from it.
    GitRepository,
}

impl AppKind {
    /// Its name, as in manifests.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HelmRelease => "HelmRelease",
            Self::Kustomization => "Kustomization",
            Self::OCIRepository => "OCIRepository",
            Self::GitRepository => "GitRepository",
        }
    }

    /// Its API group.
    #[must_use]
    pub fn group(self) -> &'static str {
        match self {
            Self::HelmRelease => HELM_GROUP,
            Self::Kustomization => KUSTOMIZE_GROUP,
            Self::OCIRepository | Self::GitRepository => SOURCE_GROUP,
        }
    }

    /// Its name in the API's paths.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::HelmRelease => "helmreleases",
            Self::Kustomization => "kustomizations",
            Self::OCIRepository => "ocirepositories",
            Self::GitRepository => "gitrepositories",
        }
    }
}

/// What of an application moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Carried {
    /// The version of a HelmRelease's chart (`spec.chart.spec.version`).
    ChartVersion,
    /// Tags and digests of images: in the values of a HelmRelease, in `spec.images` of a Kustomization.
    Images,
    /// What an OCIRepository or a GitRepository follows (`spec.ref`): a tag, a digest or a commit.
    Reference,
    /// The folder that a Kustomization is built from (`spec.path`), where folders are versions. Not by default.
    Path,
}

/// An environment: where its applications are, and what has to be true before a release enters it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Its name.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: String,

    /// Where the applications are.
    #[schemars(length(min = 1, max = 50))]
    pub targets: Vec<Target>,

    /// Environments in which a release must be healthy before it enters this one. Defaults to the one before in the list. An
    /// empty list makes this a first environment: people or automations change it, and releases begin there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 20), inner(length(max = 63)))]
    pub needs: Option<Vec<String>>,

    /// How long a release must be healthy here before it goes on, such as `30m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub soak: Option<Duration>,

    /// ChangePolicy of this environment, in place of that of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change_policy_ref: Option<LocalObjectReference>,

    /// GitRepository of this environment, in place of that of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository_ref: Option<LocalObjectReference>,

    /// Times of the week at which releases enter. Without windows it is always time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 20))]
    pub windows: Vec<Window>,

    /// People who must agree to each release before it enters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<Approvals>,

    /// Further conditions, all of which must be true before a release enters. They are looked at at the interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub gates: Vec<Gate>,

    /// Conditions that must hold for a release to count as healthy here. They are looked at at the interval until it has passed, and
    /// as long as `rollbackWithin` lasts. One that is false counts as a failure of the release; one that does not answer keeps it from
    /// going on. Jobs are not accepted. `release.number` is 0 before a first environment has made a release of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub checks: Vec<Gate>,

    /// How a release goes over several targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
}

/// A place of the applications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// Its name, for messages. Defaults to the namespace, after the name of the Secret or ConfigMap and `/` if there is a kubeConfig.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub name: Option<String>,

    /// Namespace of the applications. Defaults to that of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,

    /// How to reach the cluster of the applications, if it is another one: a Secret or ConfigMap in the namespace of the pipeline. They
    /// are read as the user of the kubeconfig. Changes are made in the repository of `repositoryRef`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfigReference>,
}

impl Target {
    /// What it is called in messages and in the status.
    #[must_use]
    pub fn called(&self) -> String {
        if let Some(name) = &self.name {
            return name.clone();
        }
        let namespace = self.namespace.as_deref().unwrap_or_default();
        let reference = self.kube_config.as_ref();
        let secret = reference
            .and_then(|one| one.secret_ref.as_ref())
            .map(|one| &one.name);
        let map = reference
            .and_then(|one| one.config_map_ref.as_ref())
            .map(|one| &one.name);
        match secret.or(map) {
            Some(cluster) => format!("{cluster}/{namespace}"),
            None => namespace.to_owned(),
        }
    }
}

/// A condition over an object, such as a Canary of Flagger or an AnalysisRun of Argo Rollouts, over the answer of an HTTP server, over a
/// query of Prometheus, or over the statuses of a commit; or a Job that has to succeed. What cannot be read keeps the gate closed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gate {
    /// Its name, for messages.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,

    /// The object, read as the ServiceAccount of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<GateObject>,

    /// The HTTP server that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<GateHttp>,

    /// The query of Prometheus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<GatePrometheus>,

    /// The statuses of a commit at its Git service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status: Option<GateCommitStatus>,

    /// The attestation of an earlier environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<GateAttestation>,

    /// CEL expression that must be true. It has `object`; or `response` (status, body) of an HTTP server; or `value`, the number that
    /// Prometheus gives, and `result`, all series with their `labels` and `value`; or `commit` and
    /// `statuses`, by name, with their `state` (pending, success, failure) and `description`; or `attestation`, the predicate of the statement; and always `release` (number, digest, values),
    /// `environment` (its name), `pipeline` (namespace, name) and `now` (RFC 3339). Alone it is over these. Without one, an HTTP server must answer with a status from 200 to 299.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10000))]
    pub expr: Option<String>,

    /// Job that is made for each release, and must succeed. It excludes all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<GateJob>,
}

/// A request to an HTTP server. Its host must be one that the controller may ask (`--gate-hosts`). Redirects are not followed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateHttp {
    /// The URL.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://.*$"))]
    pub url: String,

    /// The method. POST sends the pipeline, the environment and the release as JSON, each time that the gate is looked at. Defaults to
    /// GET.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "GET"))]
    pub method: Option<GateMethod>,

    /// Secret in the namespace of the pipeline with `username` and `password` or `bearerToken`, and `ca.crt`, `tls.crt` and `tls.key`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// The statuses of the commit that a release comes from: those of commit statuses, check runs and jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateCommitStatus {
    /// GitRepository in the namespace of the pipeline. If the release carries a commit of it (`Reference`), that one is meant; otherwise
    /// the commit by which the first environment has the release.
    pub repository_ref: LocalObjectReference,

    /// The Git service that has the repository.
    pub forge: ForgeSpec,

    /// Names of the statuses that must be successful. Without names all must be, and one at least must be there. They do not count
    /// where there is an expression.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50))]
    pub checks: Vec<String>,
}

/// What an attestation must say: that the newest promotion of an environment was of this release, and succeeded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateAttestation {
    /// An environment of the pipeline, into which releases are promoted.
    #[schemars(length(min = 1, max = 63))]
    pub environment: String,

    /// Secret in the namespace of the pipeline with public keys, each in an entry that ends in `.pub`. One of them must have signed.
    pub secret_ref: LocalObjectReference,
}

/// Method of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum GateMethod {
    /// GET.
    #[default]
    Get,
    /// POST.
    Post,
}

/// A query of Prometheus, or of what has its API. Its host must be one that the controller may ask (`--gate-hosts`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatePrometheus {
    /// Address of Prometheus, such as `https://prometheus.example.com`.
    #[schemars(length(max = 2048), regex(pattern = r"^https?://.*$"))]
    pub address: String,

    /// The query, in PromQL.
    #[schemars(length(min = 1, max = 10000))]
    pub query: String,

    /// Secret in the namespace of the pipeline, as that of `http`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// A Job, made in the namespace of the pipeline as its ServiceAccount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GateJob {
    /// Spec of the Job, as in batch/v1. Its Pods have the release in their annotations.
    #[schemars(schema_with = "any_object")]
    pub spec: serde_json::Map<String, serde_json::Value>,
}

pub(super) fn any_object(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// An object of any kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateObject {
    /// API version, such as `flagger.app/v1beta1`.
    #[schemars(length(min = 1, max = 253))]
    pub api_version: String,

    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,

    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Namespace. Defaults to that of the pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,
}

/// Agreement of people.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    /// How many different people must agree.
    #[schemars(range(min = 1, max = 10))]
    pub required: u32,

    /// Groups of users of which each approver must be in one. Everyone who has the verb `approve` by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10), inner(length(min = 1, max = 253)))]
    pub groups: Vec<String>,
}

/// How a release goes over several targets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// How many targets may be on their way at once. All by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 50))]
    pub max_concurrent: Option<u32>,

    /// Whether targets that have not begun still begin when one has failed or cannot be read. Defaults to Continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Continue"))]
    pub on_failure: Option<OnFailure>,

    /// How long a target may take until it is healthy; then it counts as failed. Defaults to 30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// A target that fails within this time after a release entered it, or is late with it, goes back to the release that was
    /// healthy there before. By default it stays as it is, for people to decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub rollback_within: Option<Duration>,
}

/// What a failed target means for the others of its environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OnFailure {
    /// They go on.
    #[default]
    Continue,
    /// They do not begin.
    Stop,
}

/// Author of commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Author {
    /// Name. Defaults to that of the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200))]
    pub name: Option<String>,

    /// E-mail address.
    #[schemars(length(min = 1, max = 320))]
    pub email: String,
}

/// What is known of a pipeline. It is all the memory that its controller has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PipelineStatus {
    /// The last generation that was reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// Conditions of the pipeline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// Releases, the newest last: the last ten, and those that an environment has or is about to have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<Release>,

    /// The applications, where the spec selects some by labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apps: Vec<AppReference>,

    /// The environments, as in the spec.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<EnvironmentStatus>,

    /// Webhooks that start the pipeline: Receivers of its namespace that name it, or what its first environments run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
}

/// A webhook that starts a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Name of the Receiver.
    pub receiver: String,

    /// Type of the caller, as in the Receiver.
    #[serde(rename = "type")]
    pub type_: String,

    /// The object that a call has reconciled: `Kind/namespace/name`, with the name `*` for all.
    pub reconciles: String,

    /// Address of the webhook; its path if the controller is not told where webhooks are reached (`--webhook-url`). Left out for
    /// types that accept a call from anyone who knows the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What moves through a pipeline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Release {
    /// Its number in this pipeline; newer ones are greater.
    pub number: u64,

    /// Digest of its values.
    pub digest: String,

    /// What it carries: chart versions and images, by the application and the field.
    pub values: BTreeMap<String, String>,

    /// Revision of Git, or of another source, by which a first environment has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,

    /// When all targets of a first environment had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Time>,

    /// First environment that went back from it to an older one. It is not promoted further.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolled_back: Option<String>,
}

/// An environment, as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentStatus {
    /// Its name.
    pub name: String,

    /// Number of the release that all its targets have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,

    /// Since when all targets have that release and are healthy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy_since: Option<Time>,

    /// Releases that were healthy here for the soak time, and have not failed since.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed: Vec<u64>,

    /// The release that goes over its targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entering: Option<u64>,

    /// What the next release waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<String>,

    /// Its targets, as in the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<TargetStatus>,

    /// The last ten finished promotions, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PromotionRecord>,
}

/// A finished promotion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromotionRecord {
    /// Number of the release.
    pub release: u64,

    /// Targets in which it ended.
    pub targets: Vec<String>,

    /// Whether the targets became healthy.
    pub outcome: PromotionOutcome,

    /// Commit that contained the release.
    pub commit: String,

    /// Who or what requested it, if it was not promoted automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,

    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// The signed statement about it: a DSSE envelope as JSON. The two newest of an environment have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attestation: Option<String>,

    /// When it was found in the branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Time>,

    /// When it ended in the last of these targets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Time>,
}

/// How a promotion ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum PromotionOutcome {
    /// The targets became healthy with the release.
    #[default]
    Succeeded,
    /// A target failed with the release, or was late.
    Failed,
}

/// A target, as it was seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetStatus {
    /// Its name.
    pub name: String,

    /// Number of the release that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<u64>,

    /// The newest release that it ever had or was given. Only newer ones follow: what people take back stays taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest: Option<u64>,

    /// Whether its applications are healthy.
    #[serde(default)]
    pub ready: bool,

    /// Why not, or what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,

    /// The change that was made for it, until it is healthy with it or has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<TargetChange>,

    /// When the newest release that the pipeline promoted here began to enter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entered: Option<Time>,

    /// The release that was healthy here before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<u64>,

    /// The release that it goes back to by itself, until that is begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<Rollback>,

    /// Time of the last promotion by hand, or of the last failure that had it go back, that was carried out here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_asked: Option<Time>,
}

/// What a target goes back to, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rollback {
    /// Number of the release.
    pub release: u64,

    /// When the newer one failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

/// A change that was made for a target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetChange {
    /// Number of the release.
    pub release: u64,

    /// The commit that has it. Without one the change is being made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,

    /// The pull request that proposes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<String>,

    /// When a person promoted it by hand, or the failure of a newer one asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Time>,

    /// When it was begun; when it was found in the branch, once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
}

has_conditions!(PipelineStatus);
status_object!(Pipeline);

impl Pipeline {
    /// The applications by kind and name: those that were found, where the spec selects some by labels.
    #[must_use]
    pub fn apps(&self) -> &[AppReference] {
        let found = self.status.as_ref().map_or(&[][..], |status| &status.apps);
        match self.spec.apps.iter().any(|app| app.selector.is_some()) {
            true => found,
            false => &self.spec.apps,
        }
    }
}

impl PipelineSpec {
    /// The GitRepository by which an environment is changed, if one is named.
    #[must_use]
    pub fn repository_ref(&self, environment: &str) -> Option<&LocalObjectReference> {
        let environment = self.environments.iter().find(|one| one.name == environment);
        let own = environment.and_then(|one| one.repository_ref.as_ref());
        own.or(self.repository_ref.as_ref())
    }

    /// The environments that a release must have passed before it enters one.
    #[must_use]
    pub fn needs(&self, index: usize) -> Vec<&str> {
        let Some(environment) = self.environments.get(index) else {
            return Vec::new();
        };
        match &environment.needs {
            Some(needs) => needs.iter().map(String::as_str).collect(),
            None => {
                let before = index
                    .checked_sub(1)
                    .and_then(|before| self.environments.get(before));
                before.map(|before| before.name.as_str()).into_iter().collect()
            }
        }
    }
}
