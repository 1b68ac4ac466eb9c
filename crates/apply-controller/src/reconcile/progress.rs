//! Reads the progress of a delivery from the status of a Kustomization, for metrics.

use api::kustomize::{Kustomization, KustomizationStatus, SourceKind};
use api::meta::{HasConditions as _, condition_types, reasons};
use api::source::Source;
use controller_kit::metrics::Progress;
use jiff::Timestamp;
use kube::runtime::reflector::{ObjectRef, Store};

use super::observe;
use crate::sources::Sources;

/// A revision is delivered when it is the applied one.
pub fn delivery_progress(status: Option<&KustomizationStatus>) -> Progress<'_> {
    let Some(status) = status else {
        return Progress::default();
    };
    let ready = status.condition(condition_types::READY);
    let (delivered, attempted) = (&status.last_applied_revision, &status.last_attempted_revision);
    let waits = match ready.map(|ready| ready.reason.as_str()) {
        Some(reasons::DEPENDENCY_NOT_READY | reasons::FROZEN | reasons::HEALTH_CHECK_CANCELED) => true,
        // Either there is nothing to try, or what was tried lacks something, such as the path.
        Some(reasons::ARTIFACT_FAILED) => attempted == delivered,
        _ => false,
    };
    Progress {
        delivered: delivered.clone(),
        attempted: attempted.clone(),
        ready,
        waits,
    }
}

/// When a revision was made; None if the source has another one by now.
pub fn made_at(sources: &Sources, object: &Kustomization, revision: &str) -> Option<Timestamp> {
    match object.spec.source_ref.kind {
        SourceKind::GitRepository => artifact(&sources.git_repositories, object, revision),
        SourceKind::OCIRepository => artifact(&sources.oci_repositories, object, revision),
        SourceKind::Bucket => artifact(&sources.buckets, object, revision),
        SourceKind::ExternalArtifact => artifact(&sources.external_artifacts, object, revision),
    }
}

fn artifact<K>(sources: &Store<K>, object: &Kustomization, revision: &str) -> Option<Timestamp>
where
    K: Source + Clone + 'static,
{
    let name = ObjectRef::new(&object.spec.source_ref.name).within(observe::source_namespace(object));
    let source = sources.get(&name)?;
    let artifact = source
        .artifact()
        .filter(|artifact| artifact.has_revision(revision))?;
    Some(artifact.made_at())
}
