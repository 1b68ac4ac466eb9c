//! Reference counts of every archive, folder and blob in the store.
//!
//! A folder is counted for each record whose root it is, each ingest that has added it, and each entry of another
//! folder that names it. When it comes into being it counts its own entries, once; when its count falls to 0 it lets go
//! of them and its file is deleted. So the cost of an artifact is that of the folders that changed, and the count of
//! a blob never needs a walk over all trees.

use std::collections::HashMap;

use super::error::Result;
use super::files::{Files, Kind};
use crate::{
    digest::Digest,
    tree::{Directory, EntryKind},
};

type Counts = HashMap<Digest, Counted>;

/// A file of the store.
#[derive(Debug, Clone, Copy)]
struct Counted {
    holders: u32,
    size: u64,
}

/// The files of one kind.
#[derive(Debug, Default)]
struct Held {
    counts: Counts,
    /// Bytes of all of them.
    bytes: u64,
}

/// How much there is of something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

/// The counts. Everything in here is on disk; everything on disk that is not in here is garbage.
#[derive(Debug, Default)]
pub(super) struct References {
    archives: Held,
    directories: Held,
    blobs: Held,
}

impl References {
    /// Counts an archive once more; false if it is not in the store.
    pub(super) fn hold_archive(&mut self, digest: &Digest) -> bool {
        self.archives.hold(digest)
    }

    /// Counts a folder once more; false if it is not in the store.
    pub(super) fn hold_directory(&mut self, digest: &Digest) -> bool {
        self.directories.hold(digest)
    }

    /// Counts a blob once more; false if it is not in the store.
    pub(super) fn hold_blob(&mut self, digest: &Digest) -> bool {
        self.blobs.hold(digest)
    }

    /// A new archive, counted once.
    pub(super) fn insert_archive(&mut self, digest: Digest, size: u64) {
        self.archives.insert(digest, size);
    }

    /// A new blob, counted once.
    pub(super) fn insert_blob(&mut self, digest: Digest, size: u64) {
        self.blobs.insert(digest, size);
    }

    /// Counts a folder once more. When it was not counted before, its entries are, and so on down; `load` gives the
    /// folders, which must be in the store with all that is below them.
    pub(super) fn adopt_directory(
        &mut self,
        digest: &Digest,
        load: &mut dyn FnMut(&Digest) -> Result<Directory>,
    ) -> Result<()> {
        let mut arriving = vec![(EntryKind::Directory, *digest, 0)];
        while let Some((kind, digest, size)) = arriving.pop() {
            if !kind.is_directory() {
                self.insert_blob(digest, size);
            } else if !self.hold_directory(&digest) {
                let directory = load(&digest)?;
                let size = directory.canonical_text().len() as u64;
                self.directories.insert(digest, size);
                let entries = directory.entries().iter();
                arriving.extend(entries.map(|entry| (entry.kind, entry.digest, entry.size)));
            }
        }
        Ok(())
    }

    pub(super) fn release_archive(&mut self, digest: &Digest, files: &Files) {
        if self.archives.release(digest) {
            files.remove(Kind::Archive, digest);
        }
    }

    pub(super) fn release_blob(&mut self, digest: &Digest, files: &Files) {
        if self.blobs.release(digest) {
            files.remove(Kind::Blob, digest);
        }
    }

    pub(super) fn release_directory(&mut self, digest: &Digest, files: &Files) {
        let mut dying = vec![(EntryKind::Directory, *digest)];
        while let Some((kind, digest)) = dying.pop() {
            if !kind.is_directory() {
                self.release_blob(&digest, files);
            } else if self.directories.release(&digest) {
                // A folder that cannot be read any more keeps its entries until the next start.
                if let Ok(directory) = files.directory(&digest) {
                    dying.extend(directory.entries().iter().map(|entry| (entry.kind, entry.digest)));
                }
                files.remove(Kind::Directory, &digest);
            }
        }
    }

    /// Returns whether anybody needs the file of this kind and digest.
    pub(super) fn holds(&self, kind: Kind, digest: &Digest) -> bool {
        self.held(kind).counts.contains_key(digest)
    }

    /// How many files of this kind there are, and how large they are together.
    pub(super) fn amount(&self, kind: Kind) -> Amount {
        let held = self.held(kind);
        Amount {
            files: held.counts.len(),
            bytes: held.bytes,
        }
    }

    /// Bytes of all files of all kinds.
    pub(super) fn bytes(&self) -> u64 {
        Kind::ALL.iter().map(|kind| self.held(*kind).bytes).sum()
    }

    fn held(&self, kind: Kind) -> &Held {
        match kind {
            Kind::Archive => &self.archives,
            Kind::Blob => &self.blobs,
            Kind::Directory => &self.directories,
        }
    }
}

impl Held {
    fn hold(&mut self, digest: &Digest) -> bool {
        let counted = self.counts.get_mut(digest);
        counted.map(|counted| counted.holders += 1).is_some()
    }

    fn insert(&mut self, digest: Digest, size: u64) {
        if !self.hold(&digest) {
            self.counts.insert(digest, Counted { holders: 1, size });
            self.bytes += size;
        }
    }

    /// True if no one holds it any more.
    fn release(&mut self, digest: &Digest) -> bool {
        let Some(counted) = self.counts.get_mut(digest) else {
            return false;
        };
        counted.holders -= 1;
        if counted.holders > 0 {
            return false;
        }
        self.bytes -= counted.size;
        self.counts.remove(digest);
        true
    }
}
