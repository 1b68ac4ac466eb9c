//! A release as data, with Helm's names.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::time::{Time, maybe};

/// One revision of a release. The fields stand in the order in which Helm writes them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Release {
    /// Name.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// How it came about, and what became of it.
    #[serde(deserialize_with = "or_default")]
    pub info: Info,
    /// The chart that was released.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart: Option<Chart>,
    /// Values that were given beside the chart's own.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Rendered objects, except hooks.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// The hooks, and how they went.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
    /// Which revision, from 1.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: i64,
    /// Where its objects are, unless they say otherwise.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// How its objects were applied; Helm 3, which has one way only, leaves it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apply_method: Option<ApplyMethod>,
}

/// How objects are applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplyMethod {
    /// Three-way patches made by the client.
    #[serde(rename = "csa")]
    ClientSide,
    /// Server-side apply.
    #[serde(rename = "ssa")]
    ServerSide,
}

/// How a release came about, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Info {
    /// When the first revision was deployed.
    #[serde(deserialize_with = "maybe", skip_serializing_if = "Option::is_none")]
    pub first_deployed: Option<Time>,
    /// When this one was.
    #[serde(deserialize_with = "maybe", skip_serializing_if = "Option::is_none")]
    pub last_deployed: Option<Time>,
    /// When it was uninstalled.
    #[serde(deserialize_with = "maybe", skip_serializing_if = "Option::is_none")]
    pub deleted: Option<Time>,
    /// A line for people.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Its status.
    #[serde(skip_serializing_if = "Status::is_empty")]
    pub status: Status,
    /// Which revision it went back to; 0 if it is no rollback.
    #[serde(skip_serializing_if = "is_zero")]
    pub rollback_revision: i64,
    /// NOTES.txt, rendered.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub notes: String,
}

/// Status of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are Helm's
pub enum Status {
    #[default]
    Unset,
    Unknown,
    Deployed,
    Uninstalled,
    Superseded,
    Failed,
    Uninstalling,
    PendingInstall,
    PendingUpgrade,
    PendingRollback,
    /// Status of another version of Helm.
    Other(String),
}

const STATUSES: [(Status, &str); 10] = [
    (Status::Unset, ""),
    (Status::Unknown, "unknown"),
    (Status::Deployed, "deployed"),
    (Status::Uninstalled, "uninstalled"),
    (Status::Superseded, "superseded"),
    (Status::Failed, "failed"),
    (Status::Uninstalling, "uninstalling"),
    (Status::PendingInstall, "pending-install"),
    (Status::PendingUpgrade, "pending-upgrade"),
    (Status::PendingRollback, "pending-rollback"),
];

impl Status {
    /// Reads Helm's word.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let known = STATUSES.into_iter().find(|(_, word)| *word == text);
        known.map_or_else(|| Self::Other(text.to_owned()), |(status, _)| status)
    }

    /// Helm's word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        if let Self::Other(text) = self {
            return text;
        }
        let known = STATUSES.iter().find(|(status, _)| status == self);
        known.map_or("", |(_, word)| word)
    }

    /// Returns whether an action was under way when it was written: a crash leaves it so.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        matches!(
            self,
            Self::PendingInstall | Self::PendingUpgrade | Self::PendingRollback
        )
    }

    fn is_empty(&self) -> bool {
        self.as_str().is_empty()
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        Ok(Self::from_text(text.as_deref().unwrap_or_default()))
    }
}

/// A hook of a release, and how it went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hook {
    /// `metadata.name`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its kind.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The template that it came from.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// As rendered.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "String::is_empty")]
    pub manifest: String,
    /// When it runs: `pre-install`, …, `test`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// How it went the last time.
    #[serde(deserialize_with = "or_default")]
    pub last_run: HookRun,
    /// Hooks of an event run in the order of their weights.
    #[serde(skip_serializing_if = "is_zero")]
    pub weight: i64,
    /// When it is deleted.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub delete_policies: Vec<String>,
    /// When its output is logged.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub output_log_policies: Vec<String>,
}

impl Hook {
    /// Returns whether it runs at this event.
    #[must_use]
    pub fn runs_at(&self, event: &str) -> bool {
        self.events.iter().any(|own| own == event)
    }
}

/// How a hook went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HookRun {
    /// When it began.
    #[serde(deserialize_with = "maybe", skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,
    /// When it ended.
    #[serde(deserialize_with = "maybe", skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Time>,
    /// How it ended.
    pub phase: HookPhase,
}

/// How a hook ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HookPhase {
    /// It has not run.
    #[default]
    #[serde(rename = "")]
    Never,
    /// No one saw its end.
    Unknown,
    /// It runs.
    Running,
    /// It did what it should.
    Succeeded,
    /// It did not.
    Failed,
}

/// Go's decoder takes null for nothing.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}
