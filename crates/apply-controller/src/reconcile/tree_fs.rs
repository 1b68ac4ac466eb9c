//! The artifact's tree as kustomize sees it: a file system that fetches what is read, and tells what was.

use std::cell::RefCell;
use std::collections::BTreeSet;

use artifact::client::RemoteTree;
use artifact::tree::EntryKind;
use kustomize_build::{DirEntry, FileKind, FileSystem, FsError};
use tokio::runtime::Handle;

/// Reads a remote tree from a thread that may block.
///
/// Everything below the folder that is built is prefetched in one stream; a read here is then a look into the cache,
/// and a request only for what lies outside (`../base`).
pub struct TreeFs<'a> {
    tree: &'a RemoteTree,
    runtime: Handle,
    reads: RefCell<BTreeSet<String>>,
}

impl<'a> TreeFs<'a> {
    /// Wraps a tree. `runtime` drives the requests.
    pub fn new(tree: &'a RemoteTree, runtime: Handle) -> Self {
        Self {
            tree,
            runtime,
            reads: RefCell::default(),
        }
    }

    /// Returns every path that was read, listed or looked for.
    pub fn into_reads(self) -> BTreeSet<String> {
        self.reads.into_inner()
    }

    fn note(&self, path: &str) {
        self.reads.borrow_mut().insert(path.to_owned());
    }
}

impl FileSystem for TreeFs<'_> {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        self.note(path);
        let read = self.runtime.block_on(self.tree.read(path)).map_err(failed)?;
        Ok(read.to_vec())
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        self.note(path);
        if path.is_empty() {
            return Ok(Some(FileKind::Directory));
        }
        let entry = self.runtime.block_on(self.tree.entry(path)).map_err(failed)?;
        Ok(entry.map(|entry| kind(entry.kind)))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        self.note(path);
        let entries = self.runtime.block_on(self.tree.list(path)).map_err(failed)?;
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

fn failed(error: artifact::client::Error) -> FsError {
    match error {
        artifact::client::Error::NotFound { .. } => FsError::NotFound,
        error => FsError::Io(error.to_string()),
    }
}
