//! Interface of the loop to the world: Helm's storage, comparison with the cluster, actions, and progress
//! reports.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;

use api::helm::HelmReleaseStatus;
use api::kustomize::ResourceInventory;
use helm_release::Release;
use jiff::Timestamp;

use super::events::Event;
use super::next::Action;

/// The world around one release.
///
/// Whatever it reads and writes is about one name in one storage namespace. A process may be killed at any moment: what it
/// says was written must be.
pub trait Perform: Send {
    /// The newest record.
    fn last(&mut self) -> impl Future<Output = Result<Option<Release>, Failure>> + Send;

    /// The record of a revision.
    fn get(&mut self, version: i64) -> impl Future<Output = Result<Option<Release>, Failure>> + Send;

    /// Which objects differ from the manifest. An error only if nothing can be said; asked only where drift matters.
    fn drift(&mut self, release: &Release) -> impl Future<Output = Result<Vec<Drift>, Failure>> + Send;

    /// Does it, and waits for it.
    fn perform(&mut self, action: &Action) -> impl Future<Output = Performed> + Send;

    /// Writes the status while it goes on. What changes nothing need not be sent.
    fn save(&mut self, status: &HelmReleaseStatus) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Publishes an event, in the background.
    fn publish(&mut self, event: Event);

    /// Returns the current time.
    fn now(&self) -> Timestamp;

    /// Returns whether the run is to end: the process does, or a newer run waits.
    fn is_cancelled(&self) -> bool;
}

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

/// One object that differs from the manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Kind.
    pub kind: String,
    /// Namespace, if it has one.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
    /// How it differs.
    pub change: Change,
}

/// How an object differs from the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is not there.
    Removed,
    /// Fields differ.
    Changed {
        /// How many the manifest adds.
        additions: usize,
        /// How many it has other values for.
        changes: usize,
        /// How many it removes.
        removals: usize,
    },
    /// It is not compared, as an annotation asks.
    Excluded,
}

impl Change {
    /// Returns whether there is something to correct.
    pub fn is_drift(self) -> bool {
        self != Self::Excluded
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/", self.kind)?;
        if let Some(namespace) = &self.namespace {
            write!(formatter, "{namespace}/")?;
        }
        write!(formatter, "{} ", self.name)?;
        match self.change {
            Change::Removed => formatter.write_str("removed"),
            Change::Excluded => formatter.write_str("excluded"),
            Change::Changed {
                additions,
                changes,
                removals,
            } => write!(
                formatter,
                "changed ({additions} additions, {changes} changes, {removals} removals)"
            ),
        }
    }
}
