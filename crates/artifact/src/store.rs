//! The content-addressed store: what a source controller fetched, on disk, ready to be served.
//!
//! In come the files of one source at one revision ([`Store::ingest`]); out go archives, folders and blobs by
//! digest, records by object, and a stream of changes. It does not fetch, decide when to collect garbage, or speak
//! a protocol.
//!
//! # Layout
//! ```text
//! <root>/
//!   archives/<hex of the digest>.tar.gz    one per distinct content
//!   blobs/<hex>                            the bytes of one file, shared by all artifacts
//!   directories/<hex>                      the canonical text of one folder, shared likewise
//!   records/<hex>.json                     one per artifact, named by the SHA-256 of its path
//!   temporary/                             files being written; emptied when the store is opened
//! ```
//! HTTP paths (`gitrepository/<namespace>/<name>/<file>`) are names in records, not in the file system, so no request
//! can reach another file.
//!
//! # Crashes
//! Archive and record are what counts: each is written to `temporary/`, synced, renamed, and its folder synced, the
//! archive before the record. Blobs and folders can be made again from the archive, so they are renamed into place
//! without a sync: two synced files per artifact, however many files it has. [`Store::open`] verifies the digest of
//! everything that a record refers to; it rebuilds blobs and folders that are missing or torn, drops a record
//! whose archive is gone (the source is fetched again), and removes what no record refers to.
//!
//! # Sharing and garbage
//! Content is counted (module `references`): a record holds its archive and root folder, a folder holds its entries, and an
//! [`Ingest`] holds all that it has added until it is finished or dropped. What nobody holds is deleted at once.
//! Counting, renaming into place and deleting happen under one lock, which is why an ingest can rely on a blob
//! that it found. No file is read or synced under it, folders that die aside.

mod files;
mod ingest;
mod open;
mod record;
mod references;
mod retention;
mod temporary;
mod usage;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::sync::broadcast;

pub use self::{
    files::Content,
    ingest::Ingest,
    open::{Dropped, IntegrityReport},
    record::{ObjectKey, Record, RecordMeta},
    references::Amount,
    retention::Collected,
    usage::{Usage, Volume},
};
use self::{
    files::{Files, Kind},
    record::Stored,
    references::References,
};
use crate::{archive, digest::Digest, tree};

/// Changes that a subscriber may be behind before it is told that it lost some.
const CHANGES: usize = 64;
/// Flux's name for the newest archive of an object.
const LATEST: &str = "latest.tar.gz";
/// The kind whose archives are indexes, and Flux's name for the newest of them.
const INDEXES: (&str, &str) = ("helmrepository", "index.yaml");

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

/// The store. A clone is another handle to the same store.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    files: Files,
    options: Options,
    state: Mutex<State>,
    changes: broadcast::Sender<Change>,
}

#[derive(Debug, Default)]
struct State {
    /// Oldest first; the last is the current one. No object without a record.
    objects: BTreeMap<ObjectKey, Vec<Stored>>,
    references: References,
    sequence: u64,
}

/// Change to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It has this current artifact now.
    Stored(Record),
    /// It has no artifact any more; this was the last.
    Removed(Record),
}

/// Object that a digest names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The tar.gz of an artifact.
    Archive,
    /// The bytes of a file.
    Blob,
    /// The canonical text of a folder.
    Directory,
}

/// An operation of the store that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store has nothing of this digest (any more).
    #[error("failed to find {what} {digest}")]
    NotFound {
        /// The object that was asked for.
        what: What,
        /// Its digest.
        digest: Digest,
    },
    /// The bytes on disk are not what their name says.
    #[error("failed to verify {what} {digest}")]
    Corrupt {
        /// The object that was read.
        what: What,
        /// The digest that it should have.
        digest: Digest,
    },
    /// The offset lies behind the end of the content.
    #[error("failed to read {what} {digest} from offset {offset}: it has {size} bytes")]
    Offset {
        /// The object that was asked for.
        what: What,
        /// Its digest.
        digest: Digest,
        /// The offset that was asked for.
        offset: u64,
        /// Bytes that there are.
        size: u64,
    },
    /// The volume has no room. Nothing was stored, and what was there before is as it was.
    #[error("failed to {operation} in the artifact store: its volume is full, enlarge it or remove sources")]
    Full {
        /// The operation that failed.
        operation: &'static str,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file system refused.
    #[error("failed to {operation} in the artifact store")]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The reader of a file that was to be added failed.
    #[error("failed to read {path:?} of the source")]
    ReadSource {
        /// Path in the tree.
        path: String,
        /// Error of the reader.
        source: io::Error,
    },
    /// The caller cancelled the ingest, see [`Ingest::until`].
    #[error("failed to finish the artifact: cancelled")]
    Stopped,
    /// A file cannot stand in a tree.
    #[error("failed to add a file to the artifact")]
    AddFile(#[source] tree::BuildError),
    /// Kind, namespace, name or file name of an artifact cannot be part of a path.
    #[error("failed to name the artifact: {0:?} cannot be part of its path")]
    Name(String),
    /// The archive could not be written.
    #[error("failed to write the archive of the artifact")]
    WriteArchive(#[source] archive::WriteError),
    /// The record could not be turned to JSON.
    #[error("failed to encode the record of the artifact")]
    EncodeRecord(#[source] serde_json::Error),
}

/// Result of the store's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Store {
    /// Opens or creates the store in a folder and verifies everything that is in it.
    ///
    /// Takes as long as reading it all. Two open stores in one folder would delete each other's files: the caller
    /// sees to it that there is one (leader election, one volume per replica).
    ///
    /// # Errors
    /// When the folder cannot be read or written. Damaged content is no error, it is in the report.
    pub fn open(root: &Path, options: Options) -> Result<(Self, IntegrityReport)> {
        open::open(root, options)
    }

    /// Begins a new artifact.
    #[must_use]
    pub fn ingest(&self) -> Ingest {
        Ingest::new(self.inner.clone())
    }

    /// The newest artifact of an object. The kind is compared without regard to case.
    #[must_use]
    pub fn current(&self, kind: &str, namespace: &str, name: &str) -> Option<Record> {
        let state = self.inner.lock();
        let stored = state
            .objects
            .get(&ObjectKey::new(kind, namespace, name))?
            .last()?;
        Some(stored.record.clone())
    }

    /// The artifact of an object whose archive has this digest, if the object has it, or had it until a moment ago.
    #[must_use]
    pub fn held(&self, object: &ObjectKey, digest: &Digest) -> Option<Record> {
        let state = self.inner.lock();
        let mut stored = state.objects.get(object)?.iter().rev();
        stored
            .find(|stored| stored.record.digest == *digest)
            .map(|stored| stored.record.clone())
    }

    /// The objects that have, or had until a moment ago, an artifact whose archive has this digest.
    #[must_use]
    pub fn holders_of_archive(&self, digest: &Digest) -> BTreeSet<ObjectKey> {
        self.holders(|record| record.digest == *digest)
    }

    /// The objects that have, or had until a moment ago, an artifact whose tree has this root.
    #[must_use]
    pub fn holders_of_tree(&self, root: &Digest) -> BTreeSet<ObjectKey> {
        self.holders(|record| record.tree == *root)
    }

    fn holders(&self, is_meant: impl Fn(&Record) -> bool) -> BTreeSet<ObjectKey> {
        let state = self.inner.lock();
        let holds = |stored: &[Stored]| stored.iter().any(|stored| is_meant(&stored.record));
        let holders = state.objects.iter().filter(|(_, stored)| holds(stored));
        holders.map(|(key, _)| key.clone()).collect()
    }

    /// The artifact of a path as in status.artifact.path. `latest.tar.gz` in an object's folder is its current one, and
    /// so is `index.yaml` in that of a HelmRepository.
    #[must_use]
    pub fn by_path(&self, path: &str) -> Option<Record> {
        let state = self.inner.lock();
        let mut parts = path.splitn(4, '/');
        let (kind, namespace, name, file) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let key = ObjectKey::new(kind, namespace, name);
        if key.kind != kind {
            return None;
        }
        let stored = state.objects.get(&key)?;
        let exact = stored.iter().rev().find(|stored| stored.record.path == path);
        exact
            .or_else(|| {
                stored
                    .last()
                    .filter(|_| file == LATEST || (kind, file) == INDEXES)
            })
            .map(|stored| stored.record.clone())
    }

    /// Returns whether the archive of this record was taken as it is ([`Ingest::set_archive`]), so that its content need not be
    /// that of the tree. True if there is no such record any more.
    #[must_use]
    pub fn is_verbatim(&self, record: &Record) -> bool {
        let state = self.inner.lock();
        let all = state.objects.get(&ObjectKey::of(record));
        let mut all = all.into_iter().flatten();
        all.find(|stored| stored.record == *record)
            .is_none_or(|stored| stored.verbatim)
    }

    /// All artifacts, those that are not current any more included; by object, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<Record> {
        self.inner
            .lock()
            .objects
            .values()
            .flatten()
            .map(|stored| stored.record.clone())
            .collect()
    }

    /// The current artifact of every object.
    #[must_use]
    pub fn current_records(&self) -> Vec<Record> {
        let state = self.inner.lock();
        state
            .objects
            .values()
            .filter_map(|stored| stored.last())
            .map(|stored| stored.record.clone())
            .collect()
    }

    /// Calls `tell` with every artifact, and with whether it is the current one of its object. It must be quick: the store
    /// waits for it.
    pub fn each_record(&self, mut tell: impl FnMut(&Record, bool)) {
        for all in self.inner.lock().objects.values() {
            for (index, stored) in all.iter().enumerate() {
                tell(&stored.record, index + 1 == all.len());
            }
        }
    }

    /// Disk usage of the store.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::of(&self.inner.lock().references)
    }

    /// The volume that the store is on.
    ///
    /// # Errors
    /// When the file system does not say.
    pub fn volume(&self) -> io::Result<Volume> {
        Volume::of(self.inner.files.root())
    }

    /// The bytes of a file from an offset on. They are not verified again: who reads them does that.
    ///
    /// # Errors
    /// When there is no such blob, or the offset lies behind its end.
    pub fn read_blob(&self, digest: &Digest, offset: u64) -> Result<Content> {
        self.inner.files.content(Kind::Blob, digest, offset)
    }

    /// The archive of this digest.
    ///
    /// # Errors
    /// When there is no such archive.
    pub fn open_archive(&self, digest: &Digest) -> Result<Content> {
        self.inner.files.content(Kind::Archive, digest, 0)
    }

    /// The archive of this digest from an offset on.
    ///
    /// # Errors
    /// When there is no such archive, or the offset lies behind its end.
    pub fn read_archive(&self, digest: &Digest, offset: u64) -> Result<Content> {
        self.inner.files.content(Kind::Archive, digest, offset)
    }

    /// The folder of this digest, verified.
    ///
    /// # Errors
    /// When there is no such folder, or its text is damaged.
    pub fn directory(&self, digest: &Digest) -> Result<tree::Directory> {
        self.inner.files.directory(digest)
    }

    /// Forgets all artifacts of an object, and returns how many there were.
    ///
    /// # Errors
    /// When a record cannot be deleted.
    pub fn remove_object(&self, kind: &str, namespace: &str, name: &str) -> Result<usize> {
        let mut state = self.inner.lock();
        let key = ObjectKey::new(kind, namespace, name);
        let Some(stored) = state.objects.remove(&key) else {
            return Ok(0);
        };
        let last = stored.last().map(|stored| stored.record.clone());
        let mut failure = None;
        for stored in &stored {
            if let Err(error) = self.inner.forget(&mut state, &stored.record) {
                failure = Some(error);
            }
        }
        // Sent under the lock, so that subscribers see changes in the order in which they happened.
        self.inner.send(last.map(Change::Removed));
        failure.map_or(Ok(stored.len()), Err)
    }

    /// Removes artifacts that are not current and either older than the retention time or too many. The current one
    /// of an object always stays.
    ///
    /// Age counts from when the next artifact was stored. (Flux counts from when the artifact itself was stored; but
    /// it collects only at the start of the next reconcile, and we may do so at once.)
    ///
    /// # Errors
    /// When a record cannot be deleted; the others are still treated.
    pub fn collect_garbage(&self, now: Timestamp) -> Result<Collected> {
        retention::collect(&self.inner, now)
    }

    /// The changes from now on. A receiver that is too slow gets `Lagged` and looks at [`Store::current_records`].
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.inner.changes.subscribe()
    }
}

impl Inner {
    /// A panic of another holder leaves counts and files consistent enough to go on: what it was about to delete or
    /// count stays until the next start.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, change: Option<Change>) {
        // No receiver is no failure.
        change.map(|change| self.changes.send(change).ok());
    }

    /// Deletes the file of a record that is out of `objects` already, and what only it held. The record goes first: a
    /// crash in between leaves content without a record, which the next start removes.
    fn forget(&self, state: &mut State, record: &Record) -> Result<()> {
        self.files.remove_record(&record.path)?;
        state.references.release_archive(&record.digest, &self.files);
        state.references.release_directory(&record.tree, &self.files);
        Ok(())
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Archive => "archive",
            Self::Blob => "blob",
            Self::Directory => "folder",
        })
    }
}

impl Error {
    /// A full disk is one, whoever meets it.
    fn of_archive(error: archive::WriteError) -> Self {
        match error {
            archive::WriteError::Write { source, .. } if is_full(&source) => {
                Self::io("write an archive")(source)
            }
            error => Self::WriteArchive(error),
        }
    }

    fn io(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if is_full(&source) {
                Self::Full { operation, source }
            } else {
                Self::Io { operation, source }
            }
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod made_tests;
#[cfg(test)]
mod tests;
