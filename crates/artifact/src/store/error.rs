//! Errors of the store.

use std::io;

use crate::digest::Digest;
use crate::{archive, tree};

/// Object that a digest names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// The tar.gz of an artifact.
    Archive,
    /// The bytes of a file.
    Blob,
    /// The canonical text of a folder.
    Directory,
}

/// An operation of the store that failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store has nothing of this digest (any more).
    #[error("failed to find {what} {digest}")]
    NotFound {
        /// The object that was asked for.
        what: What,
        /// Its digest.
        digest: Digest,
    },
    /// The bytes on disk are not what their name says.
    #[error("failed to verify {what} {digest}")]
    Corrupt {
        /// The object that was read.
        what: What,
        /// The digest that it should have.
        digest: Digest,
    },
    /// The offset lies behind the end of the content.
    #[error("failed to read {what} {digest} from offset {offset}: it has {size} bytes")]
    Offset {
        /// The object that was asked for.
        what: What,
        /// Its digest.
        digest: Digest,
        /// The offset that was asked for.
        offset: u64,
        /// Bytes that there are.
        size: u64,
    },
    /// The volume has no room. Nothing was stored, and what was there before is as it was.
    #[error("failed to {operation} in the artifact store: its volume is full, enlarge it or remove sources")]
    Full {
        /// The operation that failed.
        operation: &'static str,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file system refused.
    #[error("failed to {operation} in the artifact store")]
    Io {
        /// The operation that failed.
        operation: &'static str,
        /// Its error.
        source: io::Error,
    },
    /// The reader of a file that was to be added failed.
    #[error("failed to read {path:?} of the source")]
    ReadSource {
        /// Path in the tree.
        path: String,
        /// Error of the reader.
        source: io::Error,
    },
    /// The caller cancelled the ingest, see [`Ingest::until`].
    #[error("failed to finish the artifact: cancelled")]
    Stopped,
    /// A file cannot stand in a tree.
    #[error("failed to add a file to the artifact")]
    AddFile(#[source] tree::BuildError),
    /// Kind, namespace, name or file name of an artifact cannot be part of a path.
    #[error("failed to name the artifact: {0:?} cannot be part of its path")]
    Name(String),
    /// The archive could not be written.
    #[error("failed to write the archive of the artifact")]
    WriteArchive(#[source] archive::WriteError),
    /// The record could not be turned to JSON.
    #[error("failed to encode the record of the artifact")]
    EncodeRecord(#[source] serde_json::Error),
}

/// Result of the store's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl std::fmt::Display for What {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Self::Archive => "archive",
            Self::Blob => "blob",
            Self::Directory => "folder",
        })
    }
}

impl Error {
    /// A full disk is one, whoever meets it.
    pub(super) fn of_archive(error: archive::WriteError) -> Self {
        match error {
            archive::WriteError::Write { source, .. } if is_full(&source) => {
                Self::io("write an archive")(source)
            }
            error => Self::WriteArchive(error),
        }
    }

    pub(super) fn io(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            if is_full(&source) {
                Self::Full { operation, source }
            } else {
                Self::Io { operation, source }
            }
        }
    }
}

pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}
