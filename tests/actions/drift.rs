//! Tests of the watch on released objects: changes by others are reported.

use std::time::Duration;

use futures::StreamExt as _;
use helm_action::uninstall;
use kube_apply::What;
use serde_json::json;

use crate::scene::{DEPLOYMENT, Scene, succeeded};

#[tokio::test]
async fn an_edit_of_what_a_release_has_is_told_and_nothing_that_an_action_does() {
    let scene = Scene::new("drift").await;
    let mut drifts = scene.cluster.engine.managed().subscribe();
    let files = [("templates/web.yaml", DEPLOYMENT)];
    scene.installed("web", &files, json!({})).await;
    scene.upgraded("web", &files, json!({"tag": "2"})).await;
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    scene
        .edit(
            &deployments,
            "web",
            json!({"spec": {"minReadySeconds": 0, "replicas": 2}}),
        )
        .await;
    let drift = tokio::time::timeout(Duration::from_secs(10), drifts.next()).await;
    let drift = drift.unwrap().unwrap();
    assert_eq!(drift.owner.to_string(), "flux-system/demo");
    assert_eq!((drift.object.name.as_str(), drift.what), ("web", What::Modified));
    scene.upgraded("web", &files, json!({"tag": "3"})).await;
    succeeded(uninstall(&scene.context(), &scene.uninstall("web")).await);
    let quiet = tokio::time::timeout(Duration::from_millis(500), drifts.next()).await;
    assert!(quiet.is_err(), "{quiet:?}");
}
