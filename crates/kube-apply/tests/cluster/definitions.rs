//! Sets that define what they use: CRDs, namespaces, roles.

use serde_json::{Value, json};

use crate::fixture::Fixture;

fn crd(group: &str, fields: &Value) -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("widgets.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": {"type": "object", "properties": fields}}}}}]}})
}

fn widget(group: &str, namespace: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": {"name": "w", "namespace": namespace}, "spec": spec})
}

#[tokio::test]
async fn a_set_may_define_its_own_kinds_and_namespaces() {
    let f = Fixture::new("define").await;
    let (group, place) = (
        format!("{}.example.com", f.namespace),
        format!("{}-new", f.namespace),
    );
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place, "namespace": "ignored"}});
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": place}});
    let string = json!({"a": {"type": "string"}});
    let set = [
        widget(&group, &place, &json!({"a": "x"})),
        map.clone(),
        namespace.clone(),
        crd(&group, &string),
    ];
    assert_eq!(
        f.apply(&set).await,
        [
            format!("CustomResourceDefinition/widgets.{group} created"),
            format!("Namespace/{place} created"),
            "ConfigMap/c created".into(),
            "Widget/w created".into()
        ]
    );
    f.requests();
    f.apply(&set).await;
    assert_eq!(f.requests(), Vec::<String>::new());

    // A field that the CRD gets in the same revision is not refused.
    let both = json!({"a": {"type": "string"}, "b": {"type": "string"}});
    let set = [
        widget(&group, &place, &json!({"a": "x", "b": "y"})),
        map,
        namespace,
        crd(&group, &both),
    ];
    assert_eq!(
        f.apply(&set).await,
        [
            format!("CustomResourceDefinition/widgets.{group} configured"),
            format!("Namespace/{place} unchanged"),
            "ConfigMap/c unchanged".into(),
            "Widget/w configured".into()
        ]
    );
}

#[tokio::test]
async fn a_broken_definition_does_not_hide_other_errors() {
    let f = Fixture::new("broken").await;
    let group = format!("{}.example.com", f.namespace);
    let mut broken = crd(&group, &json!({}));
    broken["spec"]["versions"][0]["storage"] = json!(false);
    let mut map = f.config_map("c", "1");
    map["data"] = json!("text");
    let lines = f
        .refusal(&[widget(&group, &f.namespace, &json!({})), map, broken])
        .await;
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].starts_with(&format!(
        "2.yaml:1: CustomResourceDefinition/widgets.{group} dry-run failed (Invalid)"
    )));
    assert!(lines[1].starts_with("1.yaml:1: ConfigMap/"), "{lines:?}");
}

#[tokio::test]
async fn a_binding_may_come_with_its_role_even_for_a_user_who_is_checked_for_escalation() {
    let f = Fixture::new("binding").await;
    let rbac = "rbac.authorization.k8s.io";
    let user = format!("tenant-{}", f.namespace);
    let grant = [
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "tenant", "namespace": f.namespace}, "rules": [
            {"apiGroups": [rbac], "resources": ["roles", "rolebindings"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "tenant", "namespace": f.namespace},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "tenant"}, "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}]}),
    ];
    f.apply(&grant).await;
    let mut config = testkit::ControlPlane::shared().await.unwrap().config().clone();
    config.auth_info.impersonate = Some(user.clone());
    let tenant = f.engine.with_client(kube::Client::try_from(config).unwrap());
    let set = crate::fixture::objects(&[
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": {"name": "reader", "namespace": f.namespace},
            "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "reader"}, "subjects": [{"apiGroup": rbac, "kind": "User", "name": user}]}),
        json!({"apiVersion": format!("{rbac}/v1"), "kind": "Role", "metadata": {"name": "reader", "namespace": f.namespace},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
    ]);
    let owner = kube_apply::Owner {
        name: "tenant".into(),
        ..f.owner.clone()
    };
    let prepared = tenant.prepare(&owner, set, &Default::default()).await.unwrap();
    let applied = tenant
        .apply(prepared, &Default::default())
        .await
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        crate::fixture::lines(&applied),
        ["Role/reader created", "RoleBinding/reader created"]
    );
}
