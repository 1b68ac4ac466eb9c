//! Outcome of reading an index.

use crate::error::Error;

/// Summary of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of charts.
    pub charts: usize,
    /// Number of versions of all charts.
    pub versions: usize,
    /// Entries that Helm passes over as well; not all are named when they are many.
    pub dropped: Vec<Dropped>,
    /// How many those are.
    pub dropped_count: usize,
}

/// An entry that was passed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The chart under whose name it stands.
    pub chart: String,
    /// Its version, if it has one.
    pub version: String,
    /// Where it begins; 0 when that is not known.
    pub line: u32,
    /// Why it was passed over.
    pub reason: String,
}

/// How an attempt to read the input in pieces ended.
pub(crate) enum Attempt {
    /// Everything was read.
    Done,
    /// It is not written in a way that can be cut into pieces, or it is broken; the error of the piece, if it had one.
    NotInPieces(Option<Error>),
}
