//! Errors of reading an artifact.

use std::io;

use crate::{
    archive,
    digest::{Digest, ParseError},
    tree::{self, PathError},
};

/// Characters of the service's words that are kept.
const MAX_REASON: usize = 500;

/// Calls about parts of an artifact.
const PARTS: [&str; 2] = ["GetTree", "ReadBlobs"];

/// Result of the client's operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An artifact, or a part of it, could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The artifact, or a path in it, is not there (any more).
    #[error("failed to find {what}")]
    NotFound {
        /// A URL, a path or a digest.
        what: String,
    },
    /// A part of an artifact is not there any more: the artifact was replaced while it was read, or its storage was lost.
    #[error("failed to find {what}, a part of an artifact that is not there any more")]
    Gone {
        /// What is missing, with its digest.
        what: String,
    },
    /// The received bytes have another digest than the requested one. They are discarded, and the message omits their digest:
    /// a tenant could use it to request them.
    #[error("failed to verify {what}: its digest is not {expected}")]
    DigestMismatch {
        /// The digest that was asked for.
        expected: Digest,
        /// The digest of what came.
        actual: Digest,
        /// The object that was asked for.
        what: String,
    },
    /// The address in the status must not be followed for this object.
    #[error("failed to fetch the artifact of {object}: its address leads to where its artifacts cannot be")]
    Forbidden {
        /// Kind, namespace and name.
        object: String,
    },
    /// The artifact's digest has another form or algorithm.
    #[error("failed to read the digest of the artifact")]
    ParseDigest(#[source] ParseError),
    /// The path leaves the tree.
    #[error("failed to look up a path of the artifact")]
    Path(#[from] PathError),
    /// A folder where a file is expected, or the other way round.
    #[error("failed to read {path:?}: it is not a {expected}")]
    Kind {
        /// The path.
        path: String,
        /// The digest that the caller asked for.
        expected: &'static str,
    },
    /// The file or archive is larger than the limit.
    #[error("failed to read {what}: {size} bytes are more than {limit}")]
    TooLarge {
        /// A URL or a path.
        what: String,
        /// Bytes that it has, at least.
        size: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The endpoint of the service is no URL.
    #[error("failed to use the artifact service at {endpoint:?}")]
    Endpoint {
        /// The endpoint in the options.
        endpoint: String,
        /// The error.
        source: tonic::transport::Error,
    },
    /// There is no usable token for calls of the service.
    #[error("failed to read the token for the artifact service")]
    Token(#[source] io::Error),
    /// The service does not know who calls, or does not let the caller.
    #[error("failed to call {call} of the artifact service: {reason}")]
    Refused {
        /// The method.
        call: &'static str,
        /// The missing object, in the service's words.
        reason: String,
    },
    /// The service answered with an error.
    #[error("failed to call {call} of the artifact service")]
    Call {
        /// The method.
        call: &'static str,
        /// Its answer.
        source: Box<tonic::Status>,
    },
    /// The service answered something else than was asked, or stopped in the middle.
    #[error("failed to understand the answer of {call}: {reason}")]
    Answer {
        /// The method.
        call: &'static str,
        /// The problem.
        reason: String,
        /// True if the answer is only not complete.
        incomplete: bool,
    },
    /// The HTTP client could not be made.
    #[error("failed to set up the HTTP client")]
    SetUpHttp(#[source] reqwest::Error),
    /// The artifact's URL is none.
    #[error("failed to use the URL {url:?} of the artifact")]
    Url {
        /// The URL.
        url: String,
    },
    /// The connection failed or broke.
    #[error("failed to download {url}")]
    Download {
        /// The URL.
        url: String,
        /// Error of the HTTP client.
        source: reqwest::Error,
    },
    /// The server answered with an error.
    #[error("failed to download {url}: status {status}")]
    Status {
        /// The URL.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The downloaded archive is refused.
    #[error("failed to unpack the artifact")]
    Unpack(#[source] archive::ReadError),
    /// The service's folder is none.
    #[error("failed to read a folder of the artifact")]
    Directory(#[source] tree::Error),
    /// The store to which an artifact is copied failed, or what came is not that artifact.
    #[cfg(feature = "store")]
    #[error("failed to store the copy of an artifact")]
    Store(#[from] crate::store::Error),
    /// The temporary file failed.
    #[error("failed to {operation} the downloaded artifact")]
    Spool {
        /// The operation that failed.
        operation: &'static str,
        /// Error of the file system.
        source: io::Error,
    },
}

impl Error {
    /// Returns whether the same call may succeed a moment later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        use tonic::Code;
        match self {
            Self::Call { source, .. } => matches!(
                source.code(),
                Code::Unavailable
                    | Code::Unknown
                    | Code::Internal
                    | Code::Cancelled
                    | Code::Aborted
                    | Code::DeadlineExceeded
                    | Code::ResourceExhausted
            ),
            Self::Answer { incomplete, .. } => *incomplete,
            Self::Download { source, .. } => !source.is_builder() && !source.is_redirect(),
            Self::Status { status, .. } => *status >= 500 || *status == 429 || *status == 408,
            _ => false,
        }
    }

    /// Returns whether the artifact, or a part of it, is not there (any more), so that its object will soon name another.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Gone { .. })
    }

    /// Returns whether the service refused the caller, or would: there is no token to show.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. } | Self::Token(_))
    }

    pub(super) fn call(
        call: &'static str,
        what: impl FnOnce() -> String,
    ) -> impl FnOnce(tonic::Status) -> Self {
        move |status| match status.code() {
            tonic::Code::NotFound if PARTS.contains(&call) => Self::Gone { what: what() },
            tonic::Code::NotFound => Self::NotFound { what: what() },
            tonic::Code::Unauthenticated | tonic::Code::PermissionDenied => Self::Refused {
                call,
                reason: status.message().chars().take(MAX_REASON).collect(),
            },
            _ => Self::Call {
                call,
                source: Box::new(status),
            },
        }
    }

    pub(super) fn answer(call: &'static str, reason: impl Into<String>) -> Self {
        Self::Answer {
            call,
            reason: reason.into(),
            incomplete: false,
        }
    }

    pub(super) fn incomplete(call: &'static str) -> Self {
        Self::Answer {
            call,
            reason: "it ended early".to_owned(),
            incomplete: true,
        }
    }

    pub(super) fn spool(operation: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Spool { operation, source }
    }
}
