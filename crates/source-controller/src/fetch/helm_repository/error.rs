//! Errors of a Helm repository, in Flux's words, and the reason of the condition that reports them.

use api::meta::reasons;

use transport::{auth, http};

/// A repository whose index cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// `spec.url`.
    #[error("invalid Helm repository URL: {0}")]
    InvalidUrl(String),
    /// A Secret that cannot be read.
    #[error("failed to get {what} secret '{namespace}/{name}': {problem}")]
    Secret {
        /// Purpose of the URL.
        what: &'static str,
        /// Where.
        namespace: String,
        /// Which.
        name: String,
        /// Error of the API server.
        problem: String,
    },
    /// A Secret with a user and no password, or the other way round.
    #[error("failed to detect authentication methods: malformed basic auth: has '{1}' but is missing '{0}'")]
    Authentication(&'static str, &'static str),
    /// Credentials that cannot be sent.
    #[error("failed to detect authentication methods")]
    Credentials(#[source] auth::Error),
    /// TLS material that is incomplete.
    #[error("failed to construct Helm client's TLS config")]
    Tls(#[source] auth::Error),
    /// TLS material that cannot be used.
    #[error("failed to construct Helm client's TLS config")]
    Client(#[source] http::Error),
    /// The index could not be fetched.
    #[error("failed to fetch Helm repository index")]
    FetchIndex(#[from] FetchError),
    /// The fetched file is no index.
    #[error("failed to load Helm repository from index YAML")]
    LoadIndex(#[from] helm_index::Error),
    /// A blocking step was torn down, by shutdown or by a defect.
    #[error("failed to finish the work on the index")]
    Abandoned,
}

/// Something that could not be downloaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// The server did not give it.
    #[error(transparent)]
    Request(#[from] http::Error),
    /// It is larger than `--helm-index-max-size`.
    #[error("index exceeds the maximum index file size of {0} bytes")]
    TooLarge(u64),
    /// Its compression is broken.
    #[error("failed to decompress the answer")]
    Decompress(#[source] std::io::Error),
    /// It could not be written to disk.
    #[error("failed to write a temporary file")]
    Write(#[source] std::io::Error),
}

impl Error {
    /// The reason of its condition.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::InvalidUrl(_) => reasons::URL_INVALID,
            Self::Secret { .. }
            | Self::Authentication(..)
            | Self::Credentials(_)
            | Self::Tls(_)
            | Self::Client(_) => reasons::AUTHENTICATION_FAILED,
            Self::FetchIndex(_) | Self::Abandoned => reasons::FAILED,
            Self::LoadIndex(_) => reasons::INDEXATION_FAILED,
        }
    }

    /// Returns whether only a change of the object helps.
    pub(crate) fn is_final(&self) -> bool {
        matches!(self, Self::InvalidUrl(_))
    }
}
