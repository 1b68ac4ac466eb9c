//! `EnvironmentPolicy`: how many environments pull requests get, for how long, and what is said of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pipeline::any_object;
use crate::meta::{Condition, Duration, LocalObjectReference, StatusObject, has_conditions};

/// The ResourceSet that makes the environments, their limits, and what pull requests say of them.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "delivery.windlass.dev",
    version = "v1alpha1",
    kind = "EnvironmentPolicy",
    plural = "environmentpolicies",
    namespaced,
    category = "all",
    category = "windlass",
    status = "EnvironmentPolicyStatus",
    doc = "Environments of pull requests that a ResourceSet makes: how many, for how long, and their health as a comment and a commit status.",
    printcolumn = r#"{"name":"ResourceSet","type":"string","jsonPath":".spec.resourceSetRef.name"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentPolicySpec {
    /// A ResourceSet in the same namespace. What it makes for a pull request of its providers is the environment of that pull request.
    pub resource_set_ref: LocalObjectReference,

    /// Template of the address where an environment is found, between `<<` and `>>` as in the ResourceSet, such as
    /// `https://pr-<< inputs.id >>.preview.example.com`. What is no http or https URL is not shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub address: String,

    /// Largest number of environments at a time. Further pull requests wait for their turn, in the order of their numbers.
    /// Defaults to no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_environments: Option<u32>,

    /// How long an environment stays after the last push to its pull request, or after its turn has come. A new push, or its label
    /// removed and set again, brings it back. Defaults to as long as the pull request is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub expires_after: Option<Duration>,

    /// Whether a comment says where the environment is, and whether it is healthy. The Secret of the provider must allow it.
    /// Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub comment: Option<bool>,

    /// Whether a commit status says the same: pending, then success, or failure. Branch protection can require it. Defaults to true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub commit_status: Option<bool>,

    /// A test of environments that are ready. Its result is a commit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<EnvironmentTest>,

    /// How often the health of environments is looked at when nothing else asks for it. Defaults to 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Option<Duration>,

    /// How long an environment may take to become healthy before it is said to have failed. Defaults to 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// True to stop. No environment is held back or removed then, and nothing more is said.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// A Job or a CI system that tests an environment that is ready, once for each commit. After a restart of the controller it may be
/// asked again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.jobSpec) != has(self.webhook)",
    "message": "either jobSpec or webhook is required",
}]))]
pub struct EnvironmentTest {
    /// Template of the namespace of the Job, or of the ServiceAccount that the CI system uses, in the cluster of the environment, such
    /// as `shop-pr-<< inputs.id >>`.
    #[schemars(length(min = 1, max = 1024))]
    pub namespace: String,

    /// Spec of the Job, as in batch/v1, with templates as in the ResourceSet. It is made as the account of the ResourceSet. Its Pods
    /// reach the cluster as the ServiceAccount of their template, with a token that ends with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub job_spec: Option<serde_json::Map<String, serde_json::Value>>,

    /// A CI system that is given access to the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<EnvironmentWebhook>,

    /// How long the test may take. Defaults to 30m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub timeout: Option<Duration>,

    /// True to remove the environment when the test has ended. Another push brings it back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove_environment: bool,
}

/// A call of a CI system, with a kubeconfig whose token ends with the test.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentWebhook {
    /// Secret in the same namespace with `address`, the URL that is called, and `token`, by which the body is signed: the header
    /// X-Signature is `sha256=` and its HMAC. `ca.crt` is trusted if it is there.
    pub secret_ref: LocalObjectReference,

    /// Name of the ServiceAccount whose token is in the kubeconfig. The account of the ResourceSet must be allowed to create tokens for it,
    /// and to read the ConfigMap `kube-root-ca.crt` beside it.
    #[schemars(length(min = 1, max = 253))]
    pub service_account_name: String,

    /// Address of the API server, as the CI system reaches it.
    #[schemars(regex(pattern = r"^https://"), length(max = 2048))]
    pub server: String,

    /// Name of the commit status by which the CI system says how the test ended. Nothing else may set it.
    #[schemars(length(min = 1, max = 255))]
    pub commit_status: String,
}

/// Observed state of an EnvironmentPolicy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnvironmentPolicyStatus {
    /// The last generation that was reconciled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,

    /// Conditions: `Ready` is True when all is known and said, whatever the health of the environments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The environments, in the order of their providers and pull requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environments: Vec<RequestEnvironment>,
}

/// The environment of a pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestEnvironment {
    /// Name of the ResourceSetInputProvider that found the pull request.
    pub provider: String,

    /// Number of the pull request.
    pub number: u64,

    /// The commit of its branch.
    pub commit: String,

    /// How it is.
    pub state: RequestEnvironmentState,

    /// Why it is not ready, if it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,

    /// Where it is found.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,

    /// The test at this commit, once it has begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<EnvironmentTestResult>,

    /// When this commit was seen first, or when its turn came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// Digest of what was said last on the pull request.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
}

/// How an environment is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequestEnvironmentState {
    /// It is being made, or not healthy yet.
    #[default]
    Pending,
    /// All its objects are healthy.
    Ready,
    /// An object failed, or did not become healthy in time.
    Failed,
    /// There are as many as there may be: it is made when another goes.
    Waiting,
    /// Its time is over. It was removed.
    Expired,
    /// Its test has ended. It was removed.
    Tested,
}

/// The test of an environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentTestResult {
    /// How it stands.
    pub state: EnvironmentTestState,

    /// Why it failed, if it did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// How a test stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EnvironmentTestState {
    /// The test goes on.
    #[default]
    Running,
    /// It passed.
    Passed,
    /// It failed, took too long, or could not begin.
    Failed,
}

has_conditions!(EnvironmentPolicyStatus);

impl StatusObject for EnvironmentPolicy {
    fn suspended(&self) -> bool {
        self.spec.suspend
    }
}
