//! Fields that cannot change: told, and recreated by force.

use kube_apply::{ApplyOptions, Class};
use serde_json::{Value, json};

use crate::fixture::{Fixture, lines, objects};

#[tokio::test]
async fn an_immutable_field_is_named_and_force_recreates() {
    let f = Fixture::new("immutable").await;
    f.apply(&[f.deployment("web", "nginx"), f.config_map("c", "1")])
        .await;
    let uid = |f: &Fixture| f.api("apps/v1", "Deployment", "deployments");
    let before = uid(&f).get("web").await.unwrap().metadata.uid;
    let mut changed = f.deployment("web", "nginx");
    changed["spec"]["selector"]["matchLabels"]["app"] = json!("new");
    changed["spec"]["template"]["metadata"]["labels"]["app"] = json!("new");
    let set = [changed.clone(), f.config_map("c", "2")];
    let error = f.refusal(&set).await;
    assert_eq!(error.len(), 1);
    assert!(
        error[0].contains("spec.selector") && error[0].contains("field is immutable"),
        "{error:?}"
    );
    assert!(
        error[0].ends_with("annotate it with kustomize.toolkit.fluxcd.io/force: enabled"),
        "{error:?}"
    );
    assert_eq!(f.config_maps().get("c").await.unwrap().data["data"]["key"], "1");

    let mut forced = changed.clone();
    forced["metadata"]["annotations"] = json!({"kustomize.toolkit.fluxcd.io/force": "Enabled"});
    let applied = f.apply(&[forced, f.config_map("c", "2")]).await;
    assert_eq!(applied, ["ConfigMap/c configured", "Deployment/web created"]);
    assert_ne!(uid(&f).get("web").await.unwrap().metadata.uid, before);

    // The option does the same, and for the one object that needs work, too.
    let options = ApplyOptions {
        force: true,
        ..ApplyOptions::default()
    };
    let applied = f
        .try_apply(
            objects(&[f.deployment("web", "nginx"), f.config_map("c", "2")]),
            &options,
        )
        .await
        .unwrap();
    assert_eq!(
        lines(&applied),
        ["ConfigMap/c unchanged", "Deployment/web created"]
    );
}

#[tokio::test]
async fn force_does_not_delete_what_is_merely_wrong() {
    let f = Fixture::new("wrong").await;
    f.apply(&[f.deployment("web", "nginx")]).await;
    let mut wrong = f.deployment("web", "nginx");
    wrong["spec"]["replicas"] = json!(-1);
    let options = ApplyOptions {
        force: true,
        ..ApplyOptions::default()
    };
    let error = f.try_apply(objects(&[wrong]), &options).await.unwrap_err();
    assert_eq!(error.errors[0].class, Class::Invalid);
    assert!(
        f.api("apps/v1", "Deployment", "deployments")
            .get_opt("web")
            .await
            .unwrap()
            .is_some()
    );
}

/// Kinds with immutable fields: what is created, and a JSON pointer with the value that it cannot change to.
fn immutable_changes(f: &Fixture) -> Vec<(Value, Vec<(&'static str, Value)>)> {
    let ns = &f.namespace;
    let meta = |name: &str| json!({"name": name, "namespace": ns});
    let global = |name: &str| json!({"name": format!("{ns}-{name}")});
    let pod = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}});
    let always =
        json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let selector = json!({"matchLabels": {"app": "a"}});
    let rbac = "rbac.authorization.k8s.io";
    vec![
        (
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta("job"), "spec": {"template": pod}}),
            vec![("/spec/template/spec/containers/0/image", json!("b"))],
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta("set"), "spec": {"serviceName": "a", "selector": selector, "template": always}}),
            vec![("/spec/serviceName", json!("b"))],
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta("daemon"), "spec": {"selector": selector, "template": always}}),
            vec![
                ("/spec/selector/matchLabels/app", json!("b")),
                ("/spec/template/metadata/labels/app", json!("b")),
            ],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta("pod"), "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}),
            vec![("/spec/restartPolicy", json!("Always"))],
        ),
        (
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta("claim"), "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
            vec![("/spec/accessModes", json!(["ReadWriteMany"]))],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Service", "metadata": meta("service"), "spec": {"ports": [{"port": 80}], "clusterIP": "None", "selector": {"a": "b"}}}),
            vec![("/spec/clusterIP", json!("10.0.0.250"))],
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta("map"), "immutable": true, "data": {"a": "1"}}),
            vec![("/data/a", json!("2"))],
        ),
        (
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": meta("secret"), "type": "Opaque", "data": {"a": "YQ=="}}),
            vec![("/type", json!("example.com/other"))],
        ),
        (
            json!({"apiVersion": format!("{rbac}/v1"), "kind": "RoleBinding", "metadata": meta("binding"), "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "view"}, "subjects": []}),
            vec![("/roleRef/name", json!("edit"))],
        ),
        (
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": global("class"), "provisioner": "a", "parameters": {"a": "b"}, "reclaimPolicy": "Delete"}),
            vec![("/parameters/a", json!("c"))],
        ),
        (
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": global("class2"), "provisioner": "a"}),
            vec![("/provisioner", json!("b"))],
        ),
        (
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": global("priority"), "value": 1}),
            vec![("/value", json!(2))],
        ),
        (
            json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": global("runtime"), "handler": "a"}),
            vec![("/handler", json!("b"))],
        ),
        (
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": global("ingress"), "spec": {"controller": "example.com/a"}}),
            vec![("/spec/controller", json!("example.com/b"))],
        ),
        (
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": global("volume"), "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}}),
            vec![("/spec/hostPath/path", json!("/b"))],
        ),
        (
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": global("driver"), "spec": {"attachRequired": true}}),
            vec![("/spec/attachRequired", json!(false))],
        ),
    ]
}

#[tokio::test]
async fn the_immutable_fields_of_built_in_kinds_are_recognised() {
    let f = Fixture::new("kinds").await;
    let cases = immutable_changes(&f);
    let created: Vec<_> = cases.iter().map(|(object, _)| object.clone()).collect();
    f.apply(&created).await;
    let changed: Vec<_> = cases
        .into_iter()
        .map(|(mut object, changes)| {
            for (pointer, value) in changes {
                *object.pointer_mut(pointer).unwrap() = value;
            }
            object
        })
        .collect();
    let error = f
        .try_apply(objects(&changed), &ApplyOptions::default())
        .await
        .unwrap_err();
    let other: Vec<_> = error
        .errors
        .iter()
        .filter(|e| e.class != Class::Immutable)
        .map(ToString::to_string)
        .collect();
    assert_eq!(other, Vec::<String>::new());
    assert_eq!(error.errors.len(), changed.len(), "{error}");
}
