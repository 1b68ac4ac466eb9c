//! Upgrades.

use std::time::Duration;

use helm_action::{ErrorKind, uninstall, upgrade};
use helm_release::Status;
use serde_json::{Value, json};

use crate::scene::{CONFIG_MAP, DEPLOYMENT, Scene, content, succeeded};

fn config_map(name: &str, annotations: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: {annotations}\n  \
         labels: {{helm.toolkit.fluxcd.io/name: demo, helm.toolkit.fluxcd.io/namespace: flux-system}}\ndata: {{a: b}}\n"
    )
}

#[tokio::test]
async fn an_upgrade_changes_what_changed_and_removes_what_left() {
    let scene = Scene::new("upgrade").await;
    let kept = config_map("kept", "{helm.sh/resource-policy: keep}");
    let (gone, same) = (config_map("gone", "{}"), config_map("same", "{}"));
    let files = [
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/kept.yaml", kept.as_str()),
        ("templates/gone.yaml", gone.as_str()),
        ("templates/same.yaml", same.as_str()),
    ];
    let before = scene.installed("web", &files, json!({"word": "a"})).await;
    // The watch for drift has to have seen what was written.
    let id = manifest::ObjectId {
        kind: "ConfigMap".into(),
        namespace: scene.namespace.clone(),
        name: "same".into(),
        ..Default::default()
    };
    while scene.cluster.engine.managed().live(&id) == kube_apply::managed::Live::Absent {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    scene.requests();
    let files = [
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/same.yaml", same.as_str()),
    ];
    let outcome = scene.upgraded("web", &files, json!({"word": "b"})).await;

    let requests = scene.requests();
    assert!(
        !requests.iter().any(|line| line.ends_with("configmaps/same")),
        "{requests:#?}"
    );
    let config_maps = scene.config_maps();
    assert_eq!(scene.read(&config_maps, "web").await["data"]["word"], "b");
    assert_eq!(scene.read(&config_maps, "gone").await, Value::Null);
    assert_ne!(scene.read(&config_maps, "kept").await, Value::Null);
    assert_eq!(scene.statuses("web").await, ["superseded", "deployed"]);
    let (first, second) = (&before.written[&1].info, &outcome.written[&2].info);
    assert_eq!(second.description, "Upgrade complete");
    assert_eq!(first.first_deployed, second.first_deployed);
    assert_eq!(outcome.written[&1].info.status, Status::Superseded);
}

#[tokio::test]
async fn an_upgrade_needs_a_release_that_is_not_being_changed() {
    let scene = Scene::new("pending").await;
    let files = [("templates/config.yaml", CONFIG_MAP)];
    let order = scene.upgrade("web", content(&files, json!({"word": "b"})));
    let error = upgrade(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::NoDeployed,
            "\"web\" has no deployed releases".to_owned()
        )
    );
    scene.installed("web", &files, json!({"word": "a"})).await;
    let mut record = scene.storage.last("web").await.unwrap().unwrap();
    record.release.info.status = Status::PendingUpgrade;
    scene.storage.update(&record).await.unwrap();
    let error = upgrade(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Pending);
    assert_eq!(
        error.to_string(),
        "another operation (install/upgrade/rollback) is in progress"
    );
    // A failed install is upgraded, as long as nothing else is deployed.
    record.release.info.status = Status::Failed;
    scene.storage.update(&record).await.unwrap();
    succeeded(upgrade(&scene.context(), &order).await);
}

#[tokio::test]
async fn a_failed_upgrade_is_recorded_and_cleaned_up_when_asked() {
    let scene = Scene::new("cleanup").await;
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.installed("web", &files, json!({"word": "a"})).await;
    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let files = [
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/web.yaml", stuck.as_str()),
    ];
    let mut order = scene.upgrade("web", content(&files, json!({"word": "b"})));
    order.waiting.timeout = Duration::from_secs(2);
    order.cleanup_on_fail = true;
    let outcome = upgrade(&scene.context(), &order).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Wait, "{error}");
    assert_eq!(scene.statuses("web").await, ["deployed", "failed"]);
    assert_eq!(
        scene.last("web").await.info.description,
        format!("Upgrade \"web\" failed: {error}")
    );
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    assert_eq!(scene.read(&deployments, "web").await, Value::Null);
    assert_eq!(scene.read(&scene.config_maps(), "web").await["data"]["word"], "b");
}

#[tokio::test]
async fn values_of_the_revision_before_are_kept_when_asked_and_history_is_bounded() {
    let scene = Scene::new("values").await;
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {all: {{ .Values | toJson | quote }}}\n";
    let files = [
        ("templates/config.yaml", config),
        ("values.yaml", "a: 1\nb: 1\nc: 1\n"),
    ];
    scene.installed("web", &files, json!({"b": 2})).await;
    let mut order = scene.upgrade("web", content(&files, json!({"c": 3})));
    order.reuse_values = true;
    let outcome = succeeded(upgrade(&scene.context(), &order).await);
    assert_eq!(
        Value::Object(outcome.written[&2].config.clone()),
        json!({"b": 2, "c": 3})
    );
    assert_eq!(
        scene.read(&scene.config_maps(), "web").await["data"]["all"],
        r#"{"a":1,"b":2,"c":3}"#
    );
    order.reuse_values = false;
    order.max_history = 2;
    succeeded(upgrade(&scene.context(), &order).await);
    assert_eq!(
        scene.read(&scene.config_maps(), "web").await["data"]["all"],
        r#"{"a":1,"b":1,"c":3}"#
    );
    assert_eq!(scene.statuses("web").await, ["superseded", "deployed"]);
    assert_eq!(scene.last("web").await.version, 3);
}

#[tokio::test]
async fn an_object_that_another_release_took_is_not_removed() {
    let scene = Scene::new("moved").await;
    let shared = config_map("shared", "{}");
    let files = [
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/shared.yaml", shared.as_str()),
    ];
    scene.installed("one", &files, json!({"word": "a"})).await;
    scene.installed("two", &files, json!({"word": "a"})).await;
    scene.upgraded("one", &files[..1], json!({"word": "b"})).await;
    assert_ne!(scene.read(&scene.config_maps(), "shared").await, Value::Null);
    scene.upgraded("two", &files[..1], json!({"word": "b"})).await;
    assert_eq!(scene.read(&scene.config_maps(), "shared").await, Value::Null);

    scene.upgraded("one", &files, json!({"word": "c"})).await;
    scene.upgraded("two", &files, json!({"word": "c"})).await;
    succeeded(uninstall(&scene.context(), &scene.uninstall("one")).await);
    assert_ne!(scene.read(&scene.config_maps(), "shared").await, Value::Null);
    succeeded(uninstall(&scene.context(), &scene.uninstall("two")).await);
    assert_eq!(scene.read(&scene.config_maps(), "shared").await, Value::Null);
}

#[tokio::test]
async fn what_only_a_failed_upgrade_made_goes_with_the_next_unless_it_is_somebody_elses() {
    let scene = Scene::new("strays").await;
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.installed("web", &files, json!({"word": "a"})).await;
    let stray = config_map("stray", "{}");
    let stuck = DEPLOYMENT.replace(
        "      containers:",
        "      nodeSelector: {no: such}\n      containers:",
    );
    let broken = [
        ("templates/stray.yaml", stray.as_str()),
        ("templates/web.yaml", stuck.as_str()),
    ];
    let mut order = scene.upgrade("web", content(&broken, json!({})));
    order.waiting.timeout = Duration::from_secs(1);
    assert!(upgrade(&scene.context(), &order).await.result.is_err());
    let config_maps = scene.config_maps();
    assert_ne!(scene.read(&config_maps, "stray").await, Value::Null);
    let taken = json!({"metadata": {"annotations": {"meta.helm.sh/release-name": null}}});
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    scene.edit(&deployments, "web", taken).await;
    scene.upgraded("web", &files, json!({"word": "b"})).await;
    assert_eq!(scene.read(&config_maps, "stray").await, Value::Null);
    assert_ne!(scene.read(&deployments, "web").await, Value::Null);
}
