//! Reads the progress of a delivery from the status of a HelmRelease, for metrics.

use api::helm::{ChartArtifactKind, HelmRelease, HelmReleaseStatus, Snapshot};
use api::meta::{HasConditions as _, condition_types};
use api::source::Source;
use controller_kit::metrics::Progress;
use jiff::Timestamp;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::Store;

use super::status;
use crate::source::{self, Reference};
use crate::sources::Sources;

/// A release is delivered when it is the newest one that is deployed; its values are as much of it as its chart.
pub fn delivery_progress(status: Option<&HelmReleaseStatus>) -> Progress<'_> {
    let Some(status) = status else {
        return Progress::default();
    };
    let ready = status.condition(condition_types::READY);
    let attempted = status.last_attempted_revision.as_deref();
    let values = status.last_attempted_config_digest.as_deref().unwrap_or_default();
    Progress {
        delivered: newest(status).map(|found| release(&found.chart_version, &found.config_digest)),
        attempted: attempted.map(|version| release(version, values)),
        ready,
        waits: ready.is_some_and(|ready| status::waits(&ready.reason)),
    }
}

/// Name of a release's state; changes with the chart or the values.
fn release(chart_version: &str, config_digest: &str) -> String {
    format!("{chart_version} {config_digest}")
}

fn newest(status: &HelmReleaseStatus) -> Option<&Snapshot> {
    status
        .history
        .first()
        .filter(|snapshot| snapshot.status == "deployed")
}

/// When the chart of the newest release was made; None if it had the chart before, and if the source has another one by now.
pub fn made_at(sources: &Sources, object: &HelmRelease, status: &HelmReleaseStatus) -> Option<Timestamp> {
    let version = &newest(status)?.chart_version;
    if status
        .history
        .get(1)
        .is_some_and(|before| before.chart_version == *version)
    {
        return None;
    }
    let reference = source::reference(object)?;
    match reference.kind {
        ChartArtifactKind::HelmChart => artifact(&sources.charts, &reference, version),
        ChartArtifactKind::OCIRepository => artifact(&sources.oci_repositories, &reference, version),
        ChartArtifactKind::ExternalArtifact => artifact(&sources.external_artifacts, &reference, version),
    }
}

/// Versions of charts from registries have the digest behind them.
fn artifact<K>(sources: &Store<K>, reference: &Reference, version: &str) -> Option<Timestamp>
where
    K: Source + Resource<Scope = NamespaceResourceScope> + Clone + 'static,
{
    let source = sources.get(&reference.key.object_ref())?;
    let artifact = source.artifact()?;
    let plain = |version: &str| version.split(['+', '@']).next().map(str::to_owned);
    (plain(&artifact.revision) == plain(version)).then(|| artifact.made_at())
}
