//! The artifact's tree as kustomize sees it: a file system that fetches what is read, and tells what was.

use std::cell::RefCell;

use artifact::client::RemoteTree;
use artifact::tree::EntryKind;
use kustomize_build::{DirEntry, FileKind, FileSystem, FsError};
use tokio::runtime::Handle;

use super::closure::{Look, Looks};

/// Reads a remote tree from a thread that may block.
///
/// Everything below the folder that is built is prefetched in one stream; a read here is then a look into the cache,
/// and a request only for what lies outside (`../base`).
pub struct TreeFs<'a> {
    tree: &'a RemoteTree,
    runtime: Handle,
    looks: RefCell<Looks>,
    /// The first part of the tree that could not be fetched.
    broken: RefCell<Option<artifact::client::Error>>,
}

impl<'a> TreeFs<'a> {
    /// Wraps a tree. `runtime` drives the requests.
    pub fn new(tree: &'a RemoteTree, runtime: Handle) -> Self {
        Self {
            tree,
            runtime,
            looks: RefCell::default(),
            broken: RefCell::default(),
        }
    }

    /// Returns all that was looked at, also by a build that failed.
    ///
    /// # Errors
    /// When something could not be fetched: what came of the build then says nothing about the tree.
    pub fn into_looks(self) -> Result<Looks, artifact::client::Error> {
        match self.broken.into_inner() {
            Some(error) => Err(error),
            None => Ok(self.looks.into_inner()),
        }
    }

    fn note(&self, path: &str, look: Look) {
        self.looks
            .borrow_mut()
            .entry(path.to_owned())
            .or_default()
            .insert(look);
    }

    fn failed(&self, error: artifact::client::Error) -> FsError {
        match error {
            artifact::client::Error::NotFound { .. } => FsError::NotFound,
            error => {
                let problem = error.to_string();
                self.broken.borrow_mut().get_or_insert(error);
                FsError::Io(problem)
            }
        }
    }
}

impl FileSystem for TreeFs<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        self.note(path, Look::Contents);
        let read = self.runtime.block_on(self.tree.read(path));
        Ok(read.map_err(|error| self.failed(error))?.to_vec())
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        self.note(path, Look::Kind);
        if path.is_empty() {
            return Ok(Some(FileKind::Directory));
        }
        let entry = self.runtime.block_on(self.tree.entry(path));
        let entry = entry.map_err(|error| self.failed(error))?;
        Ok(entry.map(|entry| kind(entry.kind)))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        self.note(path, Look::Listing);
        let entries = self.runtime.block_on(self.tree.list(path));
        let entries = entries.map_err(|error| self.failed(error))?;
        Ok(entries
            .into_iter()
            .map(|entry| DirEntry {
                name: entry.name,
                kind: kind(entry.kind),
            })
            .collect())
    }
}

fn kind(kind: EntryKind) -> FileKind {
    if kind == EntryKind::Directory {
        FileKind::Directory
    } else {
        FileKind::File
    }
}
