//! Errors of a HelmChart.

use api::meta::condition_types::{BUILD_FAILED, FETCH_FAILED};
use api::meta::reasons;
use helm_package::Step;

use super::disposition::Disposition;
use crate::fetch::helm_chart;

/// Error of a HelmChart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HelmChartError {
    /// The source of a chart.
    #[error("failed to get source")]
    GetSource(#[source] remote_access::error::ReadError),
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
    Build(helm_package::Error),
    /// The address of a Helm repository, or of a chart in it.
    #[error(transparent)]
    Locate(helm_chart::Error),
    /// The chart of a Helm repository cannot be read.
    #[error(transparent)]
    Reach(helm_chart::Error),
    /// A Helm repository wants other credentials.
    #[error("failed to authenticate with the Helm repository: chart pull error")]
    Authenticate(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The provider of a Helm repository gives no credentials.
    #[error(transparent)]
    Credential(helm_chart::Error),
    /// A chart could not be found or downloaded.
    #[error("chart pull error")]
    Pull(#[source] helm_chart::Error),
    /// A chart is an archive that is not unpacked.
    #[error("chart pull error: failed to unpack chart")]
    Unpack(#[source] artifact::archive::ReadError),
    /// `spec.verify` of a chart that is in no container registry.
    #[error(
        "chart verification error: not implemented for charts that are in no container registry; remove spec.verify or use \
         a HelmRepository of type 'oci'"
    )]
    VerifyUnsupported,
    /// A chart has not the signature that `spec.verify` demands.
    #[error("chart verification error: failed to verify the signature using provider '{provider}'")]
    Verify {
        /// "cosign", "cosign keyless" or "notation".
        provider: &'static str,
        /// The error.
        #[source]
        source: oci_verify::Error,
    },
}

impl HelmChartError {
    /// Sorts the errors of looking for a chart in a repository.
    pub(crate) fn of_search(error: helm_chart::Error) -> super::Error {
        match error {
            helm_chart::Error::Url(_) => Self::Locate(error).into(),
            helm_chart::Error::Client(_) => Self::Reach(error).into(),
            helm_chart::Error::MakeFile(error) => super::Error::MakeDirectory(error),
            helm_chart::Error::Abandoned => super::Error::Abandoned,
            helm_chart::Error::Provider { .. } => Self::Credential(error).into(),
            error if error.is_unauthorized() => Self::Authenticate(Box::new(error)).into(),
            error => Self::Pull(error).into(),
        }
    }

    /// Returns whether the maker of the chart is not trusted, which has a condition of its own.
    pub(super) fn is_unverified(&self) -> bool {
        matches!(self, Self::Verify { .. } | Self::VerifyUnsupported)
    }

    /// The condition that reports it besides Ready, and the reason of both.
    pub(super) fn condition(&self) -> (&'static str, &'static str) {
        let reason = match self {
            Self::GetSource(_) => "SourceUnavailable",
            Self::NoSourceArtifact { .. } => "NoSourceArtifact",
            Self::Build(error) => return condition_of_step(error.step),
            Self::Locate(_) => reasons::URL_INVALID,
            Self::Authenticate(_) | Self::Credential(_) | Self::Reach(_) => reasons::AUTHENTICATION_FAILED,
            Self::Pull(_) | Self::Unpack(_) => "ChartPullError",
            Self::Verify { .. } | Self::VerifyUnsupported => return (BUILD_FAILED, "ChartVerificationError"),
        };
        (FETCH_FAILED, reason)
    }

    /// When to try again; None as for any other error.
    pub(super) fn disposition(&self) -> Option<Disposition> {
        match self {
            Self::Locate(_) | Self::VerifyUnsupported => Some(Disposition::Stalled),
            // As in Flux; a change of the source wakes the chart as well.
            Self::Build(error) if matches!(error.step, Step::Reference | Step::Metadata | Step::Values) => {
                Some(Disposition::Stalled)
            }
            Self::NoSourceArtifact { .. } => Some(Disposition::Wait),
            _ => None,
        }
    }
}

/// Returns the condition and the reason for a failed step of a build.
fn condition_of_step(step: Step) -> (&'static str, &'static str) {
    match step {
        Step::Reference => (FETCH_FAILED, "InvalidChartReference"),
        Step::Pull => (FETCH_FAILED, "ChartPullError"),
        Step::Metadata => (BUILD_FAILED, "MetadataPatchError"),
        Step::Values => (BUILD_FAILED, "ValuesFilesError"),
        Step::Dependencies => (BUILD_FAILED, "DependencyBuildError"),
        Step::Package => (BUILD_FAILED, "ChartPackageError"),
    }
}
