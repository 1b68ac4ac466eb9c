//! `ImageUpdateAutomation`: chosen images, written into a Git repository.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::ImageRef;
use crate::meta::{
    Condition, Duration, LocalObjectReference, filled, has_conditions, is_false, status_object,
};
use crate::source::GitRepositoryRef;

/// What is updated, where, and how it is committed.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "image.toolkit.fluxcd.io",
    version = "v1",
    kind = "ImageUpdateAutomation",
    plural = "imageupdateautomations",
    namespaced,
    status = "ImageUpdateAutomationStatus",
    shortname = "iua",
    shortname = "imgupd",
    shortname = "imgauto",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-images",
    doc = "An automation that commits the images chosen by policies to a Git repository.",
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#,
    printcolumn = r#"{"name":"Status","type":"string","jsonPath":".status.conditions[?(@.type==\"Ready\")].message"}"#,
    printcolumn = r#"{"name":"Last run","type":"string","jsonPath":".status.lastAutomationRunTime","priority":1}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#,
    derive = "Default",
    derive = "PartialEq",
    attr = "cfg_attr(all(), serde(default))"
)]
#[serde(rename_all = "camelCase")]
pub struct ImageUpdateAutomationSpec {
    /// The GitRepository that says where the repository is and with which credentials.
    pub source_ref: SourceReference,

    /// What is checked out, and how it is committed and pushed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<GitSpec>,

    /// Interval at which the repository is looked at.
    #[schemars(regex(pattern = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"))]
    pub interval: Duration,

    /// Which policies of the namespace are applied, by their labels. All by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_selector: Option<LabelSelector>,

    /// What is updated in the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {"strategy": "Setters"}))]
    pub update: Option<UpdateSpec>,

    /// Suspend this automation.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// Reference to a GitRepository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceReference {
    /// API version of the object.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,

    /// Kind of the object.
    #[schemars(extend("default" = "GitRepository"))]
    pub kind: SourceKind,

    /// Name of the object.
    pub name: String,

    /// Namespace of the object. Defaults to the namespace of the automation.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Kinds of sources that can be written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SourceKind {
    /// A Git repository.
    #[default]
    GitRepository,
}

/// What is checked out, and how it is committed and pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitSpec {
    /// What is checked out. Defaults to what the GitRepository refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkout: Option<GitCheckoutSpec>,

    /// How commits are made.
    pub commit: CommitSpec,

    /// Where commits are pushed. Defaults to the branch that is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub push: Option<PushSpec>,
}

/// What is checked out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitCheckoutSpec {
    /// Branch, tag or commit.
    #[serde(rename = "ref")]
    pub reference: GitRepositoryRef,
}

/// How commits are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommitSpec {
    /// Author of the commits.
    pub author: CommitUser,

    /// The key with which commits are signed. They are not signed by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<SigningKey>,

    /// Go template of the commit message, with the fields AutomationObject, Changed and Values.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub message_template: Option<String>,

    /// Values for the template, as Values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub message_template_values: BTreeMap<String, String>,
}

/// Author of a commit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommitUser {
    /// Name.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,

    /// Email address.
    pub email: String,
}

/// A key that signs commits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SigningKey {
    /// The Secret with the key, in the namespace of the automation: `git.asc` and `passphrase` for gpg, `identity` and
    /// `password` for ssh.
    pub secret_ref: LocalObjectReference,

    /// Type of the key. Defaults to gpg.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<SigningKeyType>,
}

/// Type of a key that signs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SigningKeyType {
    /// OpenPGP.
    #[default]
    Gpg,
    /// SSH.
    Ssh,
}

/// Where commits are pushed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PushSpec {
    /// Branch. It is created from what is checked out if it does not exist.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,

    /// Refspec of a second push, such as `refs/heads/main:refs/for/main`. Forced updates and deletions are not supported.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^$|^[^+:]"))]
    pub refspec: Option<String>,

    /// Push options that are sent to the server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}

/// What is updated in the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UpdateSpec {
    /// How places to update are found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = "Setters"))]
    pub strategy: Option<UpdateStrategy>,

    /// Directory or file to update. Defaults to the whole repository.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// How places to update are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum UpdateStrategy {
    /// By comments that name a policy.
    #[default]
    Setters,
}

/// Selects objects by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LabelSelector {
    /// Labels that an object must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,

    /// Requirements that its labels must meet, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

impl LabelSelector {
    /// The same as Kubernetes' own type.
    #[must_use]
    pub fn of_kubernetes(&self) -> meta::v1::LabelSelector {
        let requirement = |one: &LabelSelectorRequirement| meta::v1::LabelSelectorRequirement {
            key: one.key.clone(),
            operator: one.operator.clone(),
            values: Some(one.values.clone()).filter(|values| !values.is_empty()),
        };
        let expressions: Vec<_> = self.match_expressions.iter().map(requirement).collect();
        meta::v1::LabelSelector {
            match_labels: Some(self.match_labels.clone()),
            match_expressions: Some(expressions),
        }
    }
}

/// Requirement on a label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelSelectorRequirement {
    /// Name of the label.
    pub key: String,

    /// Relation to the values: In, NotIn, Exists or DoesNotExist.
    pub operator: LabelSelectorOperator,

    /// Values for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Vec<String>,
}

/// Relation of a label to values. Kubernetes does not restrict it in the schema.
pub type LabelSelectorOperator = String;

/// Observed state of the automation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageUpdateAutomationStatus {
    /// Time of the last run that came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_automation_run_time: Option<Time>,

    /// Last commit that was pushed.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_push_commit: Option<String>,

    /// Time of the last push.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_push_time: Option<Time>,

    /// Generation of the spec that was last reconciled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Images of the policies that were applied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub observed_policies: BTreeMap<String, ImageRef>,

    /// Commit of the repository to which they were applied.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub observed_source_revision: Option<String>,

    /// Conditions of this automation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,

    /// The value of the annotation reconcile.fluxcd.io/requestedAt that was handled most recently.
    #[serde(default, deserialize_with = "filled", skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

has_conditions!(ImageUpdateAutomationStatus);
status_object!(ImageUpdateAutomation);
