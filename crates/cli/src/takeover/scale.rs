//! Deployments of Flux, scaled.

use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use kube_apply::Address;
use manifest::{GroupVersionKind, ObjectId};
use serde_json::json;

use crate::cluster::Failure;
use crate::platform::Platform;

/// Scales a Deployment; false when it is not there.
pub(crate) async fn to(platform: &Platform, id: &ObjectId, replicas: i64) -> Result<bool, Failure> {
    let deployments: Api<Deployment> = Api::namespaced(platform.client.clone(), &id.namespace);
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    match deployments
        .patch_scale(&id.name, &PatchParams::default(), &patch)
        .await
    {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(Failure::request(format!("scale {id}"), error)),
    }
}

/// Waits until the Pods of a Deployment that was scaled down are gone: one that is ending may still act.
pub(crate) async fn until_gone(platform: &Platform, id: &ObjectId, timeout: Duration) -> Result<(), Failure> {
    let deployments: Api<Deployment> = Api::namespaced(platform.client.clone(), &id.namespace);
    let found = deployments.get_opt(&id.name).await;
    let Some(deployment) = found.map_err(|error| Failure::request(format!("get {id}"), error))? else {
        return Ok(());
    };
    let selector = deployment.spec.and_then(|spec| spec.selector.match_labels);
    let selector: Vec<String> = selector
        .unwrap_or_default()
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    if selector.is_empty() {
        return Ok(());
    }
    let pods: Api<Pod> = Api::namespaced(platform.client.clone(), &id.namespace);
    let listed = pods
        .list(&ListParams::default().labels(&selector.join(",")))
        .await;
    let listed = listed.map_err(|error| Failure::request(format!("list the pods of {id}"), error))?;
    let gvk = GroupVersionKind::new("v1", "Pod");
    let resource = platform.engine.mapper().resolve(&gvk).await;
    let resource = resource.map_err(|error| Failure::Request {
        what: "find the kind Pod".to_owned(),
        why: error.to_string(),
    })?;
    for pod in &listed {
        let at = Address {
            resource: std::sync::Arc::clone(&resource),
            namespace: id.namespace.clone(),
            name: pod.name_any(),
        };
        platform.wait_gone(&at, timeout).await?;
    }
    Ok(())
}
