//! The trees that a build reads from, and a note of everything that it looked at.

use std::cell::{Cell, RefCell};

use crate::built::Trace;
use crate::error::{Error, ErrorKind, Result};
use crate::fetch::Fetch;
use crate::fs::{FileKind, FileSystem, FsError};
use crate::{LoadRestrictions, Options, charts, path};

/// Context that all loaders of a build share.
pub(crate) struct Source<'a> {
    pub(super) tree: &'a dyn FileSystem,
    pub(super) options: &'a Options,
    pub(super) fetch: &'a dyn Fetch,
    trace: RefCell<Trace>,
    pub(super) folders: Cell<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(tree: &'a dyn FileSystem, options: &'a Options, fetch: &'a dyn Fetch) -> Self {
        Self {
            tree,
            options,
            fetch,
            trace: RefCell::default(),
            folders: Cell::new(0),
        }
    }

    /// Ends the build: returns what was looked at and said.
    pub(crate) fn into_trace(self) -> Trace {
        self.trace.into_inner()
    }

    pub(super) fn note_read(&self, path: &str) {
        self.trace.borrow_mut().reads.insert(path.to_owned());
    }

    pub(super) fn note_fetched(&self, url: &str) {
        self.trace.borrow_mut().fetched.insert(url.to_owned());
    }

    pub(super) fn warn(&self, warning: String) {
        self.trace.borrow_mut().warnings.push(warning);
    }
}

/// One tree: the one that is built, or a repository that was fetched for it.
pub(super) struct Tree<'a> {
    source: &'a Source<'a>,
    /// None is the tree that is built.
    fetched: Option<Box<dyn FileSystem>>,
    /// How messages name the tree's root.
    root: String,
    restrictions: LoadRestrictions,
}

impl<'a> Tree<'a> {
    pub(super) fn given(source: &'a Source<'a>) -> Self {
        Self {
            source,
            fetched: None,
            root: source.options.shown_root.clone(),
            restrictions: source.options.load_restrictions,
        }
    }

    /// Files of a repository that was fetched must always lie below their kustomization.
    pub(super) fn fetched(source: &'a Source<'a>, files: Box<dyn FileSystem>, url: &str) -> Self {
        Self {
            source,
            fetched: Some(files),
            root: url.to_owned(),
            restrictions: LoadRestrictions::RootOnly,
        }
    }

    pub(super) fn is_fetched(&self) -> bool {
        self.fetched.is_some()
    }

    pub(super) fn root(&self) -> &str {
        &self.root
    }

    pub(super) fn restrictions(&self) -> LoadRestrictions {
        self.restrictions
    }

    /// Shows a path of the tree as messages do.
    pub(super) fn shown(&self, path: &str) -> String {
        path::shown_below(&self.root, path)
    }

    /// Returns where a path leads that a kustomization in `folder` names, before links are followed; None when it
    /// leads out of the tree.
    pub(super) fn join(&self, folder: &str, path: &str) -> Option<String> {
        if !path.starts_with('/') {
            return path::join(folder, path);
        }
        let below = match self.root.as_str() {
            root if self.is_fetched() || !root.starts_with('/') => return None,
            root => path.strip_prefix(root.trim_end_matches('/'))?,
        };
        let below = below.strip_prefix('/').or(below.is_empty().then_some(""))?;
        path::join("", below)
    }

    fn note(&self, path: &str) {
        if !self.is_fetched() {
            self.source.note_read(path);
        }
    }

    fn files(&self) -> &dyn FileSystem {
        self.fetched.as_deref().unwrap_or(self.source.tree)
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        self.note(path);
        self.files().kind(path).map_err(|error| self.failed(path, &error))
    }

    pub(super) fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.note(path);
        self.files().read(path).map_err(|error| self.failed(path, &error))
    }

    /// Reads all files below a folder, by their paths below it; None if there is no such folder.
    pub(super) fn files_below(&self, folder: &str) -> Result<Option<charts::Files>> {
        self.note(folder);
        let files = match charts::files_below(self.files(), folder) {
            // What is outside of the tree is not there.
            Err(FsError::NotFound | FsError::OutsideRoot) => None,
            files => files.map_err(|error| self.failed(folder, &error))?,
        };
        for (path, _) in files.iter().flatten() {
            self.note(&format!("{folder}/{path}"));
        }
        Ok(files)
    }

    fn failed(&self, path: &str, error: &FsError) -> Error {
        let kind = match error {
            FsError::NotFound => ErrorKind::NotFound,
            FsError::OutsideRoot => ErrorKind::Forbidden,
            _ => ErrorKind::Io,
        };
        Error::new(kind, format!("failed to read '{}': {error}", self.shown(path))).in_file(path, 0)
    }

    /// Finds what is at a path, links followed; fails in the words that kustomize has for nothing.
    pub(super) fn locate(&self, path: &str) -> Result<(String, FileKind)> {
        self.note(path);
        match self.files().locate(path) {
            Ok(Some((found, kind))) => {
                self.note(&found);
                Ok((found, kind))
            }
            Ok(None) => Err(self
                .missing(&self.shown(path), &self.why_missing(path)?)
                .in_file(path, 0)),
            Err(error) => Err(self.failed(path, &error)),
        }
    }

    /// Fails for a path that leads out of the tree: outside of it nothing is there.
    pub(super) fn missing_outside(&self, path: &str) -> Error {
        let shown = self.shown(path);
        let first = shown.strip_prefix('/').and_then(|rest| rest.split('/').next());
        let at = first.map_or_else(|| shown.clone(), |first| format!("/{first}"));
        let why = format!("lstat {at}: no such file or directory");
        self.missing(&shown, &why).in_file(path, 0)
    }

    fn missing(&self, shown: &str, why: &str) -> Error {
        let message = format!("evalsymlink failure on '{shown}' : {why}");
        Error::new(ErrorKind::NotFound, message)
    }

    /// Says what a walk from the root to a path stumbles over.
    fn why_missing(&self, path: &str) -> Result<String> {
        let mut missing = path;
        while let parent = path::parent(missing)
            && !parent.is_empty()
        {
            match self.kind(parent)? {
                Some(FileKind::Directory) => break,
                Some(FileKind::File) => return Ok("not a directory".to_owned()),
                None => missing = parent,
            }
        }
        Ok(format!(
            "lstat {}: no such file or directory",
            self.shown(missing)
        ))
    }
}
