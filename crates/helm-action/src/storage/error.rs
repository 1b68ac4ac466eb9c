//! Why a record could not be read or written. Helm's words where there are some.

use helm_release::record;

use crate::{Error, ErrorKind};

/// Why a record could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The name is none that a release can have.
    #[error("failed to list the revisions of a release: invalid label value: {0:?}")]
    Name(String),
    /// Someone else has made that revision meanwhile.
    #[error("release: already exists")]
    Exists,
    /// Someone else has taken that revision away.
    #[error("update: failed to update: secrets {0:?} not found")]
    Gone(String),
    /// A Secret does not hold a release.
    #[error("get: failed to decode data {key:?}")]
    Unreadable {
        /// The Secret's name.
        key: String,
        /// The error.
        source: record::Error,
    },
    /// A Secret cannot hold the release.
    #[error("failed to encode {key:?}")]
    Unwritable {
        /// The Secret's name.
        key: String,
        /// Why not.
        source: record::Error,
    },
    /// The API server did not do what it was asked.
    #[error("{doing}: {problem}")]
    Request {
        /// The request.
        doing: String,
        /// Message of the API server.
        problem: String,
    },
    /// Some of several revisions could not be taken away.
    #[error("encountered {errors} deletion errors. First is: {first}")]
    Several {
        /// How many.
        errors: usize,
        /// Part of the message already.
        first: Box<StorageError>,
    },
    /// The process ends.
    #[error("failed to read or write a release: the controller is stopping")]
    Stopped,
}

impl From<StorageError> for Error {
    fn from(error: StorageError) -> Self {
        match error {
            StorageError::Unwritable {
                source: source @ record::Error::TooLarge { .. },
                ..
            } => Self::new(ErrorKind::TooLarge, source.to_string()),
            StorageError::Exists => Self::new(ErrorKind::Pending, error.to_string()),
            StorageError::Gone(_) => Self::new(ErrorKind::NotFound, error.to_string()),
            other => Self::new(ErrorKind::Storage, error_chain::chain(&other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_too_large_is_told_from_all_else_and_whole_chains_are_shown() {
        let unwritable = |source| StorageError::Unwritable {
            key: "k".to_owned(),
            source,
        };
        let error = Error::from(unwritable(record::Error::TooLarge {
            name: "web".to_owned(),
            version: 1,
            size: 2_000_000,
        }));
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert!(error.to_string().contains(".helmignore"), "{error}");
        let error = Error::from(StorageError::Unreadable {
            key: "k".to_owned(),
            source: record::Error::Base64,
        });
        assert_eq!(error.kind(), ErrorKind::Storage);
        assert_eq!(
            error.to_string(),
            "get: failed to decode data \"k\": failed to decode the release: its data is not base64"
        );
        assert_eq!(Error::from(StorageError::Exists).kind(), ErrorKind::Pending);
    }
}
