//! An action does what its account may, and nothing else.

use helm_action::{ErrorKind, install};
use helm_release::Status;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use testkit::ControlPlane;

use crate::scene::{CONFIG_MAP, DEPLOYMENT, Scene, content, succeeded};

/// A scene of an account that may do everything with some kinds of its namespace.
async fn scene_of_account(admin: &Scene, resources: &[&str]) -> Scene {
    let namespace = &admin.namespace;
    let role = json!({"metadata": {"name": "tenant"},
        "rules": [{"apiGroups": ["", "apps"], "resources": resources, "verbs": ["*"]}]});
    let roles: Api<Role> = Api::namespaced(admin.client.clone(), namespace);
    roles
        .create(&PostParams::default(), &serde_json::from_value(role).unwrap())
        .await
        .unwrap();
    let binding = json!({"metadata": {"name": "tenant"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
        "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}]});
    let bindings: Api<RoleBinding> = Api::namespaced(admin.client.clone(), namespace);
    bindings
        .create(&PostParams::default(), &serde_json::from_value(binding).unwrap())
        .await
        .unwrap();
    let mut config = ControlPlane::shared().await.unwrap().config().clone();
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{namespace}:tenant"));
    Scene::in_namespace(Client::try_from(config).unwrap(), namespace.clone())
}

#[tokio::test]
async fn what_an_account_may_not_do_is_refused_and_told() {
    let admin = Scene::new("accounts").await;
    let scene = scene_of_account(&admin, &["secrets", "configmaps"]).await;
    let files = [("templates/config.yaml", CONFIG_MAP)];
    scene.installed("web", &files, json!({"word": "a"})).await;

    let files = [
        ("templates/config.yaml", CONFIG_MAP),
        ("templates/web.yaml", DEPLOYMENT),
    ];
    let order = scene.install("other", content(&files, json!({"word": "a"})));
    let error = install(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Apply);
    assert!(
        error
            .to_string()
            .contains("cannot patch resource \"deployments\""),
        "{error}"
    );
    assert_eq!(scene.last("other").await.info.status, Status::Failed);

    let peek = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: peek}\ndata: {x: {{ lookup \"v1\" \"Secret\" \"kube-system\" \"\" | toJson | quote }}}\n";
    let order = scene.install("peek", content(&[("templates/peek.yaml", peek)], json!({})));
    let error = install(&scene.context(), &order).await.result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Render);
    assert!(
        error.to_string().contains("cannot list resource \"secrets\""),
        "{error}"
    );
    assert_eq!(admin.read(&admin.config_maps(), "peek").await, Value::Null);
}

#[tokio::test]
async fn without_a_place_for_the_record_nothing_is_made() {
    let admin = Scene::new("recordless").await;
    let scene = scene_of_account(&admin, &["configmaps"]).await;
    let order = scene.install(
        "web",
        content(&[("templates/config.yaml", CONFIG_MAP)], json!({"word": "a"})),
    );
    let outcome = install(&scene.context(), &order).await;
    assert_eq!(outcome.result.unwrap_err().kind(), ErrorKind::Storage);
    assert!(outcome.written.is_empty());
    assert_eq!(admin.read(&admin.config_maps(), "web").await, Value::Null);
    let order = admin.install("web", order.content);
    succeeded(install(&admin.context(), &order).await);
}
