//! Decides whether the owner of a source in another namespace lets an object have a HelmChart made of it
//! (`windlass.dev/access-from`).
//!
//! The HelmChart is made beside its source, where source-controller sees no foreign reference any more: it is asked here,
//! before one is made and at each run. So is the source of a HelmChart that `chartRef` names: what its owner says holds for
//! the charts made of it. Sources that a spec refers to without a template are in the caches, and `decide` asks.

use std::fmt::Debug;

use api::helm::{ChartArtifactKind, HelmRelease};
use api::meta::reasons;
use api::source::{Bucket, ChartSourceKind, GitRepository, HelmChart, HelmRepository};
use controller_kit::{ObjectKey, access_from, check_name};
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::Store;
use kube::{Api, Client, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::error::Error;

/// Why there may be no HelmChart.
pub(super) struct Denied {
    /// Reason of Ready.
    pub reason: &'static str,
    /// Message of Ready.
    pub message: String,
}

/// Asks for the source of an object's chart; nothing is asked if it is in the object's own namespace.
pub(super) async fn check(
    client: &Client,
    charts: &Store<HelmChart>,
    object: &HelmRelease,
) -> Result<(), Denied> {
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let Some(source) = foreign(object, charts) else {
        return Ok(());
    };
    let namespace = source.namespace.as_str();
    let name = format!("{:?}/{namespace}/{}", source.kind, source.name);
    if let Err(problem) = check_name(&source.name) {
        return Err(Denied {
            reason: reasons::ARTIFACT_FAILED,
            message: format!("failed to get source '{name}': {problem}"),
        });
    }
    let annotation = match source.kind {
        ChartSourceKind::HelmRepository => {
            annotation::<HelmRepository>(client, namespace, &source.name).await
        }
        ChartSourceKind::GitRepository => annotation::<GitRepository>(client, namespace, &source.name).await,
        ChartSourceKind::Bucket => annotation::<Bucket>(client, namespace, &source.name).await,
    };
    let annotation = annotation.map_err(|error| Denied {
        reason: reasons::ARTIFACT_FAILED,
        message: Error::ReadSource {
            name: name.clone(),
            source: Box::new(error),
        }
        .message(),
    })?;
    access_from::check(annotation.as_deref(), own, namespace).map_err(|denied| Denied {
        reason: reasons::ACCESS_DENIED,
        message: format!("can't access '{name}': {denied}"),
    })
}

/// Returns whether there is someone to ask, who may say something else at the next run: nothing watches these sources.
pub(super) fn is_asked(object: &HelmRelease, charts: &Store<HelmChart>) -> bool {
    foreign(object, charts).is_some()
}

/// A source of charts in another namespace.
struct Foreign {
    kind: ChartSourceKind,
    namespace: String,
    name: String,
}

/// Returns the source of the chart if it is in another namespace: by the template, or by the referenced
/// HelmChart.
fn foreign(object: &HelmRelease, charts: &Store<HelmChart>) -> Option<Foreign> {
    let is_foreign =
        |namespace: &&str| !namespace.is_empty() && object.metadata.namespace.as_deref() != Some(*namespace);
    if let Some(reference) = &object.spec.chart_ref {
        let namespace = reference.namespace.as_deref().filter(is_foreign)?;
        if reference.kind != ChartArtifactKind::HelmChart {
            return None;
        }
        let chart = charts.get(&ObjectKey::new(namespace, reference.name.clone()).object_ref())?;
        return Some(Foreign {
            kind: chart.spec.source_ref.kind,
            namespace: namespace.to_owned(),
            name: chart.spec.source_ref.name.clone(),
        });
    }
    let source = &object.spec.chart.as_ref()?.spec.source_ref;
    Some(Foreign {
        kind: source.kind,
        namespace: source.namespace.as_deref().filter(is_foreign)?.to_owned(),
        name: source.name.clone(),
    })
}

/// The annotation of a source; None if it has none, or is not there: the HelmChart then says so.
async fn annotation<K>(client: &Client, namespace: &str, name: &str) -> Result<Option<String>, kube::Error>
where
    K: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let found = api.get_metadata_opt(name).await?;
    Ok(found.and_then(|source| source.annotations().get(access_from::ANNOTATION).cloned()))
}
