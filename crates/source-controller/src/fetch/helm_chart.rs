//! Charts of Helm repositories: which version is meant, and its archive.
//!
//! In: how a repository is reached ([`Access`]), the name of a chart and a range of versions. Out: first the version
//! ([`find`]), then the archive in a temporary file ([`download`]), whose size is bounded and whose digest is checked where
//! there is one. Charts of sources that are trees of files are read through [`tree`]. Packaging is helm-package's.

pub(crate) mod oci;
pub(crate) mod tree;

use std::fs::File;

use api::meta::Duration;
use api::source::OCIProvider;
use cloud_identity::Identity;

use crate::reconcile::fetch::Fetcher;
use oci_client::{self as registry, credentials};
use transport::auth::SecretData;
use transport::http;

/// How a Helm repository is reached.
#[derive(Clone)]
pub(crate) struct Access {
    /// As in the spec.
    pub(crate) url: String,
    /// `spec.insecure`.
    pub(crate) insecure: bool,
    pub(crate) timeout: Duration,
    pub(crate) secret: Option<SecretData>,
    pub(crate) certificates: Option<SecretData>,
    /// For registries of cloud providers.
    pub(crate) login: Option<Login>,
}

/// Login: whose credentials, and for which registry.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) provider: OCIProvider,
    pub(crate) identity: Identity,
}

/// A version of a chart that a repository has.
pub(crate) struct Found {
    /// As it was asked for.
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) place: oci::Place,
}

/// A chart that could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The address of the repository, or the chart's in it.
    #[error("invalid Helm repository URL: {0}")]
    Url(String),
    /// Secrets that cannot be used.
    #[error(transparent)]
    Client(ClientError),
    /// The provider gives no credentials.
    #[error("failed to get credential from '{provider}'")]
    Provider {
        /// Which.
        provider: &'static str,
        /// Why not.
        #[source]
        source: cloud_identity::Error,
    },
    /// The version could not be found out.
    #[error("failed to get chart version for remote reference")]
    FindVersion(#[source] oci::Error),
    /// The archive could not be fetched.
    #[error("failed to download chart for remote reference")]
    Download(#[source] DownloadError),
    /// No room, or no permission, for temporary files.
    #[error("failed to create temporary file for chart")]
    MakeFile(#[source] std::io::Error),
    /// A blocking step was torn down.
    #[error("failed to finish the download")]
    Abandoned,
}

/// Secrets of a repository that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// A pull secret.
    #[error("failed to configure OCI registry authentication")]
    Credentials(#[from] credentials::Error),
    /// TLS material.
    #[error("failed to construct Helm client's TLS config")]
    Tls(#[from] transport::auth::Error),
    /// No client can be made of it.
    #[error("failed to construct Helm client's TLS config")]
    Build(#[from] http::Error),
}

/// Why an archive was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DownloadError {
    /// The registry refused, or was not reached.
    #[error(transparent)]
    Pull(Box<registry::Error>),
    /// Not what the manifest says.
    #[error(transparent)]
    Content(#[from] registry::layer::Error),
    /// It could not be read or kept.
    #[error("failed to write chart to file")]
    Spool(#[from] std::io::Error),
    /// Larger than `--helm-chart-max-size`.
    #[error("size of chart '{chart}' exceeds '{limit}' bytes limit")]
    TooLarge {
        /// Name and version.
        chart: String,
        /// The limit.
        limit: u64,
    },
}

impl Error {
    /// Returns whether the repository wants other credentials.
    pub(crate) fn is_unauthorized(&self) -> bool {
        match self {
            Self::FindVersion(error) => error.is_unauthorized(),
            Self::Download(DownloadError::Pull(error)) => is_refused(error),
            _ => false,
        }
    }
}

/// Returns whether a registry refused the credentials.
fn is_refused(error: &registry::Error) -> bool {
    match error {
        registry::Error::DetermineDigest(registry::PullError::Registry(error))
        | registry::Error::Pull {
            source: registry::PullError::Registry(error),
            ..
        }
        | registry::Error::FetchLayer {
            source: registry::PullError::Registry(error),
            ..
        } => error.is_unauthorized(),
        _ => false,
    }
}

/// Finds the newest version of a chart in a range; without a range the newest that is no pre-release.
pub(crate) async fn find(
    access: &Access,
    name: &str,
    range: &str,
    fetcher: &Fetcher,
) -> Result<Found, Error> {
    oci::find(access, name, range, fetcher).await
}

/// Downloads the archive into a temporary file, which is at its beginning then.
pub(crate) async fn download(found: &Found, fetcher: &Fetcher) -> Result<File, Error> {
    oci::download(found, fetcher).await
}
