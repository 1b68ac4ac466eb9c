//! Adding one artifact: files in, a record out.
//!
//! Blobs go to disk as they come. An ingest holds every blob that it added or found, so garbage collection leaves them
//! alone until it is finished or dropped; a dropped ingest leaves nothing behind.

use std::{
    borrow::Cow,
    io::{self, BufWriter, Read, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::{Timestamp, Unit};

use super::error::{Error, Result};
use super::files::{Content, Files, Kind};
use super::record::Stored;
use super::state::{Change, Inner, State};
use super::temporary::Temporary;
use super::{ObjectKey, Record, RecordMeta};
use crate::{
    archive::{self, Written},
    digest::{Digest, Hasher},
    tree::{self, Directory, Tree, clean_path},
};

/// Files up to this size are compared with what is there before anything is written.
const SMALL: usize = 64 * 1024;

/// An artifact in the making. Methods block on the disk: call them where blocking is allowed.
#[derive(Debug)]
pub struct Ingest {
    inner: Arc<Inner>,
    files: tree::Builder,
    archive: Option<Written>,
    held: Held,
    stopped: Arc<AtomicBool>,
}

/// Space that an ingest has reserved, to release at the end.
#[derive(Debug, Default)]
struct Held {
    blobs: Vec<Digest>,
    directories: Vec<Digest>,
    archives: Vec<Digest>,
}

impl Ingest {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            files: tree::Builder::new(),
            archive: None,
            held: Held::default(),
            stopped: Arc::default(),
        }
    }

    /// Cancels the ingest once the flag is true: all methods then fail with [`Error::Stopped`].
    #[must_use]
    pub fn until(mut self, stopped: Arc<AtomicBool>) -> Self {
        self.stopped = stopped;
        self
    }

    /// Adds a file; a later file of the same path replaces it.
    ///
    /// # Errors
    /// When the path is refused, the reader fails, or the disk does.
    pub fn add_file(&mut self, path: &str, executable: bool, mut reader: impl Read) -> Result<()> {
        let refused = |error: tree::PathError| Error::AddFile(error.into());
        clean_path(path).map_err(refused)?;
        let (digest, size) = self.add_blob(path, &mut reader)?;
        self.held.blobs.push(digest);
        self.files
            .file(path, executable, digest, size)
            .map(drop)
            .map_err(Error::AddFile)
    }

    /// Puts a file's bytes into the store and holds them, without a place in the artifact yet: for content that may still
    /// be replaced or left out. Returns their digest and number, for [`Ingest::add_stored`].
    ///
    /// # Errors
    /// When the reader fails, or the disk does. The path is for the message only.
    pub fn hold_file(&mut self, path: &str, mut reader: impl Read) -> Result<(Digest, u64)> {
        let (digest, size) = self.add_blob(path, &mut reader)?;
        self.held.blobs.push(digest);
        Ok((digest, size))
    }

    /// Adds a file whose bytes are in the store, such as one of another artifact; nothing is copied.
    ///
    /// # Errors
    /// When the store has no such blob (any more), or the path is refused.
    pub fn add_stored(&mut self, path: &str, executable: bool, digest: Digest, size: u64) -> Result<()> {
        if !self.inner.lock().references.hold_blob(&digest) {
            let what = super::error::What::Blob;
            return Err(Error::NotFound { what, digest });
        }
        self.held.blobs.push(digest);
        self.files
            .file(path, executable, digest, size)
            .map(drop)
            .map_err(Error::AddFile)
    }

    /// Adds a folder, for one that has no files. Those of files need not be added.
    ///
    /// # Errors
    /// When the path is refused.
    pub fn add_directory(&mut self, path: &str) -> Result<()> {
        self.files.folder(path).map_err(Error::AddFile)
    }

    /// Leaves out what the predicate refuses, see [`tree::Builder::retain`]. For sources that come as a stream, whose
    /// ignore files are known only at the end.
    pub fn retain(&mut self, keep: impl FnMut(&str, bool) -> bool) {
        self.files.retain(keep);
    }

    /// Number of files so far.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.files.file_count()
    }

    /// Takes these bytes for the artifact's archive, as they are, instead of making one from the files. For artifacts
    /// that are a file of the source itself (a chart, a layer that is copied).
    ///
    /// # Errors
    /// When the reader or the disk fails.
    pub fn set_archive(&mut self, reader: impl Read) -> Result<()> {
        self.take_archive(reader).map(drop)
    }

    /// As [`Ingest::set_archive`]; returns what was taken.
    pub(super) fn take_archive(&mut self, mut reader: impl Read) -> Result<Written> {
        let mut file = self.inner.files.temporary()?;
        let (digest, size) = copy(&mut reader, &mut file, "the archive", &self.stopped)?;
        self.place_archive(file, digest, size)?;
        let written = Written { digest, size };
        self.archive = Some(written);
        Ok(written)
    }

    /// Holds an archive of this digest and size; false if the store has none.
    pub(super) fn hold_archive(&mut self, digest: Digest, size: u64) -> bool {
        let mut state = self.inner.lock();
        let is_there = state.references.hold_archive(&digest);
        drop(state);
        if is_there {
            self.held.archives.push(digest);
            self.archive = Some(Written { digest, size });
        }
        is_there
    }

    /// Holds a folder with all that is below it; false if the store does not have it.
    pub(super) fn hold_directory(&mut self, digest: Digest) -> bool {
        let is_there = self.inner.lock().references.hold_directory(&digest);
        if is_there {
            self.held.directories.push(digest);
        }
        is_there
    }

    /// Stores the artifact, which is the current one of its object from then on. An artifact of the same object with
    /// the same file name is replaced.
    ///
    /// # Errors
    /// When a part of the path is refused, or the disk fails. Nothing is stored then.
    pub fn finish(self, meta: RecordMeta) -> Result<Record> {
        let revision = meta.revision.clone();
        self.finish_named(meta, |_| revision)
    }

    /// As [`Ingest::finish`], for an artifact whose revision is made of its archive's digest.
    ///
    /// # Errors
    /// As [`Ingest::finish`].
    pub fn finish_named(
        mut self,
        meta: RecordMeta,
        revision: impl FnOnce(&Digest) -> String,
    ) -> Result<Record> {
        let path = meta.path()?;
        let (tree, order) = self.files.finish();
        self.add_directories(&tree, &order)?;
        let verbatim = self.archive.is_some();
        let archive = match self.archive {
            Some(archive) => archive,
            None => self.make_archive(&tree)?,
        };
        let (sequence, now) = (self.inner.next_sequence(), Timestamp::now());
        let record = Record {
            kind: meta.kind,
            namespace: meta.namespace,
            name: meta.name,
            revision: revision(&archive.digest),
            digest: archive.digest,
            size: archive.size,
            tree: tree.root(),
            path,
            last_update_time: whole_seconds(now),
            metadata: meta.metadata,
        };
        self.commit(Stored {
            sequence,
            stored_at: now,
            verbatim,
            record,
        })
    }

    /// Writes the folders and holds them. Returns the root's digest. For [`super::open`], which has its record already.
    pub(super) fn finish_tree(&mut self) -> Result<Digest> {
        let (tree, order) = self.files.finish();
        self.add_directories(&tree, &order)?;
        Ok(tree.root())
    }

    fn add_blob(&mut self, path: &str, reader: &mut impl Read) -> Result<(Digest, u64)> {
        let mut start = Vec::new();
        let source = |source| Error::ReadSource {
            path: path.to_owned(),
            source,
        };
        check(&self.stopped)?;
        reader
            .by_ref()
            .take(SMALL as u64)
            .read_to_end(&mut start)
            .map_err(source)?;
        if start.len() < SMALL {
            let digest = Digest::from_content(&start);
            if self.inner.lock().references.hold_blob(&digest) {
                return Ok((digest, start.len() as u64));
            }
        }
        let mut file = self.inner.files.temporary()?;
        let (digest, size) = copy(
            &mut start.as_slice().chain(reader),
            &mut file,
            path,
            &self.stopped,
        )?;
        let mut state = self.inner.lock();
        if !state.references.hold_blob(&digest) {
            self.inner.files.place(file, Kind::Blob, &digest)?;
            state.references.insert_blob(digest, size);
        }
        Ok((digest, size))
    }

    /// Children come before their parents, so a folder's entries are always in the store before it.
    fn add_directories(&mut self, tree: &Tree, order: &[Digest]) -> Result<()> {
        for digest in order {
            let directory = tree
                .directory(digest)
                .expect("a builder's order names the folders of its tree");
            self.add_directory_text(digest, directory)?;
            self.held.directories.push(*digest);
        }
        Ok(())
    }

    fn add_directory_text(&self, digest: &Digest, directory: &Directory) -> Result<()> {
        if self.inner.lock().references.hold_directory(digest) {
            return Ok(());
        }
        let mut file = self.inner.files.temporary()?;
        file.write_all(directory.canonical_text().as_bytes())
            .map_err(Error::io("write a folder"))?;
        let mut state = self.inner.lock();
        if state.references.hold_directory(digest) {
            return Ok(());
        }
        self.inner.files.place(file, Kind::Directory, digest)?;
        // Only this folder is loaded: those below it were added before.
        state
            .references
            .adopt_directory(digest, &mut |_| Ok(directory.clone()))
    }

    /// The archive of an artifact with the same tree, or a new one.
    fn make_archive(&mut self, tree: &Tree) -> Result<Written> {
        if let Some(archive) = self.inner.lock().hold_archive_of(tree.root()) {
            self.held.archives.push(archive.digest);
            return Ok(archive);
        }
        let file = self.inner.files.temporary()?;
        let mut output = BufWriter::with_capacity(SMALL, file);
        let content = TreeContent {
            tree,
            files: &self.inner.files,
            stopped: &self.stopped,
        };
        let written = archive::write(&mut output, &tree.root(), &content);
        check(&self.stopped)?;
        let written = written.map_err(Error::of_archive)?;
        let file = output
            .into_inner()
            .map_err(|error| Error::io("write an archive")(error.into_error()))?;
        self.place_archive(file, written.digest, written.size)?;
        Ok(written)
    }

    fn place_archive(&mut self, file: Temporary, digest: Digest, size: u64) -> Result<()> {
        file.sync().map_err(Error::io("sync an archive"))?;
        {
            let mut state = self.inner.lock();
            if !state.references.hold_archive(&digest) {
                self.inner.files.place(file, Kind::Archive, &digest)?;
                state.references.insert_archive(digest, size);
            }
        }
        self.held.archives.push(digest);
        self.inner.files.sync(Kind::Archive)
    }

    /// The point of no return is the rename of the record.
    pub(super) fn commit(self, stored: Stored) -> Result<Record> {
        let json = serde_json::to_vec_pretty(&stored).map_err(Error::EncodeRecord)?;
        let file = self.inner.files.write_record(&json)?;
        let record = stored.record.clone();
        self.inner.lock().insert(&self.inner, stored, file)?;
        self.inner.files.sync_records()?;
        Ok(record)
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        for digest in self.held.directories.iter().rev() {
            state.references.release_directory(digest, &self.inner.files);
        }
        for digest in &self.held.blobs {
            state.references.release_blob(digest, &self.inner.files);
        }
        for digest in &self.held.archives {
            state.references.release_archive(digest, &self.inner.files);
        }
    }
}

impl Inner {
    pub(super) fn next_sequence(&self) -> u64 {
        let mut state = self.lock();
        state.sequence += 1;
        state.sequence
    }
}

impl State {
    /// Holds the archive of a record with this tree. One that was taken as it is does not count: its bytes are not what
    /// the tree would give.
    fn hold_archive_of(&mut self, tree: Digest) -> Option<Written> {
        let mut all = self.objects.values().flatten();
        let record = &all
            .find(|stored| stored.record.tree == tree && !stored.verbatim)?
            .record;
        let archive = Written {
            digest: record.digest,
            size: record.size,
        };
        self.references.hold_archive(&archive.digest).then_some(archive)
    }

    /// Puts the record in its place on disk and here.
    fn insert(&mut self, inner: &Inner, stored: Stored, file: Temporary) -> Result<()> {
        let siblings = self
            .objects
            .entry(ObjectKey::from_record(&stored.record))
            .or_default();
        let same_path = siblings
            .iter()
            .position(|other| other.record.path == stored.record.path);
        if same_path.is_some_and(|index| siblings[index].sequence > stored.sequence) {
            // Another ingest of the same file name began later and was faster: it stands.
            return Ok(());
        }
        if let Err(error) = inner.files.place_record(file, &stored.record.path) {
            self.objects.retain(|_, stored| !stored.is_empty());
            return Err(error);
        }
        let replaced = same_path.map(|index| siblings.remove(index).record);
        let position = siblings.partition_point(|other| other.sequence < stored.sequence);
        let record = stored.record.clone();
        let is_current = position == siblings.len();
        siblings.insert(position, stored);

        // The ingest holds both, so they are there.
        self.references.hold_archive(&record.digest);
        self.references.hold_directory(&record.tree);
        if let Some(replaced) = replaced {
            self.references.release_archive(&replaced.digest, &inner.files);
            self.references.release_directory(&replaced.tree, &inner.files);
        }
        inner.send(is_current.then_some(Change::Stored(record)));
        Ok(())
    }
}

/// The tree in memory and the blobs on disk, which the ingest holds.
struct TreeContent<'a> {
    tree: &'a Tree,
    files: &'a Files,
    stopped: &'a AtomicBool,
}

impl<'a> archive::Content for TreeContent<'a> {
    type Error = Error;
    type Blob = Watched<'a>;

    fn directory(&self, digest: &Digest) -> Result<Cow<'_, Directory>> {
        let what = super::error::What::Directory;
        self.tree
            .directory(digest)
            .map(Cow::Borrowed)
            .ok_or(Error::NotFound {
                what,
                digest: *digest,
            })
    }

    fn blob(&self, digest: &Digest) -> Result<Watched<'a>> {
        Ok(Watched {
            content: self.files.content(Kind::Blob, digest, 0)?,
            stopped: self.stopped,
        })
    }
}

/// Reads a blob until the ingest is cancelled, then fails.
struct Watched<'a> {
    content: Content,
    stopped: &'a AtomicBool,
}

impl Read for Watched<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        check(self.stopped).map_err(io::Error::other)?;
        self.content.read(target)
    }
}

fn check(stopped: &AtomicBool) -> Result<()> {
    match stopped.load(Ordering::Relaxed) {
        true => Err(Error::Stopped),
        false => Ok(()),
    }
}

/// Writes all that the reader gives, and returns digest and size of it.
fn copy(
    reader: &mut impl Read,
    file: &mut Temporary,
    path: &str,
    stopped: &AtomicBool,
) -> Result<(Digest, u64)> {
    let mut hasher = Hasher::new();
    let mut size = 0;
    let mut buffer = vec![0; SMALL];
    loop {
        check(stopped)?;
        let piece = match reader.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finish(), size)),
            Ok(read) => &buffer[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(source) => {
                return Err(Error::ReadSource {
                    path: path.to_owned(),
                    source,
                });
            }
        };
        hasher.update(piece);
        size += piece.len() as u64;
        file.write_all(piece).map_err(Error::io("write a file"))?;
    }
}

fn whole_seconds(now: Timestamp) -> Timestamp {
    let mode = jiff::TimestampRound::new()
        .smallest(Unit::Second)
        .mode(jiff::RoundMode::Trunc);
    now.round(mode).unwrap_or(now)
}
