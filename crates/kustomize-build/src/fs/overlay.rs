//! A tree with some files put over it.

use super::{DirEntry, FileKind, FileSystem, FsError, MemoryFs};

/// A tree and files that are added to it, or stand in place of its own; for example a generated kustomization.yaml.
pub struct OverlayFs<'a> {
    base: &'a dyn FileSystem,
    added: MemoryFs,
}

impl<'a> OverlayFs<'a> {
    /// Lays files over a tree.
    pub fn new(base: &'a dyn FileSystem, added: MemoryFs) -> Self {
        Self { base, added }
    }
}

impl FileSystem for OverlayFs<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        match self.added.read(path) {
            Err(FsError::NotFound) => self.base.read(path),
            answer => answer,
        }
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        // The root of an empty overlay is a folder, which says nothing about the base.
        match self.added.kind(path)? {
            Some(FileKind::File) => Ok(Some(FileKind::File)),
            over => Ok(self.base.kind(path)?.or(over)),
        }
    }

    fn locate(&self, path: &str) -> Result<Option<(String, FileKind)>, FsError> {
        match self.added.kind(path)? {
            Some(FileKind::File) => Ok(Some((path.to_owned(), FileKind::File))),
            // What is added to a folder lies where the folder is named, not where a link leads.
            Some(kind) => Ok(Some((path.to_owned(), self.base.kind(path)?.unwrap_or(kind)))),
            None => self.base.locate(path),
        }
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        let mut entries = match self.added.list(path) {
            Err(FsError::NotFound) => return self.base.list(path),
            answer => answer?,
        };
        match self.base.list(path) {
            Err(FsError::NotFound) => {}
            below => {
                for entry in below? {
                    if !entries.iter().any(|e| e.name == entry.name) {
                        entries.push(entry);
                    }
                }
            }
        }
        entries.sort();
        Ok(entries)
    }
}
