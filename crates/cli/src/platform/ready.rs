//! Waiting until Deployments are ready, as Helm and Flux count it, with the causes if they are not.

use std::time::Duration;

use kube_health::{Outcome, Target, WaitRequest};
use manifest::ObjectId;
use serde_json::json;

use super::{Platform, objects};
use crate::cluster::Failure;

/// Waits until Deployments are gone that were deleted.
pub(crate) async fn until_gone(
    platform: &Platform,
    deployments: &[ObjectId],
    timeout: Duration,
) -> Result<(), Failure> {
    for id in deployments {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": id.name, "namespace": id.namespace}});
        let mapper = platform.engine.mapper();
        let located = objects::locate(&platform.client, mapper, objects::of_value(&object), "").await?;
        located.gone_if_deleted(platform, timeout).await?;
    }
    Ok(())
}

/// Waits for objects of `apps/v1`.
pub(crate) async fn until_ready(
    platform: &Platform,
    deployments: Vec<ObjectId>,
    timeout: Duration,
) -> Result<(), Failure> {
    let target = |id| Target {
        id,
        version: "v1".to_owned(),
        ..Target::default()
    };
    let request = WaitRequest {
        objects: deployments.into_iter().map(target).collect(),
        timeout,
        fail_fast: false,
        jobs_with_ttl: Default::default(),
        checks: Default::default(),
    };
    match platform.hub().wait(request).await {
        Outcome::Healthy => Ok(()),
        Outcome::Unhealthy(report) => Err(Failure::NotReady(report.to_string())),
        Outcome::TimedOut(report) => Err(Failure::TimedOut(report.to_string())),
    }
}
