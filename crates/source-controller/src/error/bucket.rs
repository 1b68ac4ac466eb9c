//! Errors of a Bucket.

use api::meta::condition_types::{FETCH_FAILED, STORAGE_OPERATION_FAILED};
use api::meta::reasons;

use super::disposition::Disposition;

/// Error of a Bucket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BucketError {
    /// A bucket could not be fetched.
    #[error(transparent)]
    Fetch(bucket_client::Error),
    /// The store of a Bucket cannot be asked.
    #[error(transparent)]
    Access(crate::kind::BucketAccessError),
    /// `spec.sts` of a Bucket.
    #[error("{0}")]
    StsConfiguration(String),
    /// `spec.sts.endpoint` of a Bucket.
    #[error("failed to parse STS endpoint '{endpoint}'")]
    StsEndpoint {
        /// As in the spec.
        endpoint: String,
        /// The error.
        #[source]
        source: url::ParseError,
    },
}

impl BucketError {
    /// The condition that reports it besides Ready, and the reason of both.
    pub(super) fn condition(&self) -> (&'static str, &'static str) {
        let reason = match self {
            Self::Fetch(bucket_client::Error::Disk(_)) => {
                return (STORAGE_OPERATION_FAILED, reasons::DIRECTORY_CREATION_FAILED);
            }
            Self::Fetch(_) => reasons::BUCKET_OPERATION_FAILED,
            Self::Access(_) => reasons::AUTHENTICATION_FAILED,
            Self::StsConfiguration(_) => reasons::INVALID_STS_CONFIGURATION,
            Self::StsEndpoint { .. } => reasons::URL_INVALID,
        };
        (FETCH_FAILED, reason)
    }

    /// When to try again; None as for any other error.
    pub(super) fn disposition(&self) -> Option<Disposition> {
        matches!(self, Self::StsConfiguration(_) | Self::StsEndpoint { .. }).then_some(Disposition::Stalled)
    }
}
