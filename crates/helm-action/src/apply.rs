//! Writes the objects of a release: creates and updates them, deletes what left the manifest.
//!
//! Objects of one kind that follow each other are written together, kinds one after the other, as Helm does. All are tried,
//! and all failures are told. What an object becomes is settled in `server_side` and `client_side`; `removal` deletes.

mod client_side;
mod one;
pub(crate) mod removal;
mod server_side;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::{FutureExt, StreamExt as _};
use kube_apply::{Owner, mapper};
use manifest::ObjectId;
use serde_json::Value;

use crate::resources::{Release, Resource};
use crate::{Cluster, Error, ErrorKind};
use one::{Before, Done};
pub use server_side::TAKEN_OVER;

pub(crate) use one::Way;

/// Effects on objects.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Objects that were not there before.
    pub(crate) created: Vec<Resource>,
    /// Objects as the server answered them; those that needed no request are missing.
    pub(crate) answers: HashMap<ObjectId, Value>,
}

/// Objects of which some may have been written, and some not.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) created: Vec<Resource>,
    pub(crate) error: Error,
}

impl Failed {
    /// Nothing was written.
    pub(crate) fn without(error: Error) -> Self {
        Self {
            created: Vec::new(),
            error,
        }
    }
}

/// Creates objects, most of which are new.
pub(crate) async fn create(cluster: &Cluster, targets: &[Resource], way: Way) -> Result<Written, Failed> {
    write(cluster, &[], targets, way, "\n").await
}

/// Brings objects from one revision to the next; does not delete what left.
pub(crate) async fn update(
    cluster: &Cluster,
    originals: &[Resource],
    targets: &[Resource],
    way: Way,
) -> Result<Written, Failed> {
    write(cluster, originals, targets, way, " && ").await
}

async fn write(
    cluster: &Cluster,
    originals: &[Resource],
    targets: &[Resource],
    way: Way,
    separator: &str,
) -> Result<Written, Failed> {
    watch(cluster, targets).await;
    let before: HashMap<ObjectId, &Resource> = originals
        .iter()
        .map(|original| (original.id(), original))
        .collect();
    let width = cluster.engine.settings().concurrency.max(1);
    let mut written = Written::default();
    let mut problems = Vec::new();
    for batch in targets.chunk_by(|a, b| a.at.resource.api.kind == b.at.resource.api.kind) {
        let writes = batch.iter().map(|target| {
            let before = before
                .get(&target.id())
                .map_or(Before::Unknown, |before| Before::Declared(before));
            async move { (target, write_one(cluster, target, before, way).await) }
        });
        // Boxed, so that a caller of any lifetime may send them to another thread.
        let writes: Vec<_> = writes.map(FutureExt::boxed).collect();
        let mut writes = futures::stream::iter(writes).buffered(width);
        while let Some((target, done)) = writes.next().await {
            match done {
                Ok(Done { is_new, answer }) => {
                    if is_new {
                        written.created.push(target.clone());
                    }
                    written
                        .answers
                        .extend(answer.map(|answer| (target.id(), state_of(answer))));
                }
                Err(problem) => problems.push(problem),
            }
        }
    }
    if problems.is_empty() {
        return Ok(written);
    }
    Err(Failed {
        created: written.created,
        error: Error::new(ErrorKind::Apply, join_failures(&problems, separator)),
    })
}

/// Keeps what a wait asks for: contents may be large, or secret.
fn state_of(mut answer: Value) -> Value {
    if let Some(object) = answer.as_object_mut() {
        for contents in ["data", "binaryData"] {
            object.remove(contents);
        }
    }
    answer
}

async fn write_one(
    cluster: &Cluster,
    target: &Resource,
    before: Before<'_>,
    way: Way,
) -> Result<Done, String> {
    if target.is_named_by_server() {
        let answer = cluster.engine.create_one(&target.at, &target.object, None).await;
        return Ok(Done {
            is_new: true,
            answer: Some(answer.map_err(|failure| failure.to_string())?),
        });
    }
    if way.server_side {
        server_side::write(cluster, target, way).await
    } else {
        client_side::write(cluster, target, before, way).await
    }
}

/// Watches the kinds, so that drift of what is written is told.
async fn watch(cluster: &Cluster, targets: &[Resource]) {
    for (owner, kinds) in kinds_by_owner(cluster, targets) {
        cluster.engine.managed().ensure(&owner, &kinds).await;
    }
}

/// Says that these objects are all that is left of a release: others are no longer watched for it.
pub(crate) fn settle(cluster: &Cluster, targets: &[Resource]) {
    let ids: HashSet<ObjectId> = targets.iter().map(Resource::id).collect();
    for (owner, kinds) in kinds_by_owner(cluster, targets) {
        let managed = cluster.engine.managed();
        managed.retain_objects(&owner, |id| ids.contains(id));
        managed.retain_kinds(&owner, &kinds);
    }
}

/// Forgets a release: what becomes of its objects is no drift.
pub(crate) fn forget(cluster: &Cluster, targets: &[Resource]) {
    for owner in kinds_by_owner(cluster, targets).into_keys() {
        cluster.engine.managed().forget(&owner);
    }
}

type Kinds = Vec<Arc<mapper::Resource>>;

fn kinds_by_owner(cluster: &Cluster, targets: &[Resource]) -> HashMap<Owner, Kinds> {
    let mut found: HashMap<Owner, Kinds> = HashMap::new();
    for target in targets {
        let Some(owner) = target.owner(cluster) else {
            continue;
        };
        let kinds = found.entry(owner).or_default();
        let api = &target.at.resource.api;
        if !kinds
            .iter()
            .any(|known| known.api.group == api.group && known.api.kind == api.kind)
        {
            kinds.push(Arc::clone(&target.at.resource));
        }
    }
    found
}

/// Takes objects of the release before out of those of the next: what is to be deleted.
pub(crate) fn left<'a>(originals: &'a [Resource], targets: &[Resource]) -> Vec<&'a Resource> {
    let ids: HashSet<ObjectId> = targets.iter().map(Resource::id).collect();
    originals
        .iter()
        .filter(|original| !ids.contains(&original.id()))
        .collect()
}

/// Makes objects the release's.
pub(crate) fn mark(targets: &mut [Resource], release: Release<'_>) {
    for target in targets {
        release.mark(&mut target.object);
    }
}

/// So many failures are told; the rest are counted.
const TOLD: usize = 20;

pub(crate) fn join_failures(problems: &[String], separator: &str) -> String {
    let mut text = problems[..problems.len().min(TOLD)].join(separator);
    if problems.len() > TOLD {
        text += &format!("{separator}and {} more", problems.len() - TOLD);
    }
    text
}
