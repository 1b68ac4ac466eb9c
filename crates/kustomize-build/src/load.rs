//! Finding and reading files, within the bounds that a kustomization has, and noting what was looked at.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::built::Trace;
use crate::error::{Error, ErrorKind, Result};
use crate::fs::{FileKind, FileSystem, FsError};
use crate::path;
use crate::{LoadRestrictions, Options};

/// What all loaders of a build share.
pub(crate) struct Source<'a> {
    fs: &'a dyn FileSystem,
    restrictions: LoadRestrictions,
    trace: RefCell<Trace>,
    /// What messages show in place of the root of the tree; empty for paths relative to it.
    root: &'a str,
    folders: Cell<usize>,
}

/// How many bases may stand one below the other: each takes some of the thread's stack.
const DEPTH: usize = 64;

/// How many folders one build may open. Bases that are included twice at every level double the work with each.
const FOLDERS: usize = 10_000;

impl<'a> Source<'a> {
    pub(crate) fn new(fs: &'a dyn FileSystem, options: &'a Options) -> Self {
        Self {
            fs,
            restrictions: options.load_restrictions,
            trace: RefCell::default(),
            root: &options.shown_root,
            folders: Cell::new(0),
        }
    }

    /// Ends the build: returns what was looked at and said.
    pub(crate) fn into_trace(self) -> Trace {
        self.trace.into_inner()
    }

    fn note(&self, path: &str) {
        self.trace.borrow_mut().reads.insert(path.to_owned());
    }

    /// Shows a path of the tree in a message.
    fn shown(&self, path: &str) -> String {
        if self.root.starts_with('/') {
            path::join_for_message("", &format!("{}/{path}", self.root))
        } else {
            path::join_for_message(self.root, path)
        }
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>> {
        self.note(path);
        self.fs.kind(path).map_err(|error| self.failed(path, &error))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.note(path);
        self.fs.read(path).map_err(|error| self.failed(path, &error))
    }

    fn failed(&self, path: &str, error: &FsError) -> Error {
        let kind = match error {
            FsError::NotFound => ErrorKind::NotFound,
            FsError::OutsideRoot => ErrorKind::Forbidden,
            _ => ErrorKind::Io,
        };
        Error::new(kind, format!("failed to read '{}': {error}", self.shown(path))).in_file(path, 0)
    }

    /// Finds what is at a path that may lead anywhere, in the words that kustomize has for nothing.
    fn locate(&self, folder: &str, path: &str) -> Result<(String, FileKind)> {
        let place = path::join_for_message(folder, path);
        let missing = |at: &str| {
            let (shown, at) = (self.shown(&place), self.shown(at));
            let message = format!("evalsymlink failure on '{shown}' : lstat {at}: no such file or directory");
            Error::new(ErrorKind::NotFound, message).in_file(&place, 0)
        };
        let Some(joined) = path::join(folder, path) else {
            return Err(missing(&place));
        };
        match self.kind(&joined)? {
            Some(kind) => Ok((joined, kind)),
            None => Err(missing(&self.first_missing(&joined)?)),
        }
    }

    /// Finds the first part of a path that is not there: the one that a walk stumbles over.
    fn first_missing(&self, path: &str) -> Result<String> {
        let mut missing = path;
        while let parent = path::parent(missing)
            && !parent.is_empty()
            && self.kind(parent)?.is_none()
        {
            missing = parent;
        }
        Ok(missing.to_owned())
    }
}

/// Reads the files of one kustomization, from its folder.
pub(crate) struct Loader<'a> {
    source: &'a Source<'a>,
    folder: String,
    referrer: Option<Rc<Loader<'a>>>,
    depth: usize,
}

impl<'a> Loader<'a> {
    /// Opens the folder that is built.
    pub(crate) fn open(source: &'a Source<'a>, folder: &str) -> Result<Rc<Self>> {
        let folder = confirm_folder(source, "", folder)?;
        Ok(Rc::new(Self {
            source,
            folder,
            referrer: None,
            depth: 0,
        }))
    }

    /// Opens the folder of a base or component.
    pub(crate) fn open_base(self: &Rc<Self>, path: &str) -> Result<Rc<Self>> {
        if path.is_empty() {
            return Err(Error::invalid("new root cannot be empty"));
        }
        if looks_remote(path) {
            return Err(remote(path));
        }
        if path.starts_with('/') {
            return Err(Error::new(
                ErrorKind::Forbidden,
                format!("new root '{path}' cannot be absolute"),
            ));
        }
        if has_ambiguous_part(path) {
            let clean = path::join_for_message("", path);
            return Err(Error::invalid(format!(
                "path {path:?} is ambiguous: resolves to {clean:?} after normalization, which is likely not the \
                 intended target; check for YAML indentation errors in your kustomization file"
            )));
        }
        let folder = confirm_folder(self.source, &self.folder, path)?;
        self.refuse_cycle(&folder)?;
        self.count_folder(&folder)?;
        Ok(Rc::new(Self {
            source: self.source,
            folder,
            referrer: Some(Rc::clone(self)),
            depth: self.depth + 1,
        }))
    }

    /// Returns the folder, below the root of the tree.
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// Returns the folder as messages show it.
    pub(crate) fn shown_folder(&self) -> String {
        self.source.shown(&self.folder)
    }

    /// Returns where a path of this kustomization leads, below the root of the tree.
    pub(crate) fn place(&self, path: &str) -> String {
        path::join_for_message(&self.folder, path)
    }

    /// Notes something to tell the user, which is no failure.
    pub(crate) fn warn(&self, warning: impl Into<String>) {
        self.source.trace.borrow_mut().warnings.push(warning.into());
    }

    /// Reads a file.
    pub(crate) fn load(&self, path: &str) -> Result<Vec<u8>> {
        if path.starts_with("http://") || path.starts_with("https://") {
            return Err(remote(path));
        }
        let (found, kind) = self.source.locate(&self.folder, path)?;
        let shown = self.source.shown(&found);
        if kind == FileKind::Directory {
            return Err(Error::invalid(format!("'{shown}' must resolve to a file")).in_file(&found, 0));
        }
        let allowed = self.source.restrictions == LoadRestrictions::None
            || path::is_in_or_below(path::parent(&found), &self.folder);
        if !allowed {
            let folder = self.shown_folder();
            let message = format!("security; file '{shown}' is not in or below '{folder}'");
            return Err(Error::new(ErrorKind::Forbidden, message).in_file(&found, 0));
        }
        self.source.read(&found)
    }

    /// Reads a file that has to be text.
    pub(crate) fn load_text(&self, path: &str) -> Result<String> {
        let bytes = self.load(path)?;
        String::from_utf8(bytes).map_err(|_| {
            Error::invalid(format!("MalformedYAMLError: yaml: invalid UTF-8 in File: {path}"))
                .in_file(&self.place(path), 0)
        })
    }

    /// Reads a file of this folder if it is there.
    pub(crate) fn load_if_there(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let Some(joined) = path::join(&self.folder, name) else {
            return Ok(None);
        };
        match self.source.kind(&joined)? {
            Some(FileKind::File) => self.source.read(&joined).map(Some),
            _ => Ok(None),
        }
    }

    fn count_folder(&self, folder: &str) -> Result<()> {
        let folders = &self.source.folders;
        folders.set(folders.get() + 1);
        if self.depth >= DEPTH || folders.get() > FOLDERS {
            let message = format!("more than {DEPTH} bases below each other, or more than {FOLDERS} in all");
            return Err(Error::invalid(message).in_file(folder, 0));
        }
        Ok(())
    }

    fn refuse_cycle(&self, candidate: &str) -> Result<()> {
        if path::is_in_or_below(&self.folder, candidate) {
            let (candidate, visited) = (self.source.shown(candidate), self.shown_folder());
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("cycle detected: candidate root '{candidate}' contains visited root '{visited}'"),
            ));
        }
        self.referrer
            .as_ref()
            .map_or(Ok(()), |referrer| referrer.refuse_cycle(candidate))
    }
}

fn confirm_folder(source: &Source<'_>, folder: &str, path: &str) -> Result<String> {
    let not_there = |error: Error| {
        error
            .context("not a valid directory")
            .context("must build at directory")
    };
    let (found, kind) = source.locate(folder, path).map_err(not_there)?;
    if kind == FileKind::File {
        let message = format!(
            "must build at directory: '{}': file is not directory",
            source.shown(&found)
        );
        return Err(Error::invalid(message).in_file(&found, 0));
    }
    Ok(found)
}

/// Tells whether a path is what kustomize would fetch: a URL, or a repository in one of git's short forms.
fn looks_remote(path: &str) -> bool {
    let path = path.strip_prefix("git::").unwrap_or(path);
    path.contains("://")
        || path.starts_with("git@")
        || path.starts_with("github.com/")
        || path.starts_with("github.com:")
}

fn remote(path: &str) -> Error {
    Error::unsupported(format!("remote resources are not supported: '{path}'"))
}

/// Finds `a - ..` in a path: two entries of a list that wrong indentation made one.
fn has_ambiguous_part(path: &str) -> bool {
    path.split('/')
        .any(|part| !matches!(part, "" | "." | "..") && part.contains(".."))
}
