//! Who needs what: a count for every archive, folder and blob in the store.
//!
//! A folder is counted for each record whose root it is, each ingest that has added it, and each entry of another
//! folder that names it. When it comes into being it counts its own entries, once; when its count falls to 0 it lets go
//! of them and its file is deleted. So the cost of an artifact is that of the folders that changed, and the count of
//! a blob never needs a walk over all trees.

use std::collections::HashMap;

use super::{
    Result,
    files::{Files, Kind},
};
use crate::{
    digest::Digest,
    tree::{Directory, EntryKind},
};

type Counts = HashMap<Digest, u32>;

/// The counts. Everything in here is on disk; everything on disk that is not in here is garbage.
#[derive(Debug, Default)]
pub(super) struct References {
    archives: Counts,
    directories: Counts,
    blobs: Counts,
}

impl References {
    /// Counts an archive once more; false if it is not in the store.
    pub(super) fn hold_archive(&mut self, digest: &Digest) -> bool {
        hold(&mut self.archives, digest)
    }

    /// Counts a folder once more; false if it is not in the store.
    pub(super) fn hold_directory(&mut self, digest: &Digest) -> bool {
        hold(&mut self.directories, digest)
    }

    /// Counts a blob once more; false if it is not in the store.
    pub(super) fn hold_blob(&mut self, digest: &Digest) -> bool {
        hold(&mut self.blobs, digest)
    }

    /// A new archive, counted once.
    pub(super) fn insert_archive(&mut self, digest: Digest) {
        *self.archives.entry(digest).or_default() += 1;
    }

    /// A new blob, counted once.
    pub(super) fn insert_blob(&mut self, digest: Digest) {
        *self.blobs.entry(digest).or_default() += 1;
    }

    /// Counts a folder once more. When it was not counted before, its entries are, and so on down; `load` gives the
    /// folders, which must be in the store with all that is below them.
    pub(super) fn adopt_directory(
        &mut self,
        digest: &Digest,
        load: &mut dyn FnMut(&Digest) -> Result<Directory>,
    ) -> Result<()> {
        let mut arriving = vec![(EntryKind::Directory, *digest)];
        while let Some((kind, digest)) = arriving.pop() {
            if !kind.is_directory() {
                self.insert_blob(digest);
            } else if !self.hold_directory(&digest) {
                let directory = load(&digest)?;
                self.directories.insert(digest, 1);
                arriving.extend(directory.entries().iter().map(|entry| (entry.kind, entry.digest)));
            }
        }
        Ok(())
    }

    pub(super) fn release_archive(&mut self, digest: &Digest, files: &Files) {
        if release(&mut self.archives, digest) {
            files.remove(Kind::Archive, digest);
        }
    }

    pub(super) fn release_blob(&mut self, digest: &Digest, files: &Files) {
        if release(&mut self.blobs, digest) {
            files.remove(Kind::Blob, digest);
        }
    }

    pub(super) fn release_directory(&mut self, digest: &Digest, files: &Files) {
        let mut dying = vec![(EntryKind::Directory, *digest)];
        while let Some((kind, digest)) = dying.pop() {
            if !kind.is_directory() {
                self.release_blob(&digest, files);
            } else if release(&mut self.directories, &digest) {
                // A folder that cannot be read any more keeps its entries until the next start.
                if let Ok(directory) = files.directory(&digest) {
                    dying.extend(directory.entries().iter().map(|entry| (entry.kind, entry.digest)));
                }
                files.remove(Kind::Directory, &digest);
            }
        }
    }

    /// Whether anybody needs the file of this kind and digest.
    pub(super) fn holds(&self, kind: Kind, digest: &Digest) -> bool {
        match kind {
            Kind::Archive => self.archives.contains_key(digest),
            Kind::Blob => self.blobs.contains_key(digest),
            Kind::Directory => self.directories.contains_key(digest),
        }
    }
}

fn hold(counts: &mut Counts, digest: &Digest) -> bool {
    counts.get_mut(digest).map(|count| *count += 1).is_some()
}

/// True if nobody holds it any more.
fn release(counts: &mut Counts, digest: &Digest) -> bool {
    let Some(count) = counts.get_mut(digest) else {
        return false;
    };
    *count -= 1;
    if *count == 0 {
        counts.remove(digest);
        return true;
    }
    false
}
