//! A tree in memory.

use std::collections::BTreeMap;

use super::{DirEntry, FileKind, FileSystem, FsError};

/// Files in memory; folders are where files are.
#[derive(Clone, Debug, Default)]
pub struct MemoryFs {
    files: BTreeMap<String, Vec<u8>>,
}

impl MemoryFs {
    /// Puts a file into the tree, in place of one that is there. The path must be normalised.
    pub fn insert(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.files.insert(path.into(), content.into());
    }

    fn below<'a>(&'a self, folder: &str) -> impl Iterator<Item = &'a str> {
        let prefix = if folder.is_empty() {
            String::new()
        } else {
            format!("{folder}/")
        };
        let length = prefix.len();
        let start = prefix.clone();
        self.files
            .range(start..)
            .map(|(path, _)| path.as_str())
            .take_while(move |p| p.starts_with(&prefix))
            .map(move |path| &path[length..])
    }
}

impl FileSystem for MemoryFs {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        self.files.get(path).cloned().ok_or(FsError::NotFound)
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
        let mut entries: Vec<DirEntry> = Vec::new();
        for rest in self.below(path) {
            let entry = match rest.split_once('/') {
                Some((folder, _)) => DirEntry {
                    name: folder.to_owned(),
                    kind: FileKind::Directory,
                },
                None => DirEntry {
                    name: rest.to_owned(),
                    kind: FileKind::File,
                },
            };
            entries.push(entry);
        }
        entries.sort();
        entries.dedup();
        Ok(entries)
    }
}
