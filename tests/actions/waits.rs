//! Tests of waits: what is waited for, and by which rules.

use std::time::Duration;

use helm_action::{ErrorKind, WaitStrategy, install};
use serde_json::json;

use crate::scene::{DEPLOYMENT, Scene, content, succeeded};

/// A Job that starts, and never ends.
const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: {{ .Release.Name }}}\nspec:\n  template:\n    spec:\n      \
    restartPolicy: Never\n      nodeSelector: {no: such}\n      containers: [{name: main, image: example.com/job}]\n";

#[tokio::test]
async fn jobs_are_waited_for_only_when_asked() {
    let scene = Scene::new("jobs").await;
    let mut order = scene.install("runs", content(&[("templates/job.yaml", JOB)], json!({})));
    order.waiting.for_jobs = false;
    succeeded(install(&scene.context(), &order).await);
    let mut order = scene.install("ends", content(&[("templates/job.yaml", JOB)], json!({})));
    order.waiting.timeout = Duration::from_secs(2);
    let error = install(&scene.context(), &order).await.result.unwrap_err();
    let expected = format!(
        "timeout waiting for: [Job/{}/ends status: 'InProgress'",
        scene.namespace
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn nothing_is_waited_for_but_hooks_when_asked() {
    let scene = Scene::new("hook-only").await;
    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let mut order = scene.install("web", content(&[("templates/web.yaml", &stuck)], json!({})));
    order.waiting.strategy = WaitStrategy::HookOnly;
    succeeded(install(&scene.context(), &order).await);
}

#[tokio::test]
async fn the_rules_of_helm_3_are_there_for_who_asks() {
    let scene = Scene::new("legacy").await;
    let service =
        "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .Release.Name }}}\nspec: {ports: [{port: 80}]}\n";
    let files = [
        ("templates/web.yaml", DEPLOYMENT),
        ("templates/service.yaml", service),
    ];
    let mut order = scene.install("web", content(&files, json!({})));
    order.waiting.strategy = WaitStrategy::Legacy;
    scene.requests();
    succeeded(install(&scene.context(), &order).await);
    // It is watched until it is ready, and not asked for all the time.
    let asked = scene.requests();
    let deployments = format!("/apis/apps/v1/namespaces/{}/deployments", scene.namespace);
    let count = |request: String| asked.iter().filter(|asked| **asked == request).count();
    assert_eq!(count(format!("WATCH {deployments}")), 1, "{asked:#?}");
    assert!(
        (2..=5).contains(&count(format!("GET {deployments}/web"))),
        "{asked:#?}"
    );

    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let mut order = scene.install("stuck", content(&[("templates/web.yaml", &stuck)], json!({})));
    order.waiting.strategy = WaitStrategy::Legacy;
    order.waiting.timeout = Duration::from_secs(3);
    let error = install(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Wait);
    let expected = format!(
        "timeout waiting for: [Deployment/{}/stuck status: 'InProgress': ",
        scene.namespace
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
}
