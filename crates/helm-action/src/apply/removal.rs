//! Deletes objects: what left a manifest, what a failed action made, and all of a release.

use futures::{FutureExt, StreamExt as _};
use kube_apply::{Address, Cascade, Deleted};
use serde_json::Value;

use crate::resources::{Release, Resource, entry};
use crate::{Cluster, Error, ErrorKind, Log};

/// Asks Helm to leave an object where it is.
const POLICY: &str = "helm.sh/resource-policy";
const KEEP: &str = "keep";

/// Deletes what left the manifest, unless it is to be kept, as the live object says, or is another release's by now.
pub(crate) async fn remove(
    cluster: &Cluster,
    resources: &[&Resource],
    release: Release<'_>,
    log: &Log,
) -> Result<(), Error> {
    let is_foreign = |live: &Value| release.is_of_another(live);
    remove_unless(cluster, resources, &is_foreign, log).await
}

/// Does the same with objects that the release may never have made: only those go that say that they are its own.
pub(crate) async fn remove_own(
    cluster: &Cluster,
    resources: &[&Resource],
    release: Release<'_>,
    log: &Log,
) -> Result<(), Error> {
    let is_foreign = |live: &Value| release.problem(live).is_some();
    remove_unless(cluster, resources, &is_foreign, log).await
}

async fn remove_unless(
    cluster: &Cluster,
    resources: &[&Resource],
    is_foreign: &(dyn Fn(&Value) -> bool + Sync),
    log: &Log,
) -> Result<(), Error> {
    let mut problems = Vec::new();
    for resource in resources {
        if let Err(problem) = remove_one(cluster, resource, is_foreign, log).await {
            problems.push(problem);
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Error::new(
            ErrorKind::Delete,
            super::join_failures(&problems, " && "),
        ))
    }
}

async fn remove_one(
    cluster: &Cluster,
    resource: &Resource,
    is_foreign: &(dyn Fn(&Value) -> bool + Sync),
    log: &Log,
) -> Result<(), String> {
    let live = match cluster.engine.read_metadata_one(&resource.at).await {
        Ok(Some(live)) => live,
        Ok(None) => return Ok(()),
        Err(failure) => {
            log.line(format!("unable to get object {resource}: {failure}"));
            return Ok(());
        }
    };
    if entry(&live, "annotations", POLICY).is_some_and(is_keep) {
        log.line(format!(
            "skipping delete of {resource} due to annotation {POLICY}"
        ));
        return Ok(());
    }
    if is_foreign(&live) {
        log.line(format!(
            "skipping delete of {resource}: it does not belong to the release"
        ));
        return Ok(());
    }
    let Address { namespace, name, .. } = &resource.at;
    let deleted = cluster.engine.delete_one(&resource.at, Cascade::Background).await;
    deleted.map(drop).map_err(|failure| {
        let kind = &resource.at.resource.api.kind;
        format!("failed to delete resource namespace={namespace}, name={name}, kind={kind}: {failure}")
    })
}

/// Returns whether the manifest of an object asks for it to be kept.
pub(crate) fn is_kept(resource: &Resource) -> bool {
    resource.object.annotation(POLICY).is_some_and(is_keep)
}

fn is_keep(policy: &str) -> bool {
    policy.trim().eq_ignore_ascii_case(KEEP)
}

/// Deletes objects, all that can be; those of one kind together. Returns those that are still on their way.
pub(crate) async fn delete_all(
    cluster: &Cluster,
    resources: &[Resource],
    cascade: Cascade,
) -> (Vec<Address>, Vec<String>) {
    let width = cluster.engine.settings().concurrency.max(1);
    let (mut terminating, mut problems) = (Vec::new(), Vec::new());
    let named: Vec<&Resource> = resources
        .iter()
        .filter(|resource| !resource.at.name.is_empty())
        .collect();
    for batch in named.chunk_by(|a, b| a.at.resource.api.kind == b.at.resource.api.kind) {
        let deletes = batch.iter().map(|resource| async move {
            (resource, cluster.engine.delete_one(&resource.at, cascade).await)
        });
        // Boxed, so that a caller of any lifetime may send them to another thread.
        let deletes: Vec<_> = deletes.map(FutureExt::boxed).collect();
        let mut deletes = futures::stream::iter(deletes).buffered(width);
        while let Some((resource, deleted)) = deletes.next().await {
            match deleted {
                Ok(Deleted::Terminating) => terminating.push(resource.at.clone()),
                Ok(Deleted::Gone | Deleted::Missing) => {}
                Err(failure) => problems.push(format!("{resource}: {failure}")),
            }
        }
    }
    (terminating, problems)
}
