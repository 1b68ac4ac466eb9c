//! Sources that the watches have seen.

use api::source::{Bucket, ExternalArtifact, GitRepository, OCIRepository};
use kube::runtime::reflector::Store;

/// The sources that watches have seen.
#[derive(Clone)]
pub struct Sources {
    /// All GitRepositories.
    pub git_repositories: Store<GitRepository>,
    /// All OCIRepositories.
    pub oci_repositories: Store<OCIRepository>,
    /// All Buckets.
    pub buckets: Store<Bucket>,
    /// All ExternalArtifacts.
    pub external_artifacts: Store<ExternalArtifact>,
}
