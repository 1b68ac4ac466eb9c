//! Rollbacks.

use std::time::Duration;

use helm_action::{ErrorKind, rollback, upgrade};
use helm_release::Status;
use serde_json::{Value, json};

use crate::scene::{CONFIG_MAP, DEPLOYMENT, Scene, content, succeeded};

#[tokio::test]
async fn a_rollback_makes_a_revision_out_of_an_older_one() {
    let scene = Scene::new("rollback").await;
    let new = CONFIG_MAP.replace("{{ .Release.Name }}", "new");
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.installed("web", &files, json!({"word": "a"})).await;
    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let files = [
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/new.yaml", new.as_str()),
        ("templates/web.yaml", stuck.as_str()),
    ];
    let mut order = scene.upgrade("web", content(&files, json!({"word": "b"})));
    order.waiting.timeout = Duration::from_secs(2);
    assert!(upgrade(&scene.context(), &order).await.result.is_err());

    let outcome = succeeded(rollback(&scene.context(), &scene.rollback("web", 0)).await);
    assert_eq!(scene.statuses("web").await, ["superseded", "failed", "deployed"]);
    assert_eq!(outcome.written[&3].info.description, "Rollback to 1");
    assert_eq!(
        outcome.written[&3].manifest,
        scene
            .storage
            .get("web", 1)
            .await
            .unwrap()
            .unwrap()
            .release
            .manifest
    );
    let config_maps = scene.config_maps();
    assert_eq!(scene.read(&config_maps, "web").await["data"]["word"], "a");
    assert_eq!(scene.read(&config_maps, "new").await, Value::Null);
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    assert_eq!(scene.read(&deployments, "web").await, Value::Null);

    let error = rollback(&scene.context(), &scene.rollback("web", 9))
        .await
        .result
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::NotFound, "release has no 9 version".to_owned())
    );
}

#[tokio::test]
async fn a_rollback_that_fails_is_recorded() {
    let scene = Scene::new("rollback-fails").await;
    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let files = [("templates/web.yaml", stuck.as_str())];
    let mut install = scene.install("web", content(&files, json!({})));
    install.waiting.strategy = helm_action::WaitStrategy::HookOnly;
    succeeded(helm_action::install(&scene.context(), &install).await);
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.upgraded("web", &files, json!({"word": "b"})).await;
    let mut order = scene.rollback("web", 1);
    order.waiting.timeout = Duration::from_secs(2);
    let error = rollback(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Wait);
    assert!(
        error
            .to_string()
            .starts_with("release web failed: timeout waiting for: ["),
        "{error}"
    );
    assert_eq!(scene.statuses("web").await, ["superseded", "deployed", "failed"]);
    let release = scene.last("web").await;
    assert_eq!(release.info.status, Status::Failed);
    assert!(
        release
            .info
            .description
            .starts_with("Release \"web\" failed: timeout waiting for: [")
    );
}

#[tokio::test]
async fn what_only_failed_revisions_made_goes_with_a_rollback() {
    let scene = Scene::new("rollback-strays").await;
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.installed("web", &files, json!({"word": "a"})).await;
    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let refused = DEPLOYMENT.replace("replicas: {{", "replicaz: {{");
    let stray = CONFIG_MAP.replace("{{ .Release.Name }}", "stray");
    for files in [
        [
            ("templates/stray.yaml", stray.as_str()),
            ("templates/web.yaml", stuck.as_str()),
        ],
        [
            ("templates/config.yaml", CONFIG_MAP),
            ("templates/web.yaml", refused.as_str()),
        ],
    ] {
        let mut order = scene.upgrade("web", content(&files, json!({"word": "b"})));
        order.waiting.timeout = Duration::from_secs(1);
        assert!(upgrade(&scene.context(), &order).await.result.is_err());
    }
    assert_ne!(scene.read(&scene.config_maps(), "stray").await, Value::Null);
    succeeded(rollback(&scene.context(), &scene.rollback("web", 1)).await);
    assert_eq!(scene.read(&scene.config_maps(), "stray").await, Value::Null);
    assert_eq!(
        scene.statuses("web").await,
        ["superseded", "failed", "failed", "deployed"]
    );
}
