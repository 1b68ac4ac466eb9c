//! Sources of charts that the watches have seen.

use api::source::{ExternalArtifact, HelmChart, OCIRepository};
use kube::runtime::reflector::Store;

/// The sources of charts that watches have seen.
#[derive(Clone)]
pub struct Sources {
    /// All HelmCharts.
    pub charts: Store<HelmChart>,
    /// All OCIRepositories.
    pub oci_repositories: Store<OCIRepository>,
    /// All ExternalArtifacts.
    pub external_artifacts: Store<ExternalArtifact>,
}
