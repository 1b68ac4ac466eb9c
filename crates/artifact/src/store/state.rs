//! Shared state of a store.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::broadcast;

use super::error::Result;
use super::files::Files;
use super::record::{ObjectKey, Record, Stored};
use super::references::References;

/// Number of changes that are kept for a slow subscriber. One that falls further behind gets an error.
pub(super) const CHANGES: usize = 64;

/// How long artifacts that are not current any more stay.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Since the next one was stored. Flux's --artifact-retention-ttl, by default a minute.
    pub retention_ttl: Duration,
    /// Artifacts of one object, the current one included. Flux's --artifact-retention-records, by default 2.
    pub retention_records: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            retention_ttl: Duration::from_secs(60),
            retention_records: 2,
        }
    }
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) files: Files,
    pub(super) options: Options,
    pub(super) state: Mutex<State>,
    pub(super) changes: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    /// Oldest first; the last is the current one. No object without a record.
    pub(super) objects: BTreeMap<ObjectKey, Vec<Stored>>,
    pub(super) references: References,
    pub(super) sequence: u64,
}

/// Change to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It has this current artifact now.
    Stored(Record),
    /// It has no artifact any more; this was the last.
    Removed(Record),
}

impl Inner {
    /// A panic of another holder leaves counts and files consistent enough to go on: what it was about to delete or
    /// count stays until the next start.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn send(&self, change: Option<Change>) {
        // No receiver is no failure.
        change.map(|change| self.changes.send(change).ok());
    }

    /// Deletes the file of a record that is out of `objects` already, and what only it held. The record goes first: a
    /// crash in between leaves content without a record, which the next start removes.
    pub(super) fn forget(&self, state: &mut State, record: &Record) -> Result<()> {
        self.files.remove_record(&record.path)?;
        state.references.release_archive(&record.digest, &self.files);
        state.references.release_directory(&record.tree, &self.files);
        Ok(())
    }
}
