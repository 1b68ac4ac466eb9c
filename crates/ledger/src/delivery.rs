//! A row of the ledger.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How a delivery went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
pub enum Outcome {
    /// What was asked for is there.
    Succeeded,
    /// It is not.
    Failed,
    /// Nothing is known of this time: more was delivered than the object still tells.
    Gap,
}

impl Outcome {
    /// As in answers and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Gap => "Gap",
        }
    }

    /// Reads [`word`](Self::word).
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Succeeded, Self::Failed, Self::Gap];
        all.into_iter().find(|outcome| outcome.word() == text)
    }
}

/// Why there was a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Trigger {
    /// It is the first that is known of the object.
    First,
    /// The source has another revision.
    Revision,
    /// Something else is built of the same revision: the object, a variable or a value has changed.
    Change,
    /// The same again, with another outcome.
    Retry,
}

impl Trigger {
    /// As in answers and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::First => "First",
            Self::Revision => "Revision",
            Self::Change => "Change",
            Self::Retry => "Retry",
        }
    }

    /// Reads [`word`](Self::word).
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::First, Self::Revision, Self::Change, Self::Retry];
        all.into_iter().find(|trigger| trigger.word() == text)
    }
}

/// One delivery of one object, or a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// Its own name.
    pub id: String,
    /// Cluster of the object.
    pub cluster: String,
    /// Kustomization, HelmRelease, or Pipeline, whose promotions are rows.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// How it went.
    pub outcome: Outcome,
    /// A word for it, as in the object's history.
    pub reason: String,
    /// What the object's controller said, while it was the newest.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Why there was one.
    pub trigger: Trigger,
    /// The source or chart: `GitRepository/namespace/name`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// What was delivered: `main@sha1:…`, or the version of a chart.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The commit behind an artifact, where it tells one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// Digest of what was built, or number of the Helm release.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// Who made the commit, where the source tells it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub author: String,
    /// First line of its message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub subject: String,
    /// When the commit was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub committed: Option<Timestamp>,
    /// When the source had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub seen: Option<Timestamp>,
    /// When its controller began.
    #[schema(value_type = String, format = DateTime)]
    pub began: Timestamp,
    /// When it had built, where it tells that and changed something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub built: Option<Timestamp>,
    /// When it had applied, before it waited for health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub applied: Option<Timestamp>,
    /// When it was there, or failed, for the first time.
    #[schema(value_type = String, format = DateTime)]
    pub ended: Timestamp,
    /// When that was so for the last time.
    #[schema(value_type = String, format = DateTime)]
    pub last: Timestamp,
    /// How often it was found so.
    pub attempts: i64,
    /// Which fields of which objects have changed, from what to what.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub changes: String,
    /// Which objects failed, as JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub causes: String,
    /// Of a promotion: the signed statement about it, a DSSE envelope as JSON.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub attestation: String,
    /// Labels of the object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Delivery {
    /// Columns of a table.
    pub const COLUMNS: &[&str] = &[
        "ended",
        "began",
        "cluster",
        "kind",
        "namespace",
        "name",
        "outcome",
        "reason",
        "trigger",
        "revision",
        "origin",
        "author",
        "subject",
        "committed",
        "seen",
        "built",
        "applied",
        "attempts",
        "source",
        "message",
    ];
}
