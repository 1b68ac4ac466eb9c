//! Whether the owner of a source in another namespace lets an object have a HelmChart made of it (`windlass.dev/access-from`).
//!
//! The HelmChart is made beside its source, where source-controller sees no foreign reference any more: it is asked here,
//! before one is made and at each run. Sources that a spec refers to without a template are in the caches, and `decide` asks.

use std::fmt::Debug;

use api::helm::{ChartSourceReference, HelmRelease};
use api::meta::reasons;
use api::source::{Bucket, ChartSourceKind, GitRepository, HelmRepository};
use controller_kit::{access_from, check_name};
use kube::core::NamespaceResourceScope;
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

/// Asks for the source of an object's chart template; nothing is asked if it is in the object's own namespace.
pub(super) async fn check(client: &Client, object: &HelmRelease) -> Result<(), Denied> {
    let own = object.metadata.namespace.as_deref().unwrap_or_default();
    let Some((source, namespace)) = foreign(object) else {
        return Ok(());
    };
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

/// Whether there is somebody to ask, who may say something else at the next run: nothing watches these sources.
pub(super) fn is_asked(object: &HelmRelease) -> bool {
    foreign(object).is_some()
}

/// The source of the chart template that is in another namespace, and that namespace.
fn foreign(object: &HelmRelease) -> Option<(&ChartSourceReference, &str)> {
    let source = &object.spec.chart.as_ref()?.spec.source_ref;
    let namespace = source
        .namespace
        .as_deref()
        .filter(|namespace| !namespace.is_empty())?;
    (object.metadata.namespace.as_deref() != Some(namespace)).then_some((source, namespace))
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
