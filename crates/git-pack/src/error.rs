//! Errors in a pack.

use std::io;

use gix_hash::ObjectId;

/// A pack that cannot be received or read. Offsets are bytes from the start of the pack.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stream ended or broke.
    #[error("failed to receive the pack: {0}")]
    Receive(#[source] io::Error),
    /// The file on our side cannot be written.
    #[error("failed to write the pack: {0}")]
    Write(#[source] io::Error),
    /// The file on our side cannot be read.
    #[error("failed to read the pack: {0}")]
    Read(#[source] io::Error),
    /// The receiver was told to stop.
    #[error("receiving the pack was cancelled")]
    Cancelled,
    /// It does not begin as packs do, or is of a version that no one writes.
    #[error("failed to receive the pack: it does not begin with the signature of a pack of version 2 or 3")]
    Signature,
    /// Its own checksum does not fit.
    #[error("failed to receive the pack: its checksum does not match, it was changed on the way")]
    Checksum,
    /// Content with the hash of other content.
    #[error("refused object at offset {offset}: its SHA-1 has the marks of a collision attack")]
    Collision {
        /// Where it is.
        offset: u64,
    },
    /// Content of ours with the hash of other content.
    #[error("refused to write an object: its SHA-1 has the marks of a collision attack")]
    Forged,
    /// More than [`Limits`](crate::Limits) allows.
    #[error("refused the pack: {what} is more than {limit}")]
    TooLarge {
        /// The thing that exceeds its limit.
        what: &'static str,
        /// The limit, in objects or bytes.
        limit: u64,
    },
    /// An entry that makes no sense.
    #[error("failed to read the object at offset {offset}: {problem}")]
    Entry {
        /// Where it is.
        offset: u64,
        /// The problem.
        problem: &'static str,
    },
    /// A delta of something that was not sent.
    #[error("failed to read the object at offset {offset}: its base {name} was not sent")]
    FindBase {
        /// Where it is.
        offset: u64,
        /// The object that is missing.
        name: ObjectId,
    },
    /// Deltas whose bases are no objects, or that lead to each other.
    #[error("failed to resolve {0} deltas: their bases were not sent")]
    Unresolved(usize),
}

impl Error {
    pub(crate) fn delta(offset: u64, problem: &'static str) -> Self {
        Self::Entry { offset, problem }
    }
}
