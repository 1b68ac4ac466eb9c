//! Why an action did not succeed: one line in Helm's words, since records, conditions and events show it, and its kind.

use std::fmt;

use kube_health::Report;

/// Why an action did not succeed.
///
/// Its text is the whole chain, in Helm's words: they are what stands in records, and what tools look for.
#[derive(Clone, Debug)]
pub struct Error {
    kind: ErrorKind,
    text: String,
    report: Option<Box<Report>>,
}

/// Subject of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The name of the release is none.
    Name,
    /// There is a release of that name.
    InUse,
    /// There is no release, or no such revision.
    NotFound,
    /// No revision of it was ever deployed.
    NoDeployed,
    /// Another action is under way, or died.
    Pending,
    /// The chart could not be rendered with the values.
    Render,
    /// The rendered text is no list of objects that the cluster knows.
    Build,
    /// A rule of the cluster refuses what was rendered.
    Refused,
    /// An object belongs to someone else.
    Ownership,
    /// The CRDs of the chart could not be applied.
    Crds,
    /// The API server refused objects.
    Apply,
    /// Objects did not become what they should.
    Wait,
    /// A hook failed.
    Hook,
    /// A test of the release failed.
    Test,
    /// Objects could not be deleted.
    Delete,
    /// A record could not be read or written.
    Storage,
    /// A record has no room in its Secret.
    TooLarge,
    /// The API server did not answer, or said what cannot be read.
    Cluster,
    /// The action was to end.
    Cancelled,
}

impl Error {
    /// Makes an error of a kind.
    pub fn new(kind: ErrorKind, text: impl Into<String>) -> Self {
        Self {
            kind,
            text: text.into(),
            report: None,
        }
    }

    /// Makes the error of a wait that failed.
    pub fn of_report(report: Report) -> Self {
        Self {
            kind: ErrorKind::Wait,
            text: report.to_string(),
            report: Some(Box::new(report)),
        }
    }

    /// Says what was being done: `doing: text`.
    #[must_use]
    pub fn within(mut self, doing: impl fmt::Display) -> Self {
        self.text = format!("{doing}: {}", self.text);
        self
    }

    /// Says what went wrong since: `text: since`.
    #[must_use]
    pub(crate) fn and(mut self, since: impl fmt::Display) -> Self {
        self.text = format!("{}: {since}", self.text);
        self
    }

    /// Says that it is of another kind; that it was cancelled stays.
    #[must_use]
    pub fn of_kind(mut self, kind: ErrorKind) -> Self {
        if self.kind != ErrorKind::Cancelled {
            self.kind = kind;
        }
        self
    }

    /// Returns the subject of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Which objects are not as they should be, and why, if a wait failed.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.report.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
