//! What the status of a HelmRelease says of delivery, for the metrics of it.

use api::helm::{ChartArtifactKind, HelmRelease, HelmReleaseStatus, Snapshot};
use api::meta::{HasConditions as _, condition_types};
use api::source::Source;
use controller_kit::metrics::Progress;
use jiff::Timestamp;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::Store;

use super::observe::Caches;
use crate::source::{self, Reference};

/// A release is delivered when it is the newest one that is deployed; its values are as much of it as its chart.
pub fn of(status: Option<&HelmReleaseStatus>) -> Progress<'_> {
    status.map_or_else(Progress::default, |status| Progress {
        delivered: newest(status).map(|snapshot| snapshot.digest.as_str()),
        attempted: status
            .last_attempted_config_digest
            .as_deref()
            .or(status.last_attempted_revision.as_deref()),
        ready: status.condition(condition_types::READY),
    })
}

fn newest(status: &HelmReleaseStatus) -> Option<&Snapshot> {
    status
        .history
        .first()
        .filter(|snapshot| snapshot.status == "deployed")
}

/// When the chart of the newest release was made; None if the source has another one by now, or is not known.
pub fn made_at(caches: &Caches, object: &HelmRelease, status: &HelmReleaseStatus) -> Option<Timestamp> {
    let version = &newest(status)?.chart_version;
    let reference = source::reference(object)?;
    match reference.kind {
        ChartArtifactKind::HelmChart => artifact(&caches.charts, &reference, version),
        ChartArtifactKind::OCIRepository => artifact(&caches.oci_repositories, &reference, version),
        ChartArtifactKind::ExternalArtifact => artifact(&caches.external_artifacts, &reference, version),
    }
}

/// Versions of charts from registries have the digest behind them.
fn artifact<K>(sources: &Store<K>, reference: &Reference, version: &str) -> Option<Timestamp>
where
    K: Source + Resource<Scope = NamespaceResourceScope> + Clone + 'static,
{
    let source = sources.get(&reference.key.object_ref())?;
    let (artifact, version) = (source.artifact()?, version.split('+').next().unwrap_or(version));
    artifact.revision.starts_with(version).then(|| artifact.made_at())
}
