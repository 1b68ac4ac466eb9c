//! What someone did by hand: asked for a reconcile, suspended, resumed, restarted.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum End {
    /// It was begun, and nothing is known of its end: the process that did it is gone.
    Unknown,
    /// It was done.
    Done,
    /// The API server did not do it.
    Failed,
}

impl End {
    /// As in answers and in the store.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Done => "Done",
            Self::Failed => "Failed",
        }
    }

    /// Reads [`word`](Self::word).
    pub fn parse(text: &str) -> Option<Self> {
        let all = [Self::Unknown, Self::Done, Self::Failed];
        all.into_iter().find(|end| end.word() == text)
    }
}

/// An action on one object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Action {
    /// Another one for each.
    pub id: String,
    /// Cluster of the object.
    pub cluster: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What was done: `reconcile`, `suspend`, `resume` or `restart`.
    pub verb: String,
    /// Who did it.
    pub username: String,
    /// The groups that they were in.
    pub groups: Vec<String>,
    /// Why, in their words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub began: Timestamp,
    /// How it went.
    pub end: End,
    /// Why it failed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Action {
    /// Columns of a table.
    pub const COLUMNS: &[&str] = &[
        "began",
        "verb",
        "cluster",
        "kind",
        "namespace",
        "name",
        "username",
        "reason",
        "end",
        "message",
    ];
}
