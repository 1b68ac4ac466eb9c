//! The records that an action writes: what goes to the storage is remembered for the outcome.

use std::collections::BTreeMap;

use helm_release::{Record, Release};

use crate::{Error, Outcome, Storage};

/// Writes records, and remembers them.
pub(crate) struct Ledger<'a> {
    storage: &'a Storage,
    written: BTreeMap<i64, Release>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn open(storage: &'a Storage) -> Self {
        Self {
            storage,
            written: BTreeMap::new(),
        }
    }

    /// Stores a new revision. It is encoded first, so that one that is too large is known before anything is done.
    pub(crate) async fn create(&mut self, record: &Record) -> Result<(), Error> {
        self.storage.create(record).await?;
        self.note(record);
        Ok(())
    }

    /// Stores what became of a revision.
    pub(crate) async fn update(&mut self, record: &Record) -> Result<(), Error> {
        let updated = self.storage.update(record).await;
        // Whoever asks what the action did is told it, stored or not.
        self.note(record);
        Ok(updated?)
    }

    /// Stores what became of a revision, if it can be: there is something else to be told.
    pub(crate) async fn try_update(&mut self, record: &Record) {
        if let Err(error) = self.update(record).await {
            let release = &record.release;
            tracing::warn!(name = release.name, version = release.version, %error, "failed to record the release");
        }
    }

    /// Deletes a revision.
    pub(crate) async fn delete(&mut self, name: &str, version: i64) -> Result<(), Error> {
        Ok(self.storage.delete(name, version).await?)
    }

    /// Remembers a revision as it is now.
    pub(crate) fn note(&mut self, record: &Record) {
        self.written
            .insert(record.release.version, record.release.clone());
    }

    pub(crate) fn close(self, result: Result<(), Error>) -> Outcome {
        Outcome {
            written: self.written,
            result,
        }
    }
}
