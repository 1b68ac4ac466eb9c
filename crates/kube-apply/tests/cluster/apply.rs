//! Tests of applying: the results, the number of requests, and the refusals.

use kube_apply::{ApplyOptions, Class};
use serde_json::json;

use crate::fixture::{Fixture, objects};

#[tokio::test]
async fn objects_are_created_in_order_and_cost_nothing_afterwards() {
    let f = Fixture::new("create").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": f.namespace}, "stringData": {"a": "b"}});
    let set = [f.deployment("web", "nginx:1"), secret, f.config_map("c", "1")];
    assert_eq!(
        f.apply(&set).await,
        [
            "ConfigMap/c created",
            "Secret/s created",
            "Deployment/web created"
        ]
    );
    let requests = f.requests();
    let (dry, wet) = requests.split_at(3);
    assert!(
        dry.iter().all(|request| request.starts_with("DRY ")),
        "{requests:?}"
    );
    assert_eq!(wet, ["APPLY c", "APPLY s", "APPLY web"]);

    for _ in 0..3 {
        assert_eq!(
            f.apply(&set).await,
            [
                "ConfigMap/c unchanged",
                "Secret/s unchanged",
                "Deployment/web unchanged"
            ]
        );
    }
    assert_eq!(
        f.counts()
            .into_iter()
            .filter(|(verb, _)| verb != "WATCH")
            .collect::<Vec<_>>(),
        []
    );
}

#[tokio::test]
async fn discovery_costs_two_requests_and_each_kind_one_watch() {
    let f = Fixture::new("watch").await;
    f.apply(&[
        f.config_map("a", "1"),
        f.config_map("b", "1"),
        f.deployment("web", "nginx:1"),
    ])
    .await;
    let counts = f.counts();
    assert_eq!(
        counts["LIST"], 2,
        "of kinds; objects come with the watch: {counts:?}"
    );
    assert_eq!(counts["WATCH"], 2, "{counts:?}");
}

#[tokio::test]
async fn one_changed_object_costs_one_request() {
    let f = Fixture::new("change").await;
    f.apply(&[f.config_map("a", "1"), f.config_map("b", "1")]).await;
    f.requests();
    let changed = f.apply(&[f.config_map("a", "1"), f.config_map("b", "2")]).await;
    assert_eq!(changed, ["ConfigMap/a unchanged", "ConfigMap/b configured"]);
    assert_eq!(f.requests(), ["APPLY b"]);
    assert_eq!(f.config_maps().get("b").await.unwrap().data["data"]["key"], "2");
}

#[tokio::test]
async fn a_restarted_controller_asks_once_and_writes_nothing() {
    let f = Fixture::new("restart").await;
    let set = [f.deployment("web", "nginx:1"), f.config_map("c", "1")];
    f.apply(&set).await;
    f.age(&f.config_maps(), "c").await;
    f.age(&f.api("apps/v1", "Deployment", "deployments"), "web").await;
    let before = f.config_maps().get("c").await.unwrap().metadata;
    let restarted = f.another(&f.owner.name).await;
    assert_eq!(
        restarted.apply(&set).await,
        ["ConfigMap/c unchanged", "Deployment/web unchanged"]
    );
    let mut requests = restarted.requests();
    requests.sort();
    assert_eq!(requests, ["DRY c", "DRY web"]);
    assert_eq!(
        restarted.apply(&set).await,
        ["ConfigMap/c unchanged", "Deployment/web unchanged"]
    );
    assert_eq!(restarted.requests(), Vec::<String>::new());
    assert_eq!(
        f.config_maps().get("c").await.unwrap().metadata.resource_version,
        before.resource_version
    );
}

#[tokio::test]
async fn forms_that_the_server_rewrites_do_not_look_like_changes() {
    let f = Fixture::new("forms").await;
    let pod_spec = json!({"restartPolicy": "Never", "containers": [{"name": "a", "image": "b",
        "ports": [{"containerPort": 80, "protocol": null}],
        "resources": {"limits": {"cpu": "1000m", "memory": "1024Mi"}}, "env": null}]});
    let set = [
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": f.namespace, "creationTimestamp": null}, "spec": pod_spec, "status": {}}),
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": f.namespace, "labels": null},
            "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}, {"port": 81, "name": "x"}]}}),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "e", "namespace": f.namespace}, "stringData": {"a": "1"}, "data": {"b": "Yg=="}}),
    ];
    let set = [set[0].clone(), with_port_name(set[1].clone()), set[2].clone()];
    f.apply(&set).await;
    f.age(&f.api("v1", "Secret", "secrets"), "e").await;
    f.age(&f.api("v1", "Service", "services"), "s").await;
    f.age(&f.api("v1", "Pod", "pods"), "p").await;
    let restarted = f.another(&f.owner.name).await;
    assert_eq!(
        restarted.apply(&set).await,
        ["Secret/e unchanged", "Service/s unchanged", "Pod/p unchanged"]
    );
    assert!(
        restarted
            .requests()
            .iter()
            .all(|request| request.starts_with("DRY "))
    );
}

fn with_port_name(mut service: serde_json::Value) -> serde_json::Value {
    service["spec"]["ports"][0]["name"] = json!("y");
    service
}

#[tokio::test]
async fn all_refusals_come_back_at_once_with_file_and_line_and_nothing_is_applied() {
    let f = Fixture::new("refuse").await;
    let mut bad_field = f.deployment("bad-field", "nginx");
    bad_field["spec"]["replica"] = json!(1);
    let mut bad_value = f.deployment("bad-value", "nginx");
    bad_value["spec"]["replicas"] = json!(-1);
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e", "namespace": "no-such-place"}});
    let lines = f
        .refusal(&[f.config_map("fine", "1"), bad_field, bad_value, elsewhere])
        .await;
    let ns = &f.namespace;
    assert_eq!(lines, [
        "3.yaml:1: ConfigMap/no-such-place/e dry-run failed (NotFound): namespaces \"no-such-place\" not found".to_owned(),
        format!("1.yaml:1: Deployment/{ns}/bad-field dry-run failed: .spec.replica: field not declared in schema"),
        format!("2.yaml:1: Deployment/{ns}/bad-value dry-run failed (Invalid): spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
    ]);
    assert!(f.config_maps().get_opt("fine").await.unwrap().is_none());
}

#[tokio::test]
async fn what_no_server_needs_to_be_asked_about_is_found_first() {
    let f = Fixture::new("prepare").await;
    let homeless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}});
    let unknown = json!({"apiVersion": "example.com/v1", "kind": "Widgit", "metadata": {"name": "x"}});
    let gone = json!({"apiVersion": "apps/v1beta1", "kind": "Deployment", "metadata": {"name": "x"}});
    let traversal = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "../../secrets/x", "namespace": "default"}});
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    let twice = [f.config_map("t", "1"), f.config_map("t", "2")];
    let [first, second] = twice;
    let lines = f
        .refusal(&[homeless, unknown, gone, traversal, nameless, first, second])
        .await;
    assert_eq!(
        lines[0],
        "0.yaml:1: ConfigMap/x is not valid: namespace not specified"
    );
    assert_eq!(
        lines[1],
        "1.yaml:1: Widgit/x is not valid: no matches for kind \"Widgit\" in version \"example.com/v1\""
    );
    assert_eq!(
        lines[2],
        "2.yaml:1: Deployment/x is not valid: no matches for kind \"Deployment\" in version \"apps/v1beta1\""
    );
    assert!(
        lines[3].starts_with("3.yaml:1: ConfigMap/default/../../secrets/x is not valid: metadata.name"),
        "{lines:?}"
    );
    assert_eq!(
        lines[4],
        "4.yaml:1: ConfigMap/ is not valid: metadata.name is missing"
    );
    assert!(
        lines[5].contains("declared twice with different content (also in 5.yaml:1)"),
        "{lines:?}"
    );
    assert_eq!(lines.len(), 6);
    assert_eq!(f.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn values_of_secrets_stay_out_of_errors() {
    let f = Fixture::new("mask").await;
    let secret = |data: serde_json::Value| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": f.namespace}, "data": data});
    for data in [
        json!({"a": 47114711}),
        json!({"a": {"deep": "hunter2hunter2"}}),
        json!({"a": "not base64 hunter2"}),
    ] {
        let error = f.refusal(&[secret(data)]).await.join("\n");
        assert!(!error.contains("4711") && !error.contains("hunter2"), "{error}");
    }
}

#[tokio::test]
async fn annotations_decide_what_is_applied() {
    let f = Fixture::new("policy").await;
    let annotated = |name: &str, value: &str, key: &str, setting: &str| {
        let mut map = f.config_map(name, value);
        map["metadata"]["annotations"] = json!({format!("kustomize.toolkit.fluxcd.io/{key}"): setting});
        map
    };
    let set = |value: &str| {
        [
            annotated("ignore", value, "ssa", "Ignore"),
            annotated("once", value, "ssa", "IfNotPresent"),
            annotated("off", value, "reconcile", "disabled"),
        ]
    };
    assert_eq!(
        f.apply(&set("1")).await,
        [
            "ConfigMap/ignore skipped",
            "ConfigMap/off skipped",
            "ConfigMap/once created"
        ]
    );
    assert_eq!(
        f.apply(&set("2")).await,
        [
            "ConfigMap/ignore skipped",
            "ConfigMap/off skipped",
            "ConfigMap/once skipped"
        ]
    );
    assert_eq!(
        f.config_maps().get("once").await.unwrap().data["data"]["key"],
        "1"
    );
    // Also by a controller that has not seen it before.
    let restarted = f.another(&f.owner.name).await;
    assert_eq!(
        restarted.apply(&set("3")).await,
        [
            "ConfigMap/ignore skipped",
            "ConfigMap/off skipped",
            "ConfigMap/once skipped"
        ]
    );
}

#[tokio::test]
async fn an_annotation_on_the_live_object_shields_it() {
    let f = Fixture::new("shield").await;
    let mut drifts = f.engine.managed().subscribe();
    f.apply(&[f.config_map("c", "1")]).await;
    let shield = json!({"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}}});
    f.edit(&f.config_maps(), "c", "kubectl-annotate", shield).await;
    crate::fixture::next_drift(&mut drifts).await;
    for engine in [&f, &f.another(&f.owner.name).await] {
        assert_eq!(
            engine.apply(&[f.config_map("c", "2")]).await,
            ["ConfigMap/c skipped"]
        );
    }
    assert_eq!(f.requests(), ["DRY c", "APPLY c"]);
    // Without the annotation it is managed again.
    let bare = json!({"metadata": {"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": null}}});
    f.edit(&f.config_maps(), "c", "kubectl-annotate", bare).await;
    crate::fixture::next_drift(&mut drifts).await;
    assert_eq!(
        f.apply(&[f.config_map("c", "2")]).await,
        ["ConfigMap/c configured"]
    );
}

#[tokio::test]
async fn live_objects_are_returned_when_asked_for() {
    let f = Fixture::new("live").await;
    let options = ApplyOptions {
        want_live: true,
        ..ApplyOptions::default()
    };
    let applied = f
        .try_apply(objects(&[f.config_map("c", "1")]), &options)
        .await
        .unwrap();
    let live = applied.changes[0].live.as_ref().unwrap();
    assert_eq!(live["data"]["key"], "1");
    assert!(live["metadata"]["uid"].is_string() && live["metadata"].get("managedFields").is_none());
}

#[tokio::test]
async fn a_user_without_permission_is_told_what_is_missing() {
    let f = Fixture::new("forbid").await;
    let mut config = testkit::ControlPlane::shared().await.unwrap().config().clone();
    config.auth_info.impersonate = Some(format!("system:serviceaccount:{}:nobody", f.namespace));
    let engine = f.engine.with_client(kube::Client::try_from(config).unwrap());
    let set = objects(&[f.config_map("a", "1"), f.config_map("b", "1")]);
    let prepared = engine.prepare(&f.owner, set, &Default::default()).await.unwrap();
    let error = engine
        .apply(prepared, &ApplyOptions::default())
        .await
        .unwrap_err();
    assert_eq!(error.errors.len(), 2);
    assert!(
        error.errors.iter().all(|e| e.class == Class::Forbidden),
        "{error}"
    );
    assert!(
        error.to_string().contains("cannot patch resource \"configmaps\""),
        "{error}"
    );
}
