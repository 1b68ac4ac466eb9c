//! Errors of a bucket.

use crate::IGNORE_FILE;
use crate::answer::Problem;

/// A bucket that could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is none of this name.
    #[error("bucket '{0}' not found")]
    NotFound(String),
    /// The store did not even begin to list it.
    #[error("failed to confirm existence of '{bucket}' bucket")]
    Confirm {
        /// Its name.
        bucket: String,
        /// Error of the store.
        #[source]
        source: Problem,
    },
    /// The ignore file could not be read.
    #[error("failed to get Etag for '{IGNORE_FILE}' object")]
    Ignore(#[source] Problem),
    /// The listing broke off.
    #[error(
        "indexation of objects from bucket '{bucket}' failed: listing objects from bucket '{bucket}' failed"
    )]
    List {
        /// Its name.
        bucket: String,
        /// Error of the store.
        #[source]
        source: Problem,
    },
    /// There are more objects than an artifact may have files.
    #[error(
        "indexation of objects from bucket '{bucket}' failed: more than {limit} objects; use spec.prefix or spec.ignore"
    )]
    TooMany {
        /// Its name.
        bucket: String,
        /// The limit.
        limit: u64,
    },
    /// An object could not be read.
    #[error("fetch from bucket '{bucket}' failed: failed to get '{key}' object")]
    Get {
        /// The bucket.
        bucket: String,
        /// The object.
        key: String,
        /// Error of the store.
        #[source]
        source: Problem,
    },
    /// An object, or all of them together, are too large.
    #[error(
        "fetch from bucket '{bucket}' failed: failed to get '{key}' object: {what} is larger than {limit} bytes"
    )]
    TooLarge {
        /// The bucket.
        bucket: String,
        /// The object.
        key: String,
        /// The missing thing.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// An object cannot be a file.
    #[error("fetch from bucket '{bucket}' failed: failed to resolve path for '{key}' object: {problem}")]
    Path {
        /// The bucket.
        bucket: String,
        /// The object.
        key: String,
        /// Why not.
        problem: crate::key::Error,
    },
    /// There is no room for temporary files.
    #[error("failed to write a temporary file")]
    Disk(#[source] std::io::Error),
}
