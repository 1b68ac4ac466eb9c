//! Everything that can go wrong with one object, and what follows from it: condition, reason, and when to try again.
//!
//! Steps return these; `status` turns them into conditions and events, nobody else. The words are Flux's where Flux has
//! words. The whole chain is printed once, by [`Error::message`], and holds no credentials: no variant below does.

use std::time::Duration;

use api::meta::{condition_types, reasons};
use api::source::OCIProvider;
use helm_package::Step;
use transport::http;

use crate::fetch::{helm_chart, helm_repository};
use crate::kind::{chart_condition, git_repository};
use crate::provider_name::provider_name;
use crate::verify;

/// Reason of a spec that asks for what this controller cannot do.
const UNSUPPORTED: &str = "Unsupported";
/// Flux's reason for a repository without commits.
const EMPTY_REPOSITORY: &str = "EmptyGitRepository";

/// Reason of an artifact for which the store's volume has no room.
const STORAGE_FULL: &str = "StorageFull";

/// Handling of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// It may go away by itself: again, with growing pauses.
    Retry,
    /// The remote asked for a pause of this length: again after it.
    RetryAfter(Duration),
    /// It goes away when another source changes, which wakes this one.
    Wait,
    /// Only a change of the object helps.
    Stalled,
}

/// One variant for each step that can fail.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The spec asks for something that is not there yet. Better said than ignored: an unverified source is not what
    /// somebody who set `spec.verify` wants.
    #[error("{field} is not supported by this controller yet")]
    Unsupported {
        /// The field, and the value where only that is the matter.
        field: String,
    },
    /// `spec.url` of a GitRepository.
    #[error("failed to parse url '{url}'")]
    ParseUrl {
        /// As in the spec, without credentials.
        url: String,
        /// The error.
        #[source]
        source: url::ParseError,
    },
    /// `spec.url` of an OCIRepository.
    #[error("URL validation failed for '{url}'")]
    ValidateUrl {
        /// As in the spec.
        url: String,
        /// The error.
        #[source]
        source: oci_client::name::Error,
    },
    /// A Secret that the spec names.
    #[error(transparent)]
    ReadReference(#[from] crate::reconcile::read_error::ReadError),
    /// Pull secrets, or the service account that names them.
    #[error("failed to get credential")]
    GetCredential(#[source] CredentialError),
    /// The data of `spec.secretRef` of a GitRepository.
    #[error("failed to configure authentication options")]
    ConfigureAuthentication(#[source] transport::auth::Error),
    /// The private key of `spec.secretRef` of a GitRepository needs a passphrase.
    #[error(
        "SSH identity key is encrypted but no 'password' field was provided in the secret '{namespace}/{name}'"
    )]
    MissingPassphrase {
        /// Namespace of the secret.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Credentials of a provider for Git.
    #[error("failed to configure authentication options")]
    ConfigureProvider(#[source] cloud_identity::Error),
    /// A provider without what it takes.
    #[error("{problem}")]
    ProviderConfiguration {
        /// The problem.
        problem: String,
        /// True if only a change of the spec helps; a Secret may change by itself.
        is_final: bool,
    },
    /// Credentials of a provider for its registry.
    #[error("failed to get credential from {}", provider_name(*provider))]
    ProviderCredential {
        /// Which.
        provider: OCIProvider,
        /// Why not.
        #[source]
        source: cloud_identity::Error,
    },
    /// The controller's own identity, on a way that the object's owner chose: they could take the credentials there.
    #[error(
        "the controller's own identity at a cloud is not used together with {field} while references between namespaces \
         are locked (--no-cross-namespace-refs): leave {field} out, or use a ServiceAccount or a Secret"
    )]
    OwnIdentity {
        /// The field that leads elsewhere.
        field: &'static str,
    },
    /// `spec.proxySecretRef`.
    #[error("failed to configure proxy options")]
    ConfigureProxy(#[source] crate::reconcile::read_error::ProxyError),
    /// TLS material of an object.
    #[error("failed to generate transport for '{url}'")]
    GenerateTransport {
        /// As in the spec, without credentials.
        url: String,
        /// The error.
        #[source]
        source: TransportError,
    },
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
    VerifyGit(#[from] git_repository::verify::Error),
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
    /// The time was over before the artifact was made.
    #[error("timed out: failed to store the artifact in time")]
    StoreInTime(#[from] http::TimedOut),
    /// The artifact could not be pulled.
    #[error(transparent)]
    Pull(#[from] oci_client::Error),
    /// The artifact has not the signature that `spec.verify` demands.
    #[error("failed to verify the signature using provider '{provider}'")]
    VerifyArtifact {
        /// "cosign", "cosign keyless" or "notation".
        provider: &'static str,
        /// The error.
        #[source]
        source: Box<verify::oci::Error>,
    },
    /// A Helm repository, or its index.
    #[error(transparent)]
    HelmRepository(#[from] helm_repository::Error),
    /// The source of a chart.
    #[error("failed to get source")]
    GetSource(#[source] crate::reconcile::read_error::ReadError),
    /// The source of a chart has nothing yet.
    #[error("no artifact available for {kind} source '{name}'")]
    NoSourceArtifact {
        /// Its kind.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A chart could not be built.
    #[error(transparent)]
    Chart(helm_package::Error),
    /// The address of a Helm repository, or of a chart in it.
    #[error(transparent)]
    LocateChart(helm_chart::Error),
    /// The chart of a Helm repository cannot be read.
    #[error(transparent)]
    ReachChart(helm_chart::Error),
    /// A Helm repository wants other credentials.
    #[error("failed to authenticate with the Helm repository: chart pull error")]
    AuthenticateChart(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The provider of a Helm repository gives no credentials.
    #[error(transparent)]
    ChartCredential(helm_chart::Error),
    /// A chart could not be found or downloaded.
    #[error("chart pull error")]
    PullChart(#[source] helm_chart::Error),
    /// A chart is an archive that is not unpacked.
    #[error("chart pull error: failed to unpack chart")]
    UnpackChart(#[source] artifact::archive::ReadError),
    /// `spec.verify` of a chart that is in no container registry.
    #[error(
        "chart verification error: not implemented for charts that are in no container registry; remove spec.verify or use \
         a HelmRepository of type 'oci'"
    )]
    VerifyUnsupported,
    /// A chart has not the signature that `spec.verify` demands.
    #[error("chart verification error: failed to verify the signature using provider '{provider}'")]
    VerifyChart {
        /// "cosign", "cosign keyless" or "notation".
        provider: &'static str,
        /// The error.
        #[source]
        source: verify::oci::Error,
    },
    /// The layer is no archive, or a hostile one, or not the promised one.
    #[error("failed to extract layer contents from artifact")]
    ExtractLayer(#[source] LayerError),
    /// The layer could not be taken as it is.
    #[error("failed to copy layer from artifact")]
    CopyLayer(#[source] LayerError),
    /// A `.sourceignore` file at a path that is none.
    #[error("failed to load source ignore patterns from repository")]
    LoadIgnore(#[source] artifact::tree::PathError),
    /// A bucket could not be fetched.
    #[error(transparent)]
    Bucket(bucket_client::Error),
    /// The store of a Bucket cannot be asked.
    #[error(transparent)]
    BucketAccess(crate::kind::BucketAccessError),
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
    /// A ServiceAccount may not be used at a provider.
    #[error(
        "to use spec.serviceAccountName for provider authentication please enable the ObjectLevelWorkloadIdentity \
         feature gate in the controller"
    )]
    FeatureGateDisabled,
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

/// Problem of pull secrets.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialError {
    /// They cannot be read.
    #[error(transparent)]
    Read(#[from] crate::reconcile::read_error::ReadError),
    /// Their data is wrong.
    #[error(transparent)]
    Data(#[from] oci_client::credentials::Error),
}

/// Problem of TLS material.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TransportError {
    /// The Secret cannot be read.
    #[error(transparent)]
    Read(#[from] crate::reconcile::read_error::ReadError),
    /// Its data is incomplete.
    #[error(transparent)]
    Data(#[from] transport::auth::Error),
    /// No client can be made of it.
    #[error(transparent)]
    Build(#[from] http::Error),
}

/// Problem of a layer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayerError {
    /// Not an archive, or a hostile one.
    #[error(transparent)]
    Archive(#[from] artifact::archive::ReadError),
    /// Not what the manifest says.
    #[error(transparent)]
    Content(#[from] oci_client::layer::Error),
    /// It could not be kept for a moment.
    #[error("failed to write a temporary file")]
    Spool(#[source] std::io::Error),
}

impl Error {
    /// Sorts what a fetch from Git came to.
    pub(crate) fn of_git(url: String, source: git_client::Error) -> Self {
        match source {
            git_client::Error::EmptyRepository => Self::EmptyRepository(source),
            git_client::Error::MakeDirectory(source) => Self::MakeDirectory(source),
            git_client::Error::ReadPack(source) => Self::ReadCommit(source),
            git_client::Error::ConstructAuth(_)
            | git_client::Error::ResolveName { .. }
            | git_client::Error::MatchTag { .. }
            | git_client::Error::ParseRange(_)
            | git_client::Error::ParseCommit { .. }
            | git_client::Error::NotOnBranch { .. }
            | git_client::Error::InvalidReference { .. } => Self::ResolveReference(source),
            source => Self::Clone { url, source },
        }
    }

    /// Sorts what looking for a chart in a repository came to.
    pub(crate) fn of_chart(error: helm_chart::Error) -> Self {
        match error {
            helm_chart::Error::Url(_) => Self::LocateChart(error),
            helm_chart::Error::Client(_) => Self::ReachChart(error),
            helm_chart::Error::MakeFile(error) => Self::MakeDirectory(error),
            helm_chart::Error::Abandoned => Self::Abandoned,
            helm_chart::Error::Provider { .. } => Self::ChartCredential(error),
            error if error.is_unauthorized() => Self::AuthenticateChart(Box::new(error)),
            error => Self::PullChart(error),
        }
    }

    /// Returns whether it is the maker of a chart that is not trusted, which has a condition of its own.
    pub(crate) fn is_unverified_chart(&self) -> bool {
        matches!(self, Self::VerifyChart { .. } | Self::VerifyUnsupported)
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
        use condition_types::{BUILD_FAILED, FETCH_FAILED, SOURCE_VERIFIED, STORAGE_OPERATION_FAILED};
        let (type_, reason) = match self {
            Self::TimedOut { failed, .. } => return failed.condition(),
            Self::Unsupported { .. } => return (None, UNSUPPORTED),
            Self::ParseUrl { .. } | Self::ValidateUrl { .. } => (FETCH_FAILED, reasons::URL_INVALID),
            Self::ReadReference(_)
            | Self::GetCredential(_)
            | Self::ConfigureAuthentication(_)
            | Self::MissingPassphrase { .. }
            | Self::ConfigureProvider(_)
            | Self::ProviderCredential { .. }
            | Self::OwnIdentity { .. }
            | Self::ConfigureProxy(_)
            | Self::GenerateTransport { .. } => (FETCH_FAILED, reasons::AUTHENTICATION_FAILED),
            Self::Bucket(bucket_client::Error::Disk(_)) => {
                (STORAGE_OPERATION_FAILED, reasons::DIRECTORY_CREATION_FAILED)
            }
            Self::Bucket(_) => (FETCH_FAILED, reasons::BUCKET_OPERATION_FAILED),
            Self::BucketAccess(_) => (FETCH_FAILED, reasons::AUTHENTICATION_FAILED),
            Self::StsConfiguration(_) => (FETCH_FAILED, reasons::INVALID_STS_CONFIGURATION),
            Self::StsEndpoint { .. } => (FETCH_FAILED, reasons::URL_INVALID),
            Self::ProviderConfiguration { .. } => (FETCH_FAILED, reasons::INVALID_PROVIDER_CONFIGURATION),
            Self::FeatureGateDisabled => (FETCH_FAILED, reasons::FEATURE_GATE_DISABLED),
            Self::EmptyRepository(_) => (FETCH_FAILED, EMPTY_REPOSITORY),
            Self::Clone { .. }
            | Self::ResolveReference(_)
            | Self::SparseCheckout(_)
            | Self::Submodules(_)
            | Self::ContentTooLarge(_)
            | Self::ReadCommit(_) => (FETCH_FAILED, reasons::GIT_OPERATION_FAILED),
            Self::VerifyGit(error) => (condition_types::SOURCE_VERIFIED, error.reason()),
            Self::Include(error) => error.condition(),
            Self::Pull(oci_client::Error::DetermineTag { .. }) => {
                (FETCH_FAILED, reasons::READ_OPERATION_FAILED)
            }
            Self::Pull(oci_client::Error::DetermineDigest(_) | oci_client::Error::Pull { .. }) => {
                (FETCH_FAILED, reasons::OCI_PULL_FAILED)
            }
            Self::Pull(_) | Self::ExtractLayer(_) | Self::CopyLayer(_) => {
                (FETCH_FAILED, reasons::OCI_LAYER_OPERATION_FAILED)
            }
            Self::GetSource(_) => (FETCH_FAILED, "SourceUnavailable"),
            Self::NoSourceArtifact { .. } => (FETCH_FAILED, "NoSourceArtifact"),
            Self::Chart(error) => chart_condition(error.step),
            Self::LocateChart(_) => (FETCH_FAILED, reasons::URL_INVALID),
            Self::AuthenticateChart(_) | Self::ChartCredential(_) | Self::ReachChart(_) => {
                (FETCH_FAILED, reasons::AUTHENTICATION_FAILED)
            }
            Self::PullChart(_) | Self::UnpackChart(_) => (FETCH_FAILED, "ChartPullError"),
            Self::VerifyChart { .. } | Self::VerifyUnsupported => (BUILD_FAILED, "ChartVerificationError"),
            Self::VerifyArtifact { .. } => (SOURCE_VERIFIED, reasons::VERIFICATION_ERROR),
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
        match self {
            Self::TimedOut { failed, .. } => failed.disposition(),
            Self::Unsupported { .. }
            | Self::ParseUrl { .. }
            | Self::ValidateUrl { .. }
            | Self::StsConfiguration(_)
            | Self::StsEndpoint { .. }
            | Self::ProviderConfiguration { is_final: true, .. }
            | Self::FeatureGateDisabled
            | Self::LocateChart(_)
            | Self::VerifyUnsupported => Disposition::Stalled,
            // As in Flux; a change of the source wakes the chart as well.
            Self::Chart(error) if matches!(error.step, Step::Reference | Step::Metadata | Step::Values) => {
                Disposition::Stalled
            }
            Self::HelmRepository(error) if error.is_final() => Disposition::Stalled,
            Self::VerifyGit(error) if error.is_final() => Disposition::Stalled,
            Self::VerifyArtifact { source, .. } if source.is_about_the_spec() => Disposition::Stalled,
            Self::NoSourceArtifact { .. } => Disposition::Wait,
            _ => self
                .retry_after()
                .map_or(Disposition::Retry, Disposition::RetryAfter),
        }
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

/// Where a failed build is told.
pub(crate) fn condition_of(step: Step) -> (&'static str, &'static str) {
    use api::meta::condition_types::{BUILD_FAILED, FETCH_FAILED};
    match step {
        Step::Reference => (FETCH_FAILED, "InvalidChartReference"),
        Step::Pull => (FETCH_FAILED, "ChartPullError"),
        Step::Metadata => (BUILD_FAILED, "MetadataPatchError"),
        Step::Values => (BUILD_FAILED, "ValuesFilesError"),
        Step::Dependencies => (BUILD_FAILED, "DependencyBuildError"),
        Step::Package => (BUILD_FAILED, "ChartPackageError"),
    }
}

#[cfg(test)]
mod tests;
