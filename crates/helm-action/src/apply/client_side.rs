//! One object, written by the client as Helm 3 does: created, replaced, or patched by what three states tell.

use kube_apply::{Class, Failure};
use serde_json::{Value, json};

use super::one::{Before, Done, Way};
use crate::resources::Resource;
use crate::{Cluster, patch};

/// How often a patch is made while others write in between.
const ATTEMPTS: u32 = 3;

pub(super) async fn write(
    cluster: &Cluster,
    target: &Resource,
    before: Before<'_>,
    way: Way,
) -> Result<Done, String> {
    let owner = target.owner(cluster);
    // What was never declared is new most of the time.
    if matches!(before, Before::Unknown) {
        match cluster
            .engine
            .create_one(&target.at, &target.object, owner.as_ref())
            .await
        {
            Err(failure) if failure.is_already_exists() => {}
            created => return new(created),
        }
    }
    let mut attempt = 1;
    loop {
        let live = cluster.engine.read_one(&target.at).await;
        let live =
            live.map_err(|failure| format!("could not get information about the resource: {failure}"))?;
        let Some(live) = live else {
            let created = cluster
                .engine
                .create_one(&target.at, &target.object, owner.as_ref())
                .await;
            return new(created).map_err(|problem| format!("failed to create resource: {problem}"));
        };
        let changed = if way.replace {
            replace(cluster, target, &live).await
        } else {
            change(cluster, target, &before, live).await
        };
        match changed {
            Ok(answer) => {
                return Ok(Done {
                    is_new: false,
                    answer: Some(answer),
                });
            }
            Err((Some(Class::Conflict), _)) if attempt < ATTEMPTS => attempt += 1,
            Err((_, problem)) => return Err(problem),
        }
    }
}

fn new(created: Result<Value, Failure>) -> Result<Done, String> {
    Ok(Done {
        is_new: true,
        answer: Some(created.map_err(|failure| failure.to_string())?),
    })
}

/// The server's message, and the class if it was a conflict.
type Refused = (Option<Class>, String);

async fn replace(cluster: &Cluster, target: &Resource, live: &Value) -> Result<Value, Refused> {
    let mut object = target.object.clone();
    if let Some(metadata) = object
        .value_mut()
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
    {
        metadata.insert(
            "resourceVersion".to_owned(),
            live.pointer("/metadata/resourceVersion")
                .cloned()
                .unwrap_or_default(),
        );
    }
    let owner = target.owner(cluster);
    let replaced = cluster
        .engine
        .replace_one(&target.at, &object, owner.as_ref())
        .await;
    replaced.map_err(|failure| {
        let text = format!("failed to replace object: {failure}");
        (Some(failure.class), text)
    })
}

async fn change(
    cluster: &Cluster,
    target: &Resource,
    before: &Before<'_>,
    live: Value,
) -> Result<Value, Refused> {
    let wanted = target.object.value();
    let made = match before {
        Before::Declared(before) => patch::make(&target.gvk(), before.object.value(), wanted, &live),
        Before::Unknown => patch::adopt(&target.gvk(), wanted, &live),
    };
    let made = made.map_err(|problem| (None, format!("failed to create patch: {problem}")))?;
    let Some(made) = made else {
        return Ok(live);
    };
    let owner = target.owner(cluster);
    let patched = cluster
        .engine
        .patch_one(&target.at, &target.object, &made, owner.as_ref())
        .await;
    patched.map_err(|failure| {
        let (name, kind) = (json!(target.at.name), &target.at.resource.api.kind);
        let text = format!("cannot patch {name} with kind {kind}: {failure}");
        (Some(failure.class), text)
    })
}
