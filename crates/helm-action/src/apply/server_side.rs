//! One object, applied on the server: with force, as Flux has Helm do it.

use std::time::Duration;

use kube_apply::{ApplyOne, Class, Failure};

use super::one::{Done, Way, at};
use crate::Cluster;
use crate::resources::Resource;

/// Field managers that wrote a release before us: real helm, on either side. We take over their fields, which
/// would otherwise stay when they leave the chart. Flux leaves them.
pub const TAKEN_OVER: [&str; 1] = ["helm"];

/// The API server serves a kind a moment after it says that its CRD is established.
const LATE: u32 = 20;
const PAUSE: Duration = Duration::from_millis(150);

fn is_not_served_yet(failure: &Failure) -> bool {
    failure.class == Class::NotServed
}

pub(super) async fn write(cluster: &Cluster, target: &Resource, way: Way) -> Result<Done, String> {
    let engine = &cluster.engine;
    let owner = target.owner(cluster);
    if let Some(owner) = &owner
        && engine.is_current(&target.object, owner)
    {
        return Ok(Done {
            is_new: false,
            answer: None,
        });
    }
    let is_new = way.knows_created
        && engine
            .read_metadata_one(&target.at)
            .await
            .map_err(|failure| format!("could not get information about the resource: {failure}"))?
            .is_none();
    let how = ApplyOne {
        owner: owner.as_ref(),
        strict: way.strict,
        take_over: &TAKEN_OVER,
    };
    let mut answer = engine.apply_one(&target.at, &target.object, &how).await;
    for _ in 0..LATE {
        if !answer.as_ref().is_err_and(is_not_served_yet) {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        answer = engine.apply_one(&target.at, &target.object, &how).await;
    }
    let answer = answer.map_err(|failure| {
        let doing = if is_new { "failed to create resource: " } else { "" };
        let problem = match failure.class {
            Class::Conflict => "conflict occurred while applying object",
            _ => "server-side apply failed for object",
        };
        format!("{doing}{problem} {}", at(target, &failure))
    })?;
    Ok(Done {
        is_new,
        answer: Some(answer),
    })
}
