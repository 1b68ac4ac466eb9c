//! Errors of reading the objects that a spec refers to.

use std::fmt::Debug;

/// A reference that could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// Another object.
    #[error("{problem}")]
    Object {
        /// Where.
        namespace: String,
        /// Which; empty for all of them.
        name: String,
        /// Error of the API server, which names the object.
        problem: String,
    },
    /// A Secret.
    #[error("failed to get secret '{namespace}/{name}': {problem}")]
    Secret {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// Error of the API server.
        problem: String,
    },
    /// A ServiceAccount.
    #[error("failed to get service account '{namespace}/{name}': {problem}")]
    ServiceAccount {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// Error of the API server.
        problem: String,
    },
}

/// A proxy Secret that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// There is no address in it.
    #[error("secret '{namespace}/{name}': key 'address' not found")]
    MissingAddress {
        /// Where.
        namespace: String,
        /// Which.
        name: String,
    },
}
