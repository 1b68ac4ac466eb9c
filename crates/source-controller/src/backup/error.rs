//! Errors of the backup.

use artifact::store;
use bucket_client::remote::{DownloadError, Problem};

/// Why something is not in the bucket, or does not come out of it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// There are no credentials, or they cannot be used.
    #[error("failed to reach the bucket of the backup")]
    Connect(#[source] crate::error::Error),
    /// It refuses, or is not there.
    #[error("failed to {operation} '{key}' in the bucket of the backup")]
    Remote {
        /// The operation that failed.
        operation: &'static str,
        /// The object, or the beginning of names.
        key: String,
        /// Its answer.
        #[source]
        source: Problem,
    },
    /// An object could not be read.
    #[error("failed to get '{key}' from the bucket of the backup")]
    Get {
        /// The object.
        key: String,
        /// The error.
        #[source]
        source: DownloadError,
    },
    /// An object is not there, or not what its name says.
    #[error("failed to use '{key}' of the backup: {problem}")]
    Damaged {
        /// The object.
        key: String,
        /// The problem.
        problem: &'static str,
    },
    /// Our own store failed.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The disk failed.
    #[error("failed to write an artifact of the backup to the disk")]
    Disk(#[from] std::io::Error),
    /// The process ends.
    #[error("failed to finish: the process ends")]
    Abandoned,
}

/// An error of the bucket, with what was done and to what.
pub(super) fn failed(operation: &'static str, key: &str) -> impl FnOnce(Problem) -> Error {
    let key = key.to_owned();
    move |source| Error::Remote {
        operation,
        key,
        source,
    }
}
