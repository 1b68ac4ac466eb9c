//! Errors of a GitRepository.

use api::meta::{condition_types, reasons};

use remote_access::git;

use super::disposition::Disposition;
use crate::kind::git_repository;

/// Reason of a repository without a commit.
const EMPTY_REPOSITORY: &str = "EmptyGitRepository";

/// Error of a GitRepository.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    /// How it is reached.
    #[error(transparent)]
    Reach(git::Error),
    /// The repository could not be fetched.
    #[error("failed to checkout and determine revision: unable to clone '{url}'")]
    Clone {
        /// Without credentials.
        url: String,
        /// Why not.
        #[source]
        source: git_client::Error,
    },
    /// The remote answered, and has not what `spec.ref` asks for.
    #[error("failed to checkout and determine revision")]
    ResolveReference(#[source] git_client::Error),
    /// The repository has no commit.
    #[error(transparent)]
    EmptyRepository(git_client::Error),
    /// `spec.sparseCheckout` names a folder that is not there.
    #[error("failed to sparse checkout directories : sparse checkout dir '{0}' does not exist in repository")]
    SparseCheckout(String),
    /// `spec.verify` of a GitRepository.
    #[error(transparent)]
    Verify(#[from] git_repository::verify::Error),
    /// `spec.include`.
    #[error(transparent)]
    Include(#[from] git_repository::include::Error),
    /// `spec.recurseSubmodules`.
    #[error("failed to checkout and determine revision: unable to find the submodules")]
    Submodules(#[from] git_repository::submodules::Error),
    /// The received objects cannot be read.
    #[error("failed to read the content of the repository")]
    ReadCommit(#[from] git_client::pack::Error),
    /// More becomes part of the artifact than is taken of anybody.
    #[error("refused the content of the repository: {0}; leave out what is not needed with spec.ignore")]
    ContentTooLarge(String),
}

impl GitError {
    /// Sorts the errors of a fetch from Git.
    pub(crate) fn of_fetch(url: String, source: git_client::Error) -> super::Error {
        match source {
            git_client::Error::EmptyRepository => Self::EmptyRepository(source).into(),
            git_client::Error::MakeDirectory(source) => super::Error::MakeDirectory(source),
            git_client::Error::ReadPack(source) => Self::ReadCommit(source).into(),
            git_client::Error::ConstructAuth(_)
            | git_client::Error::ResolveName { .. }
            | git_client::Error::MatchTag { .. }
            | git_client::Error::ParseRange(_)
            | git_client::Error::ParseCommit { .. }
            | git_client::Error::NotOnBranch { .. }
            | git_client::Error::InvalidReference { .. } => Self::ResolveReference(source).into(),
            source => Self::Clone { url, source }.into(),
        }
    }

    /// The condition that reports it besides Ready, if it has one, and the reason of both.
    pub(super) fn condition(&self) -> (&'static str, &'static str) {
        let reason = match self {
            Self::Verify(error) => return (condition_types::SOURCE_VERIFIED, error.reason()),
            Self::Include(error) => return error.condition(),
            Self::Reach(git::Error::ParseUrl { .. }) => reasons::URL_INVALID,
            Self::Reach(git::Error::ProviderConfiguration { .. }) => reasons::INVALID_PROVIDER_CONFIGURATION,
            Self::Reach(_) => reasons::AUTHENTICATION_FAILED,
            Self::EmptyRepository(_) => EMPTY_REPOSITORY,
            Self::Clone { .. }
            | Self::ResolveReference(_)
            | Self::SparseCheckout(_)
            | Self::Submodules(_)
            | Self::ContentTooLarge(_)
            | Self::ReadCommit(_) => reasons::GIT_OPERATION_FAILED,
        };
        (condition_types::FETCH_FAILED, reason)
    }

    /// When to try again; None as for any other error.
    pub(super) fn disposition(&self) -> Option<Disposition> {
        match self {
            Self::Reach(
                git::Error::ParseUrl { .. } | git::Error::ProviderConfiguration { is_final: true, .. },
            ) => Some(Disposition::Stalled),
            Self::Verify(error) if error.is_final() => Some(Disposition::Stalled),
            _ => None,
        }
    }
}
