//! Group `source.toolkit.fluxcd.io`: where content comes from.
//!
//! source-controller writes the status of these kinds; everything downstream reads `status.artifact` through
//! [`Source`].

mod bucket;
mod external_artifact;
mod git_repository;
mod helm_chart;
mod helm_repository;
mod oci_repository;
mod verification;

use crate::meta::{Artifact, Duration, StatusObject};

pub use bucket::{Bucket, BucketProvider, BucketSpec, BucketStatus, BucketSts, StsProvider};
pub use external_artifact::{ExternalArtifact, ExternalArtifactSpec, ExternalArtifactStatus};
pub use git_repository::{
    GitProvider, GitRepository, GitRepositoryInclude, GitRepositoryRef, GitRepositorySpec,
    GitRepositoryStatus, GitRepositoryVerification, GitVerificationMode,
};
pub use helm_chart::{
    ChartSourceKind, HelmChart, HelmChartSpec, HelmChartStatus, LocalHelmChartSourceReference,
    ReconcileStrategy,
};
pub use helm_repository::{HelmRepository, HelmRepositorySpec, HelmRepositoryStatus, HelmRepositoryType};
pub use oci_repository::{
    OCILayerOperation, OCILayerSelector, OCIProvider, OCIRepository, OCIRepositoryRef, OCIRepositorySpec,
    OCIRepositoryStatus,
};
pub use verification::{ArtifactVerification, ChartVerification, OIDCIdentityMatch, SignatureProvider};

/// Version of every kind in this group.
pub const VERSION: &str = "v1";

/// How long an operation on a remote may take if the spec does not say: the default in the CRDs.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// A kind that produces an artifact.
pub trait Source: StatusObject {
    /// The latest artifact, if there is one.
    fn artifact(&self) -> Option<&Artifact>;

    /// How often the origin is asked for something new.
    fn interval(&self) -> Duration;

    /// How long an operation on the remote may take.
    fn timeout(&self) -> Duration;
}
