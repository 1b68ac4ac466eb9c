//! Releases of the real helm, gone on with by us.

use std::path::PathBuf;
use std::process::Command;

use helm_action::{ServerSide, rollback, upgrade};
use helm_release::ApplyMethod;
use serde_json::{Value, json};
use testkit::{ControlPlane, tools};

use crate::scene::{Scene, content, succeeded};

fn config(data: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{{data}}}\n")
}

/// Runs `helm install web` of a chart with this ConfigMap.
async fn installed_by(find: fn() -> anyhow::Result<PathBuf>, scene: &Scene, data: &str) {
    let home = testkit::scratch::directory("helm").unwrap();
    let chart = home.path().join("demo");
    std::fs::create_dir_all(chart.join("templates")).unwrap();
    std::fs::write(
        chart.join("Chart.yaml"),
        "{apiVersion: v2, name: demo, version: 1.0.0}",
    )
    .unwrap();
    std::fs::write(chart.join("templates/a.yaml"), config(data)).unwrap();
    let kubeconfig = ControlPlane::shared().await.unwrap().kubeconfig_path();
    let program = tokio::task::spawn_blocking(find).await.unwrap().unwrap();
    let mut command = Command::new(program);
    command.args(["install", "web"]).arg(&chart);
    command.args(["--namespace", &scene.namespace]);
    command
        .env_clear()
        .env("HOME", home.path())
        .env("KUBECONFIG", kubeconfig);
    let output = tokio::task::spawn_blocking(move || command.output())
        .await
        .unwrap()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Upgrades to a ConfigMap with this data; returns what it has then.
async fn upgraded(scene: &Scene, data: &str, server_side: ServerSide) -> Value {
    let mut order = scene.upgrade("web", content(&[("templates/a.yaml", &config(data))], json!({})));
    order.server_side = server_side;
    succeeded(upgrade(&scene.context(), &order).await);
    scene.read(&scene.config_maps(), "web").await["data"].clone()
}

#[tokio::test]
async fn a_release_of_helm_3_stays_with_the_client_until_it_is_moved() {
    let scene = Scene::new("helm3").await;
    installed_by(tools::helm_3, &scene, "a: '1', b: '1'").await;
    scene
        .edit(&scene.config_maps(), "web", json!({"data": {"mine": "1"}}))
        .await;
    let data = upgraded(&scene, "a: '2', d: '1'", ServerSide::Auto).await;
    assert_eq!(data, json!({"a": "2", "d": "1", "mine": "1"}));
    assert_eq!(
        scene.last("web").await.apply_method,
        Some(ApplyMethod::ClientSide)
    );
    // What helm owned, and what we owned as a client, goes when it leaves the chart.
    let data = upgraded(&scene, "c: '3'", ServerSide::On).await;
    assert_eq!(data, json!({"c": "3", "mine": "1"}));
    // Back to what helm made: by the client, as it was.
    succeeded(rollback(&scene.context(), &scene.rollback("web", 1)).await);
    assert_eq!(
        scene.last("web").await.apply_method,
        Some(ApplyMethod::ClientSide)
    );
    let data = scene.read(&scene.config_maps(), "web").await["data"].clone();
    assert_eq!(data, json!({"a": "1", "b": "1", "mine": "1"}));
}

#[tokio::test]
async fn a_release_of_helm_4_is_gone_on_with_on_the_server() {
    let scene = Scene::new("helm4").await;
    installed_by(tools::helm, &scene, "a: '1', b: '1'").await;
    let data = upgraded(&scene, "a: '2'", ServerSide::Auto).await;
    assert_eq!(data, json!({"a": "2"}));
    let release = scene.last("web").await;
    assert_eq!(
        (release.version, release.apply_method),
        (2, Some(ApplyMethod::ServerSide))
    );
}
