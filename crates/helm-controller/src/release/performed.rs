//! Result of an action, and its failures.

use std::collections::BTreeMap;
use std::fmt;

use api::kustomize::ResourceInventory;
use helm_release::Release;

/// How an action went.
#[derive(Debug)]
pub struct Performed {
    /// The records that were written, newest state, by revision. Empty if the storage was not touched. Those that were only
    /// deleted need not be among them.
    pub written: BTreeMap<i64, Release>,
    /// How it ended.
    pub result: Result<(), Failure>,
    /// The last lines that Helm logged, one below the other.
    pub log: String,
    /// The objects of the release, if the action changed them.
    pub inventory: Option<ResourceInventory>,
    /// Corrected drift, one line each.
    pub corrected: Vec<String>,
}

impl Performed {
    /// Nothing was written, and this is why.
    pub fn failed(failure: Failure) -> Self {
        Self {
            result: Err(failure),
            ..Self::default()
        }
    }
}

impl Default for Performed {
    fn default() -> Self {
        Self {
            written: BTreeMap::new(),
            result: Ok(()),
            log: String::new(),
            inventory: None,
            corrected: Vec::new(),
        }
    }
}

/// Why something could not be done, in words for a condition: Helm's where there are some, with causes, and no secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Consequence of the failure.
    pub kind: FailureKind,
    /// The words.
    pub message: String,
}

/// Consequence of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It failed.
    Failed,
    /// There is no such release in the storage.
    NotFound,
    /// The release was uninstalled before, and its records are kept.
    AlreadyUninstalled,
    /// A rule of the cluster refuses what was rendered. Nothing was done.
    Refused,
    /// It was broken off because the run is to end.
    Cancelled,
}

impl Failure {
    /// Something failed.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Failed,
            message: message.into(),
        }
    }

    /// Says before the words what was being done.
    #[must_use]
    pub(super) fn context(self, context: &str) -> Self {
        Self {
            message: format!("{context}: {}", self.message),
            ..self
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.message.trim())
    }
}

impl std::error::Error for Failure {}
