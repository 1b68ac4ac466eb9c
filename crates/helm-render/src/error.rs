//! Why a chart could not be rendered.

use std::fmt;
use std::sync::Arc;

use crate::manifest::Files;

/// A rendering that failed.
///
/// Displayed exactly as the followed version of Helm words it, without its `Error: `.
#[derive(Clone, Debug)]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    kind: ErrorKind,
    text: String,
    file: Option<Arc<str>>,
    line: Option<u32>,
    rendered: Files,
}

/// The step of a rendering that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The release's name is none.
    Release,
    /// The dependencies could not be settled for the values.
    Dependencies,
    /// The values could not be composed.
    Values,
    /// The values break a schema.
    Schema,
    /// The chart does not accept the version of Kubernetes.
    KubeVersion,
    /// A template could not be parsed.
    Parse,
    /// A template failed, or refused the values.
    Template,
    /// A rendered file holds no manifests.
    Manifest,
    /// The caller's post-renderer failed, or what it returned holds no manifests.
    PostRender,
    /// A bound of the rendering was reached.
    Limit,
    /// The machine could not do it.
    System,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            text: text.into(),
            file: None,
            line: None,
            rendered: Files::new(),
        }))
    }

    pub(crate) fn in_file(mut self, file: &str, line: Option<u32>) -> Self {
        self.0.file = Some(file.into());
        self.0.line = line;
        self
    }

    pub(crate) fn with_rendered(mut self, rendered: Files) -> Self {
        self.0.rendered = rendered;
        self
    }

    /// Returns the step that failed.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the file that was being rendered or read, by its path in the chart: `chart/charts/sub/templates/a.yaml`.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Returns the line in that file.
    pub fn line(&self) -> Option<u32> {
        self.0.line
    }

    /// Returns the files that had been rendered when one of them turned out to hold no manifests.
    pub fn rendered(&self) -> &Files {
        &self.0.rendered
    }

    /// Returns whether Helm had begun to render: then `helm template` hints at `--debug`.
    pub fn is_of_rendering(&self) -> bool {
        !matches!(
            self.kind(),
            ErrorKind::Release
                | ErrorKind::Dependencies
                | ErrorKind::Values
                | ErrorKind::Schema
                | ErrorKind::System
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl std::error::Error for Error {}
