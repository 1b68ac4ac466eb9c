//! Artifacts of another store: the same record, archive and tree, so that either can be asked.

use std::io::Read;
use std::sync::Arc;

use jiff::Timestamp;

use super::error::{Error, Result, What};
use super::ingest::Ingest;
use super::open;
use super::record::{Record, RecordMeta, Stored};
use super::state::Inner;

/// A copy in the making. Dropped before it is finished, it leaves nothing behind. Methods block on the disk.
#[derive(Debug)]
pub struct Copy {
    inner: Arc<Inner>,
    ingest: Ingest,
    record: Record,
    verbatim: bool,
    /// Whether the folders and files of the tree are all here.
    is_complete: bool,
}

impl Copy {
    /// Fails if the record's path is not that of its object.
    pub(super) fn new(inner: Arc<Inner>, record: Record, verbatim: bool) -> Result<Self> {
        let filename = record.path.rsplit('/').next().unwrap_or_default().to_owned();
        let meta = RecordMeta {
            kind: record.kind.clone(),
            namespace: record.namespace.clone(),
            name: record.name.clone(),
            filename,
            ..RecordMeta::default()
        };
        if meta.path()? != record.path {
            return Err(Error::Name(record.path.chars().take(80).collect()));
        }
        let mut ingest = Ingest::new(Arc::clone(&inner));
        let is_complete = ingest.hold_directory(record.tree);
        Ok(Self {
            inner,
            ingest,
            record,
            verbatim,
            is_complete,
        })
    }

    /// Returns whether the archive is needed: another artifact may have the same.
    pub fn wants_archive(&mut self) -> bool {
        !self.ingest.hold_archive(self.record.digest, self.record.size)
    }

    /// Takes the archive, which must be that of the record.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is another one; else when the reader or the disk fails.
    pub fn set_archive(&mut self, reader: impl Read) -> Result<()> {
        let written = self.ingest.take_archive(reader)?;
        let is_right = written.digest == self.record.digest && written.size == self.record.size;
        is_right.then_some(()).ok_or(Error::Corrupt {
            what: What::Archive,
            digest: self.record.digest,
        })
    }

    /// Makes the tree of the archive, if it is there already. Returns whether it is the record's tree: that of an archive which was taken
    /// as it is may be another one, whose files must be added one by one.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn unpack(&mut self) -> Result<bool> {
        if self.verbatim && !self.is_complete {
            // An index of charts has no files.
            self.is_complete = self.ingest.finish_tree()? == self.record.tree;
        }
        if !self.is_complete {
            self.is_complete = open::rebuild(&self.inner, &mut self.ingest, &self.record)?;
        }
        self.begin_anew_unless_complete();
        Ok(self.is_complete)
    }

    /// Makes the tree of another archive, one that was written from it ([`super::Store::write_tree`]). Returns whether it is the record's
    /// tree.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn unpack_from(&mut self, archive: impl Read) -> Result<bool> {
        if !self.is_complete {
            self.is_complete = open::rebuild_from(archive, &mut self.ingest, &self.record)?;
        }
        self.begin_anew_unless_complete();
        Ok(self.is_complete)
    }

    fn begin_anew_unless_complete(&mut self) {
        if !self.is_complete {
            self.ingest.retain(|_, _| false);
        }
    }

    /// Adds a file of the tree.
    ///
    /// # Errors
    /// As [`Ingest::add_file`].
    pub fn add_file(&mut self, path: &str, executable: bool, reader: impl Read) -> Result<()> {
        self.ingest.add_file(path, executable, reader)
    }

    /// Adds a folder of the tree. Those of files need not be added.
    ///
    /// # Errors
    /// As [`Ingest::add_directory`].
    pub fn add_directory(&mut self, path: &str) -> Result<()> {
        self.ingest.add_directory(path)
    }

    /// Stores the artifact, which is the current one of its object from then on.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the tree is not that of the record; else when the disk fails. Nothing is stored then.
    pub fn finish(mut self) -> Result<Record> {
        if !self.is_complete && self.ingest.finish_tree()? != self.record.tree {
            return Err(Error::Corrupt {
                what: What::Directory,
                digest: self.record.tree,
            });
        }
        let sequence = self.inner.next_sequence();
        self.ingest.commit(Stored {
            sequence,
            stored_at: Timestamp::now(),
            verbatim: self.verbatim,
            record: self.record,
        })
    }
}
