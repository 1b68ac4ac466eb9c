//! What the status of a Kustomization says of delivery, for the metrics of it.

use api::kustomize::{Kustomization, KustomizationStatus, SourceKind};
use api::meta::{HasConditions as _, condition_types};
use api::source::Source;
use controller_kit::metrics::Progress;
use jiff::Timestamp;
use kube::runtime::reflector::{ObjectRef, Store};

use super::observe::{self, Caches};

/// A revision is delivered when it is the applied one.
pub fn of(status: Option<&KustomizationStatus>) -> Progress<'_> {
    status.map_or_else(Progress::default, |status| Progress {
        delivered: status.last_applied_revision.as_deref(),
        attempted: status.last_attempted_revision.as_deref(),
        ready: status.condition(condition_types::READY),
    })
}

/// When a revision was made; None if the source has another one by now.
pub fn made_at(caches: &Caches, object: &Kustomization, revision: &str) -> Option<Timestamp> {
    match object.spec.source_ref.kind {
        SourceKind::GitRepository => artifact(&caches.git_repositories, object, revision),
        SourceKind::OCIRepository => artifact(&caches.oci_repositories, object, revision),
        SourceKind::Bucket => artifact(&caches.buckets, object, revision),
        SourceKind::ExternalArtifact => artifact(&caches.external_artifacts, object, revision),
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
