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
mod origin;
mod verification;

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
pub use origin::{DEFAULT_TIMEOUT, Source};
pub use verification::{ArtifactVerification, ChartVerification, OIDCIdentityMatch, SignatureProvider};

/// Version of every kind in this group.
pub const VERSION: &str = "v1";
