//! Releases that are applied by the client, as Helm 3 does.

use helm_action::{ServerSide, install, upgrade};
use helm_release::ApplyMethod;
use serde_json::{Value, json};

use crate::scene::{DEPLOYMENT, Scene, content, succeeded};

/// Installs a Deployment by the client.
async fn installed(scene: &Scene, template: &str, values: Value) {
    let mut order = scene.install("web", content(&[("templates/web.yaml", template)], values));
    order.server_side = false;
    let outcome = succeeded(install(&scene.context(), &order).await);
    assert_eq!(outcome.written[&1].apply_method, Some(ApplyMethod::ClientSide));
}

#[tokio::test]
async fn edits_stay_unless_the_chart_says_something_else() {
    let scene = Scene::new("edits").await;
    let before = DEPLOYMENT.replace(
        "ports:",
        "env: [{name: A, value: \"1\"}, {name: B, value: \"1\"}]\n        ports:",
    );
    installed(&scene, &before, json!({})).await;
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    let strategic = kube::api::Patch::Strategic(json!({"metadata": {"annotations": {"mine": "yes"}},
        "spec": {"replicas": 0, "template": {"spec": {"containers": [
            {"name": "main", "image": "example.com/mine", "env": [{"name": "C", "value": "mine"}]}, {"name": "sidecar", "image": "example.com/sidecar"}]}}}}));
    deployments
        .patch("web", &kube::api::PatchParams::default(), &strategic)
        .await
        .unwrap();
    let after = before.replace("{name: B, value: \"1\"}", "{name: D, value: \"2\"}");
    scene
        .upgraded(
            "web",
            &[("templates/web.yaml", after.as_str())],
            json!({"tag": "2"}),
        )
        .await;

    let live = scene.read(&deployments, "web").await;
    assert_eq!(live["spec"]["replicas"], 1);
    assert_eq!(live["metadata"]["annotations"]["mine"], "yes");
    let containers = live["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    let names: Vec<_> = containers
        .iter()
        .map(|container| container["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["main", "sidecar"]);
    assert_eq!(containers[0]["image"], "example.com/web:2");
    let mut env: Vec<_> = containers[0]["env"]
        .as_array()
        .unwrap()
        .iter()
        .map(|env| env["name"].as_str().unwrap())
        .collect();
    env.sort_unstable();
    assert_eq!(env, ["A", "C", "D"]);
    let managers = live["metadata"]["managedFields"].as_array().unwrap();
    let is_ours = |entry: &&Value| entry["manager"] == "helm-controller" && entry["operation"] == "Update";
    assert!(managers.iter().any(|entry| is_ours(&entry)));
    assert_eq!(
        scene.last("web").await.apply_method,
        Some(ApplyMethod::ClientSide)
    );
}

#[tokio::test]
async fn an_upgrade_without_a_change_writes_no_object() {
    let scene = Scene::new("unchanged").await;
    installed(&scene, DEPLOYMENT, json!({})).await;
    scene.requests();
    scene
        .upgraded("web", &[("templates/web.yaml", DEPLOYMENT)], json!({}))
        .await;
    let requests = scene.requests();
    assert!(
        !requests
            .iter()
            .any(|line| line.starts_with("PATCH") && line.contains("deployments")),
        "{requests:#?}"
    );
}

#[tokio::test]
async fn a_release_moves_to_the_server_and_back() {
    let scene = Scene::new("moves").await;
    let config =
        |data: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: web}}\ndata: {{{data}}}\n");
    let config_maps = scene.config_maps();
    let mut order = scene.install(
        "web",
        content(&[("templates/a.yaml", &config("a: '1', b: '1'"))], json!({})),
    );
    order.server_side = false;
    succeeded(install(&scene.context(), &order).await);
    scene
        .edit(&config_maps, "web", json!({"data": {"mine": "1"}}))
        .await;
    let upgraded = async |data: &str, server_side: ServerSide| {
        let mut order = scene.upgrade("web", content(&[("templates/a.yaml", &config(data))], json!({})));
        order.server_side = server_side;
        succeeded(upgrade(&scene.context(), &order).await);
        scene.read(&config_maps, "web").await
    };
    let live = upgraded("a: '2'", ServerSide::On).await;
    assert_eq!(live["data"], json!({"a": "2", "mine": "1"}));
    let ours: Vec<_> = live["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["manager"] == "helm-controller")
        .map(|entry| entry["operation"].clone())
        .collect();
    assert_eq!(ours, ["Apply"]);
    let live = upgraded("a: '2', c: '3'", ServerSide::Auto).await;
    assert_eq!(live["data"], json!({"a": "2", "c": "3", "mine": "1"}));
    assert_eq!(
        scene.last("web").await.apply_method,
        Some(ApplyMethod::ServerSide)
    );
    let live = upgraded("c: '4'", ServerSide::Off).await;
    assert_eq!(live["data"], json!({"c": "4", "mine": "1"}));
    let live = upgraded("d: '5'", ServerSide::On).await;
    assert_eq!(live["data"], json!({"d": "5", "mine": "1"}));
}

#[tokio::test]
async fn objects_are_replaced_when_forced() {
    let scene = Scene::new("replaces").await;
    installed(&scene, DEPLOYMENT, json!({})).await;
    let deployments = scene.api("apps/v1", "Deployment", "deployments");
    scene
        .edit(
            &deployments,
            "web",
            json!({"metadata": {"annotations": {"mine": "yes"}}}),
        )
        .await;
    let mut order = scene.upgrade(
        "web",
        content(&[("templates/web.yaml", DEPLOYMENT)], json!({"tag": "2"})),
    );
    order.force_replace = true;
    succeeded(upgrade(&scene.context(), &order).await);
    let live = scene.read(&deployments, "web").await;
    assert_eq!(live["metadata"]["annotations"]["mine"], Value::Null);
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"][0]["image"],
        "example.com/web:2"
    );
}

#[tokio::test]
async fn what_others_made_is_taken_and_what_it_has_besides_stays() {
    let scene = Scene::new("adopts").await;
    let made = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "x"}, "ports": [{"port": 80, "name": "http"}, {"port": 90, "name": "more"}]}});
    let services = scene.api("v1", "Service", "services");
    services
        .create(&Default::default(), &serde_json::from_value(made).unwrap())
        .await
        .unwrap();
    let template = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [{port: 80, name: http, targetPort: 8080}]}\n";
    installed(&scene, template, json!({})).await;
    let live = scene.read(&services, "web").await;
    assert_eq!(live["spec"]["selector"], json!({"app": "web"}));
    let ports: Vec<_> = live["spec"]["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(|port| port["targetPort"].clone())
        .collect();
    assert_eq!(ports, [json!(8080), json!(90)]);
    assert_eq!(live["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
}

#[tokio::test]
async fn objects_of_other_kinds_keep_what_the_chart_does_not_change() {
    let scene = Scene::new("custom").await;
    let group = format!("{}.example.com", scene.namespace);
    let crd = crate::crds::crd(&group, "custom");
    let thing = |spec: &str| {
        format!("apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: a}}\nspec: {{{spec}}}\n")
    };
    let before = thing("a: 1, b: 1, list: [1]");
    let mut order = scene.install(
        "web",
        content(
            &[("crds/thing.yaml", crd.as_str()), ("templates/a.yaml", &before)],
            json!({}),
        ),
    );
    order.server_side = false;
    succeeded(install(&scene.context(), &order).await);
    let things = scene.api(&format!("{group}/v1"), "Thing", "things");
    scene
        .edit(&things, "a", json!({"spec": {"a": 5, "mine": 1}}))
        .await;
    let after = thing("a: 1, c: 2, list: [1, 2]");
    scene
        .upgraded("web", &[("templates/a.yaml", after.as_str())], json!({}))
        .await;
    let live = scene.read(&things, "a").await;
    assert_eq!(live["spec"], json!({"a": 5, "c": 2, "list": [1, 2], "mine": 1}));
}
