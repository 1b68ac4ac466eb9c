//! Uninstalls.

use std::time::Duration;

use helm_action::{ErrorKind, uninstall};
use serde_json::{Value, json};

use crate::scene::{CONFIG_MAP, DEPLOYMENT, Scene, succeeded};

#[tokio::test]
async fn an_uninstall_deletes_objects_but_those_to_be_kept_and_records() {
    let scene = Scene::new("uninstall").await;
    let kept = CONFIG_MAP.replace(
        "name: {{ .Release.Name }}",
        "name: kept, annotations: {helm.sh/resource-policy: Keep}",
    );
    let files = [
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/kept.yaml", kept.as_str()),
        ("templates/web.yaml", DEPLOYMENT),
    ];
    scene.installed("web", &files, json!({"word": "a"})).await;
    scene.upgraded("web", &files, json!({"word": "b"})).await;
    let outcome = succeeded(uninstall(&scene.context(), &scene.uninstall("web")).await);
    assert_eq!(outcome.written[&2].info.description, "Uninstallation complete");
    assert!(outcome.written[&2].info.deleted.is_some());
    assert_eq!(scene.statuses("web").await, [""; 0]);
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    assert_eq!(scene.read(&deployments, "web").await, Value::Null);
    assert_eq!(scene.read(&scene.config_maps(), "web").await, Value::Null);
    assert_ne!(scene.read(&scene.config_maps(), "kept").await, Value::Null);

    let error = uninstall(&scene.context(), &scene.uninstall("web"))
        .await
        .result
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn records_are_kept_when_asked() {
    let scene = Scene::new("keeps").await;
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.installed("web", &files, json!({"word": "a"})).await;
    scene.upgraded("web", &files, json!({"word": "b"})).await;
    let mut order = scene.uninstall("web");
    order.keep_history = true;
    succeeded(uninstall(&scene.context(), &order).await);
    assert_eq!(scene.statuses("web").await, ["superseded", "uninstalled"]);
    let error = uninstall(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(error.to_string(), "the release named \"web\" is already deleted");
    order.keep_history = false;
    succeeded(uninstall(&scene.context(), &order).await);
    assert_eq!(scene.statuses("web").await, [""; 0]);
}

#[tokio::test]
async fn what_a_finalizer_holds_is_waited_for_and_told() {
    let scene = Scene::new("finalizers").await;
    let held = CONFIG_MAP.replace(
        "name: {{ .Release.Name }}",
        "name: held, finalizers: [example.com/hold]",
    );
    scene
        .installed(
            "web",
            &[("templates/held.yaml", held.as_str())],
            json!({"word": "a"}),
        )
        .await;
    let mut order = scene.uninstall("web");
    order.waiting.timeout = Duration::from_secs(1);
    let error = uninstall(&scene.context(), &order).await.result.unwrap_err();
    let expected = format!(
        "uninstallation completed with 1 error(s): ConfigMap/{}/held termination timeout error: ",
        scene.namespace
    );
    assert!(error.to_string().starts_with(&expected), "{error}");
    let config_maps = scene.config_maps();
    scene
        .edit(&config_maps, "held", json!({"metadata": {"finalizers": null}}))
        .await;
}
