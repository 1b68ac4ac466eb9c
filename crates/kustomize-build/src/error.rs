//! Errors of a build.

use std::collections::BTreeSet;
use std::fmt;

use crate::built::Trace;

/// Why a build failed, in kustomize's words where kustomize has words for it.
///
/// [`fmt::Display`] gives the whole message on one or several lines; the parts are there for those who want to point
/// at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    kind: ErrorKind,
    message: String,
    file: Option<String>,
    line: u32,
    chain: Vec<String>,
    trace: Trace,
}

/// Class of the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A file or folder that is named is not there.
    NotFound,
    /// A kustomization, a resource or a configuration is not what it has to be.
    Invalid,
    /// A field or feature that this build does not support.
    Unsupported,
    /// A path leads out of where it may lead.
    Forbidden,
    /// Two objects have one name, or a base contains itself.
    Conflict,
    /// A patch or replacement cannot be applied.
    Patch,
    /// The file system failed, or what was asked to fetch something.
    Io,
    /// A server has no file at a URL.
    Fetch,
    /// The build exceeds its budget.
    Limit,
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            kind,
            message: message.into(),
            file: None,
            line: 0,
            chain: Vec::new(),
            trace: Trace::default(),
        }))
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    pub(crate) fn patch(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Patch, message)
    }

    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// Puts a context in front, as kustomize does.
    #[must_use]
    pub(crate) fn context(mut self, prefix: impl AsRef<str>) -> Self {
        self.0.message = format!("{}: {}", prefix.as_ref(), self.0.message);
        self
    }

    /// Replaces the words, and keeps the rest.
    #[must_use]
    pub(crate) fn reworded(mut self, message: impl Into<String>) -> Self {
        self.0.message = message.into();
        self
    }

    /// Names the file, unless one closer to the failure is named already.
    #[must_use]
    pub(crate) fn in_file(mut self, file: &str, line: u32) -> Self {
        if self.0.file.is_none() {
            self.0.file = Some(file.to_owned());
            self.0.line = line;
        }
        self
    }

    /// Names the place where what is wrong can be put right, in place of one that was named.
    #[must_use]
    pub(crate) fn placed(mut self, file: &str, line: u32) -> Self {
        self.0.file = Some(file.to_owned());
        self.0.line = line;
        self
    }

    /// Adds a kustomization that led here.
    #[must_use]
    pub(crate) fn through(mut self, folder: &str) -> Self {
        self.0.chain.insert(0, folder.to_owned());
        self
    }

    /// Adds what the build did until it failed.
    #[must_use]
    pub(crate) fn after(mut self, trace: Trace) -> Self {
        self.0.trace = trace;
        self
    }

    /// Returns every path that was looked at before the build failed, as [`crate::Built::reads`] does for one that did
    /// not: as long as none of them changes, it fails again.
    pub fn reads(&self) -> &BTreeSet<String> {
        &self.0.trace.reads
    }

    /// Returns what kustomize says on the way, before it fails: see [`crate::Built::warnings`].
    pub fn warnings(&self) -> &[String] {
        &self.0.trace.warnings
    }

    /// Returns what sort of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file that is at fault, below the root of the tree, when it is known.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Returns the line in that file, counted from 1; 0 when it is not known.
    pub fn line(&self) -> u32 {
        self.0.line
    }

    /// Returns the folders of the kustomizations that led to the failure, outermost first.
    pub fn chain(&self) -> &[String] {
        &self.0.chain
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Error {}
