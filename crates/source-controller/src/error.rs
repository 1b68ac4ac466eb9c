//! Everything that can go wrong with one object, and what follows from it: condition, reason, and when to try again.
//!
//! Steps return these; `status` turns them into conditions and events, no one else. The words are Flux's where Flux has
//! words. The whole chain is printed once, by [`Error::message`], and holds no credentials: no variant below does.

mod access;
mod bucket;
mod chart;
mod disposition;
mod git;
mod layer;
mod oci;

use std::time::Duration;

use api::meta::condition_types::{FETCH_FAILED, POLICIES_MET, STORAGE_OPERATION_FAILED};
use api::meta::reasons;
use transport::http;
use verification_policy::sources::Refusal;

use crate::fetch::helm_repository;
use crate::kind::git_repository;

pub(crate) use access::{AccessError, CredentialError, TransportError};
pub(crate) use bucket::BucketError;
pub(crate) use chart::HelmChartError;
pub(crate) use disposition::Disposition;
pub(crate) use git::GitError;
pub(crate) use layer::LayerError;
pub(crate) use oci::OciError;

/// Reason of a spec that asks for what this controller cannot do.
const UNSUPPORTED: &str = "Unsupported";
/// Reason of an artifact for which the store's volume has no room.
const STORAGE_FULL: &str = "StorageFull";

/// One variant for each kind, and for each step that all kinds share.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The spec asks for something that is not there yet. Better said than ignored: an unverified source is not what
    /// someone who set `spec.verify` wants.
    #[error("{field} is not supported by this controller yet")]
    Unsupported {
        /// The field, and the value where only that is the matter.
        field: String,
    },
    /// A Secret that the spec names.
    #[error(transparent)]
    ReadReference(#[from] remote_access::error::ReadError),
    /// The time was over before the artifact was made.
    #[error("timed out: failed to store the artifact in time")]
    StoreInTime(#[from] http::TimedOut),
    /// Credentials or a connection.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A VerificationPolicy does not let it in.
    #[error(transparent)]
    Policy(#[from] Refusal),
    /// A GitRepository.
    #[error(transparent)]
    Git(#[from] GitError),
    /// An OCIRepository.
    #[error(transparent)]
    Oci(#[from] OciError),
    /// A Bucket.
    #[error(transparent)]
    Bucket(#[from] BucketError),
    /// A HelmChart.
    #[error(transparent)]
    Chart(#[from] HelmChartError),
    /// A Helm repository, or its index.
    #[error(transparent)]
    HelmRepository(#[from] helm_repository::Error),
    /// A `.sourceignore` file at a path that is none.
    #[error("failed to load source ignore patterns from repository")]
    LoadIgnore(#[source] artifact::tree::PathError),
    /// The store refused.
    #[error("unable to archive artifact to storage")]
    Store(#[from] artifact::store::Error),
    /// There is no room, or no permission, for temporary files.
    #[error("failed to create temporary working directory")]
    MakeDirectory(#[source] std::io::Error),
    /// A blocking step was torn down, by shutdown or by a defect.
    #[error("failed to finish the work on the artifact")]
    Abandoned,
    /// A remote took longer than the object gives it.
    #[error("{}; spec.timeout is {timeout}", error_chain::chain(&**failed))]
    TimedOut {
        /// The work that could not be finished.
        failed: Box<Self>,
        /// The time that it had.
        timeout: api::meta::Duration,
    },
}

impl From<remote_access::error::IdentityError> for Error {
    fn from(error: remote_access::error::IdentityError) -> Self {
        Self::Access(error.into())
    }
}

impl From<remote_access::git::Error> for Error {
    fn from(error: remote_access::git::Error) -> Self {
        match error {
            remote_access::git::Error::Read(error) => error.into(),
            remote_access::git::Error::Identity(error) => error.into(),
            remote_access::git::Error::ConfigureProxy(error) => AccessError::ConfigureProxy(error).into(),
            remote_access::git::Error::Build { url, source } => {
                let source = TransportError::Build(source);
                AccessError::GenerateTransport { url, source }.into()
            }
            remote_access::git::Error::NoKey => Self::Unsupported {
                field: "spec.recurseSubmodules with a submodule over ssh in a repository over http"
                    .to_owned(),
            },
            error => GitError::Reach(error).into(),
        }
    }
}

impl Error {
    /// Returns whether the maker of a chart is not trusted, which has a condition of its own.
    pub(crate) fn is_unverified_chart(&self) -> bool {
        matches!(self, Self::Chart(error) if error.is_unverified())
    }

    /// The same, with the time that the object gives its remote if that was too short.
    pub(crate) fn after(self, timeout: api::meta::Duration) -> Self {
        match find::<http::TimedOut>(&self) {
            Some(_) => Self::TimedOut {
                failed: Box::new(self),
                timeout,
            },
            None => self,
        }
    }

    /// The condition that reports it besides Ready, if it has one, and the reason of both.
    pub(crate) fn condition(&self) -> (Option<&'static str>, &'static str) {
        let (type_, reason) = match self {
            Self::TimedOut { failed, .. } => return failed.condition(),
            Self::Unsupported { .. } => return (None, UNSUPPORTED),
            Self::Policy(_) => (POLICIES_MET, reasons::VERIFICATION_ERROR),
            Self::Access(error) => error.condition(),
            Self::Git(error) => error.condition(),
            Self::Oci(error) => error.condition(),
            Self::Bucket(error) => error.condition(),
            Self::Chart(error) => error.condition(),
            Self::ReadReference(_) => (FETCH_FAILED, reasons::AUTHENTICATION_FAILED),
            Self::HelmRepository(error) => (FETCH_FAILED, error.reason()),
            Self::LoadIgnore(_) => (STORAGE_OPERATION_FAILED, "SourceIgnoreError"),
            Self::Store(artifact::store::Error::Full { .. }) => (STORAGE_OPERATION_FAILED, STORAGE_FULL),
            Self::Store(_) | Self::StoreInTime(_) => {
                (STORAGE_OPERATION_FAILED, reasons::ARCHIVE_OPERATION_FAILED)
            }
            Self::MakeDirectory(_) => (STORAGE_OPERATION_FAILED, reasons::DIRECTORY_CREATION_FAILED),
            Self::Abandoned => (STORAGE_OPERATION_FAILED, reasons::FAILED),
        };
        (Some(type_), reason)
    }

    /// When to try again.
    pub(crate) fn disposition(&self) -> Disposition {
        let of_kind = match self {
            Self::TimedOut { failed, .. } => Some(failed.disposition()),
            Self::Unsupported { .. } => Some(Disposition::Stalled),
            Self::Policy(refusal) if refusal.is_final => Some(Disposition::Stalled),
            Self::HelmRepository(error) if error.is_final() => Some(Disposition::Stalled),
            Self::Access(error) => error.disposition(),
            Self::Git(error) => error.disposition(),
            Self::Oci(error) => error.disposition(),
            Self::Bucket(error) => error.disposition(),
            Self::Chart(error) => error.disposition(),
            _ => None,
        };
        let retry = || {
            self.retry_after()
                .map_or(Disposition::Retry, Disposition::RetryAfter)
        };
        of_kind.unwrap_or_else(retry)
    }

    /// The pause that the remote asked for, whichever step it refused.
    fn retry_after(&self) -> Option<Duration> {
        find::<http::RetryAfter>(self).map(|asked| asked.pause())
    }

    /// The error with all its causes, on one line.
    pub(crate) fn message(&self) -> String {
        error_chain::chain(self)
    }
}

impl From<git_repository::verify::Error> for Error {
    fn from(error: git_repository::verify::Error) -> Self {
        GitError::from(error).into()
    }
}

impl From<git_repository::include::Error> for Error {
    fn from(error: git_repository::include::Error) -> Self {
        GitError::from(error).into()
    }
}

impl From<git_repository::submodules::Error> for Error {
    fn from(error: git_repository::submodules::Error) -> Self {
        GitError::from(error).into()
    }
}

impl From<git_client::pack::Error> for Error {
    fn from(error: git_client::pack::Error) -> Self {
        GitError::from(error).into()
    }
}

impl From<oci_client::Error> for Error {
    fn from(error: oci_client::Error) -> Self {
        OciError::from(error).into()
    }
}

/// The cause of this type in a chain.
fn find<'a, T: std::error::Error + 'static>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a T> {
    let mut error = error;
    loop {
        match error.downcast_ref::<T>() {
            Some(found) => return Some(found),
            None => error = error.source()?,
        }
    }
}

#[cfg(test)]
mod tests;
