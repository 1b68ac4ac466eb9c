//! CRDs of charts.

use helm_action::{CrdPolicy, install, upgrade};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};

use crate::scene::{CONFIG_MAP, Scene, content, resource, succeeded};

pub fn crd(group: &str, description: &str) -> String {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "description": description,
                    "properties": {"spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]}})
    .to_string()
}

#[tokio::test]
async fn crds_are_made_before_objects_that_need_them_and_replaced_only_when_asked() {
    let scene = Scene::new("crds").await;
    let group = format!("{}.example.com", scene.namespace);
    let definitions: Api<DynamicObject> = Api::all_with(
        scene.client.clone(),
        &resource(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
        ),
    );
    let name = format!("things.{group}");
    let described = async || {
        let live = scene.read(&definitions, &name).await;
        live.pointer("/spec/versions/0/schema/openAPIV3Schema/description")
            .cloned()
    };
    let (first, second) = (crd(&group, "first"), crd(&group, "second"));
    let thing = format!(
        "apiVersion: {group}/v1\nkind: Thing\nmetadata: {{name: a}}\nspec: {{b: {{{{ .Values.word }}}}}}\n"
    );
    let files = |crd: &'static str| [("crds/thing.yaml", crd), ("templates/config.yaml", CONFIG_MAP)];
    let first: &'static str = first.leak();
    let second: &'static str = second.leak();
    let with_thing = |crd: &'static str| {
        let mut all: Vec<(&str, &str)> = files(crd).to_vec();
        all.push(("templates/thing.yaml", &thing));
        content(&all, json!({"word": "a"}))
    };

    let mut order = scene.install("skips", content(&files(first), json!({"word": "a"})));
    order.content.crds = CrdPolicy::Skip;
    succeeded(install(&scene.context(), &order).await);
    assert_eq!(described().await, None);

    let order = scene.install("web", with_thing(first));
    succeeded(install(&scene.context(), &order).await);
    assert_eq!(described().await, Some(json!("first")));
    let live = scene.read(&definitions, &name).await;
    assert_eq!(live["metadata"]["labels"]["helm.toolkit.fluxcd.io/name"], "demo");
    assert_eq!(live["metadata"]["annotations"], Value::Null);
    let things = scene.api(&format!("{group}/v1"), "Thing", "things");
    assert_eq!(scene.read(&things, "a").await["spec"]["b"], "a");

    let mut order = scene.upgrade("web", with_thing(second));
    succeeded(upgrade(&scene.context(), &order).await);
    assert_eq!(described().await, Some(json!("first")));
    order.content.crds = CrdPolicy::CreateReplace;
    succeeded(upgrade(&scene.context(), &order).await);
    assert_eq!(described().await, Some(json!("second")));
    definitions
        .delete(&name, &DeleteParams::background())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_crd_that_is_none_is_told_before_anything_is_made() {
    let scene = Scene::new("bad-crds").await;
    let broken =
        crd(&format!("{}.example.com", scene.namespace), "x").replace("\"Namespaced\"", "\"Nowhere\"");
    let files = [
        ("crds/thing.yaml", broken.as_str()),
        ("templates/config.yaml", CONFIG_MAP),
    ];
    let order = scene.install("web", content(&files, json!({"word": "a"})));
    let outcome = install(&scene.context(), &order).await;
    let error = outcome.result.unwrap_err();
    assert_eq!(error.kind(), helm_action::ErrorKind::Crds);
    let expected =
        "failed to apply CustomResourceDefinitions: failed to create CustomResourceDefinition things.";
    assert!(error.to_string().starts_with(expected), "{error}");
    assert!(outcome.written.is_empty());
}
