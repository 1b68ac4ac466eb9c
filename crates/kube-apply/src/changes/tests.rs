//! Tests of the changes reported for two states of an object.

use serde_json::json;

use super::*;

fn lines_of(before: &Value, after: &Value) -> Vec<String> {
    let changes = FieldChanges::between(before, after, "us", false);
    changes.fields.iter().map(ToString::to_string).collect()
}

fn deployment(edit: impl FnOnce(&mut Value)) -> Value {
    let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "resourceVersion": "1", "generation": 1, "labels": {"a": "b"}},
        "spec": {"replicas": 5, "template": {"spec": {"containers": [
            {"name": "app", "image": "a", "args": ["-v"], "ports": [{"containerPort": 80, "protocol": "TCP"}]},
            {"name": "side", "image": "s"}]}}},
        "status": {"replicas": 5}});
    edit(&mut object);
    object
}

#[test]
fn fields_are_told_with_old_and_new_value() {
    let after = deployment(|d| {
        d["spec"]["replicas"] = json!(3);
        d["spec"]["paused"] = json!(true);
        d["metadata"]["resourceVersion"] = json!("2");
        d["metadata"]["generation"] = json!(2);
        d["metadata"]["managedFields"] = json!([{}]);
        d["metadata"]["labels"] = json!({"example.com/tier": "front"});
        d["status"] = json!({});
        let containers = &mut d["spec"]["template"]["spec"]["containers"];
        containers[0]["image"] = json!("b");
        containers[0]["args"] = json!(["-v", "-x"]);
        containers[0]["ports"][0]["containerPort"] = json!(81);
        containers.as_array_mut().unwrap().swap_remove(1);
    });
    let path = "spec.template.spec.containers";
    assert_eq!(
        lines_of(&deployment(|_| {}), &after),
        [
            "metadata.labels.a: \"b\" → (none)".to_owned(),
            "metadata.labels[\"example.com/tier\"]: (none) → \"front\"".to_owned(),
            "spec.paused: (none) → true".to_owned(),
            "spec.replicas: 5 → 3".to_owned(),
            format!("{path}[name=app].args: [\"-v\"] → [\"-v\",\"-x\"]"),
            format!("{path}[name=app].image: \"a\" → \"b\""),
            format!("{path}[name=app].ports[containerPort=80,protocol=TCP].containerPort: 80 → (none)"),
            format!("{path}[name=app].ports[containerPort=80,protocol=TCP].protocol: \"TCP\" → (none)"),
            format!("{path}[name=app].ports[containerPort=81,protocol=TCP].containerPort: (none) → 81"),
            format!("{path}[name=app].ports[containerPort=81,protocol=TCP].protocol: (none) → \"TCP\""),
            format!("{path}[name=side].image: \"s\" → (none)"),
            format!("{path}[name=side].name: \"side\" → (none)"),
        ]
    );
}

#[test]
fn elements_that_only_changed_their_places_did_not_change() {
    let after = deployment(|d| {
        d["spec"]["template"]["spec"]["containers"]
            .as_array_mut()
            .unwrap()
            .reverse();
    });
    assert!(FieldChanges::between(&deployment(|_| {}), &after, "us", false).is_empty());
}

#[test]
fn who_had_set_a_value_is_told_unless_it_was_us() {
    let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
    let image = json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {"f:image": {}}}}}}});
    let before = deployment(|d| {
        d["metadata"]["managedFields"] = json!([
            entry(
                "us",
                "2026-01-03T00:00:00Z",
                json!({"f:spec": {"f:replicas": {}}, "f:metadata": {"f:labels": {"f:a": {}}}})
            ),
            entry(
                "old",
                "2026-01-01T00:00:00Z",
                json!({"f:spec": {"f:replicas": {}}})
            ),
            entry(
                "kubectl-edit",
                "2026-01-02T00:00:00Z",
                json!({"f:spec": {"f:replicas": {}}})
            ),
            entry("bot", "", image),
        ]);
    });
    let after = deployment(|d| {
        d["metadata"]["labels"]["a"] = json!("c");
        d["spec"]["replicas"] = json!(3);
        d["spec"]["template"]["spec"]["containers"][0]["image"] = json!("b");
    });
    assert_eq!(
        lines_of(&before, &after),
        [
            "metadata.labels.a: \"b\" → \"c\"",
            "spec.replicas: 5 → 3 (was set by kubectl-edit at 2026-01-02T00:00:00Z)",
            "spec.template.spec.containers[name=app].image: \"a\" → \"b\" (was set by bot)",
        ]
    );
}

#[test]
fn values_of_secrets_are_masked_as_flux_masks_them() {
    let secret = |data: Value| json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data});
    assert_eq!(
        lines_of(
            &secret(json!({"a": "c2VjcmV0", "b": "c2VjcmV0"})),
            &secret(json!({"a": "aHVudGVy", "c": "aHVudGVy"}))
        ),
        [
            "data.a: *** (before) → *** (after)",
            "data.b: *** → (none)",
            "data.c: (none) → ***"
        ]
    );
    for (before, after) in [
        (json!(null), json!({"a": "aHVudGVy"})),
        (json!("aHVudGVy"), json!({"a": {"b": "aHVudGVy"}})),
    ] {
        let told = lines_of(&secret(before), &secret(after)).join("\n");
        assert!(told.contains("***") && !told.contains("aHVudGVy"), "{told}");
    }
    let copy = |value: &str| {
        let key = "kubectl.kubernetes.io/last-applied-configuration";
        json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"annotations": {key: value}}})
    };
    assert!(
        !lines_of(&copy("aHVudGVy"), &copy(""))
            .join("")
            .contains("aHVudGVy")
    );
}

#[test]
fn confidential_objects_show_no_value() {
    let map = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"v": value}}, "data": {"a": value}});
    let changes = FieldChanges::between(&map("1"), &map("2"), "us", true);
    let told: Vec<_> = changes.fields.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            "metadata.labels.v: *** (before) → *** (after)",
            "data.a: *** (before) → *** (after)"
        ]
    );
}

#[test]
fn what_is_told_is_bounded_however_much_changed() {
    let map = |value: &str| {
        let data: serde_json::Map<_, _> = (0..1000)
            .map(|n| (format!("k{n:03}"), json!(value.repeat(1000))))
            .collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
    };
    let changes = FieldChanges::between(&map("a"), &map("b"), "us", false);
    assert_eq!((changes.fields.len(), changes.more), (FIELDS, 1000 - FIELDS));
    assert!(changes.fields.iter().all(|field| field.to_string().len() < 300));
    let objects = || (0..1000).map(|n| (format!("ConfigMap/default/{n}"), &changes));
    let text = report(objects(), 4096);
    assert!(
        text.len() <= 4096 && text.ends_with("and fields of 999 more objects"),
        "{text}"
    );
    assert_eq!(report(objects(), 10), "and fields of 1000 more objects");

    let deep = |leaf: u32| {
        let nested = (0..100).fold(json!(leaf), |inner, _| json!({"a": inner}));
        json!({"kind": "A", "apiVersion": "a/v1", "spec": nested})
    };
    assert_eq!(
        FieldChanges::between(&deep(1), &deep(2), "us", false)
            .fields
            .len(),
        1
    );
}

#[test]
fn a_report_names_each_object_once() {
    let changes = FieldChanges::between(
        &deployment(|_| {}),
        &deployment(|d| d["spec"]["replicas"] = json!(1)),
        "us",
        false,
    );
    let none = FieldChanges::default();
    let text = report(
        [
            ("a".to_owned(), &none),
            ("Deployment/default/web".to_owned(), &changes),
        ],
        4096,
    );
    assert_eq!(text, "Deployment/default/web:\n  spec.replicas: 5 → 1");
}
