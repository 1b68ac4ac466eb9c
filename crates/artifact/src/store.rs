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
//! [`Ingest`] holds all that it has added until it is finished or dropped. What no one holds is deleted at once.
//! Counting, renaming into place and deleting happen under one lock, which is why an ingest can rely on a blob
//! that it found. No file is read or synced under it, folders that die aside.

mod copy;
mod files;
mod ingest;
mod open;
mod record;
mod references;
mod retention;
mod temporary;
mod usage;

use std::{borrow::Cow, collections::BTreeSet, io, path::Path, sync::Arc};

use jiff::Timestamp;
use tokio::sync::broadcast;

use state::Inner;

pub use self::{
    copy::Copy,
    files::Content,
    ingest::Ingest,
    open::{Dropped, IntegrityReport},
    record::{ObjectKey, Record, RecordMeta},
    references::Amount,
    retention::Collected,
    usage::{Usage, Volume},
};
use self::{files::Kind, record::Stored};
use crate::{
    archive::{self, Written},
    digest::Digest,
    tree,
};

pub use error::{Error, Result, What};

pub use state::{Change, Options};

/// Flux's name for the newest archive of an object.
const LATEST: &str = "latest.tar.gz";
/// The kind whose archives are indexes, and Flux's name for the newest of them.
const INDEXES: (&str, &str) = ("helmrepository", "index.yaml");

/// The store. A clone is another handle to the same store.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

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

    /// Begins a copy of an artifact of another store; `verbatim` as [`Store::is_verbatim`] says of it there.
    ///
    /// # Errors
    /// When the record cannot be one of its object.
    pub fn copy(&self, record: Record, verbatim: bool) -> Result<Copy> {
        Copy::new(Arc::clone(&self.inner), record, verbatim)
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
        let all = state.objects.get(&ObjectKey::from_record(record));
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
        Usage::from_references(&self.inner.lock().references)
    }

    /// The volume that the store is on.
    ///
    /// # Errors
    /// When the file system does not say.
    pub fn volume(&self) -> io::Result<Volume> {
        Volume::from_folder(self.inner.files.root())
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

    /// Writes the reproducible archive of a tree, which need not be that of the artifact ([`Store::is_verbatim`]).
    ///
    /// # Errors
    /// When there is no such tree (any more), or the writer fails.
    pub fn write_tree(&self, root: &Digest, output: impl io::Write) -> Result<Written> {
        archive::write(output, root, &StoredContent(&self.inner.files)).map_err(Error::of_archive)
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

/// Trees and blobs on disk.
struct StoredContent<'a>(&'a files::Files);

impl archive::Content for StoredContent<'_> {
    type Error = Error;
    type Blob = Content;

    fn directory(&self, digest: &Digest) -> Result<Cow<'_, tree::Directory>> {
        self.0.directory(digest).map(Cow::Owned)
    }

    fn blob(&self, digest: &Digest) -> Result<Content> {
        self.0.content(Kind::Blob, digest, 0)
    }
}

#[cfg(test)]
mod copy_tests;
#[cfg(test)]
mod crash_tests;
mod error;
#[cfg(test)]
mod made_tests;
mod state;
#[cfg(test)]
mod tests;
