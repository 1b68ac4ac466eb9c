//! Files of a repository, before a merge or after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use kustomize_build::{DirEntry, FileKind, FileSystem, FsError};

use crate::merge::{Merged, Place};

/// Larger files are not read. In bytes.
const MAX_FILE: u64 = 32 << 20;

/// Files by path, some or all of them.
pub(crate) struct Snapshot {
    pub(crate) merged: Arc<Merged>,
    pub(crate) files: BTreeMap<String, Place>,
}

impl Snapshot {
    /// The paths of all files below a folder.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        below(
            self.files
                .range(start_of(folder)..)
                .map(|(path, _)| path.as_str()),
            folder,
        )
    }
}

/// Where the paths below a folder start.
pub(crate) fn start_of(folder: &str) -> String {
    match folder {
        "" => String::new(),
        folder => format!("{folder}/"),
    }
}

/// The first of these paths, as long as they are below a folder.
pub(crate) fn below<'a>(
    paths: impl Iterator<Item = &'a str>,
    folder: &'a str,
) -> impl Iterator<Item = &'a str> {
    paths.take_while(move |path| match folder {
        "" => true,
        folder => path
            .strip_prefix(folder)
            .is_some_and(|rest| rest.starts_with('/')),
    })
}

impl FileSystem for Snapshot {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        let place = self.files.get(path).ok_or(FsError::NotFound)?;
        let read = self.merged.read(place, MAX_FILE);
        read.map_err(|error| FsError::Io(error_chain::chain(&error)))
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        if self.files.contains_key(path) {
            return Ok(Some(FileKind::File));
        }
        let is_folder = path.is_empty() || self.below(path).next().is_some();
        Ok(is_folder.then_some(FileKind::Directory))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        if self.kind(path)? != Some(FileKind::Directory) {
            return Err(FsError::NotFound);
        }
        let start = start_of(path).len();
        let mut entries: Vec<DirEntry> = Vec::new();
        for found in self.below(path) {
            let (name, kind) = match found[start..].split_once('/') {
                Some((folder, _)) => (folder, FileKind::Directory),
                None => (&found[start..], FileKind::File),
            };
            if entries.last().is_none_or(|last| last.name != name) {
                let name = name.to_owned();
                entries.push(DirEntry { name, kind });
            }
        }
        entries.sort();
        entries.dedup();
        Ok(entries)
    }
}
