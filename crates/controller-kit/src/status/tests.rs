//! Patches as data, and what goes over the wire.

use api::kustomize::Kustomization;

use super::*;
use crate::mock_api;

/// RFC 7386, for checking: what the server makes of a patch.
fn patched(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut result = target.as_object().cloned().unwrap_or_default();
    for (key, value) in patch {
        if value.is_null() {
            result.remove(key);
        } else {
            let merged = patched(result.get(key).unwrap_or(&Value::Null), value);
            result.insert(key.clone(), merged);
        }
    }
    Value::Object(result)
}

#[test]
fn a_patch_holds_only_what_differs() {
    let cases = [
        (json!({"a": 1}), json!({"a": 1}), None),
        (json!({"a": 1}), json!({"a": 2}), Some(json!({"a": 2}))),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
        (
            json!({"a": {"b": 1, "c": 2}}),
            json!({"a": {"b": 1, "c": 3}}),
            Some(json!({"a": {"c": 3}})),
        ),
        (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
        (json!({"a": [1, 2]}), json!({"a": [1, 2]}), None),
        (
            json!(null),
            json!({"a": {"b": null, "c": 1}}),
            Some(json!({"a": {"c": 1}})),
        ),
        (
            json!({"a": {"b": 1}}),
            json!({"a": null}),
            Some(json!({"a": null})),
        ),
        (json!({"a": null}), json!({}), None),
        (json!({}), json!({"a": null}), None),
        (
            json!({"a": 1}),
            json!({"a": {"b": 1}}),
            Some(json!({"a": {"b": 1}})),
        ),
        (json!({"a": {"b": 1}}), json!({"a": 1}), Some(json!({"a": 1}))),
        (json!({}), json!({"a": {}}), Some(json!({"a": {}}))),
    ];
    for (old, new, expected) in cases {
        let patch = merge_patch(&old, &new);
        assert_eq!(patch, expected, "{old} -> {new}");
        if let Some(patch) = patch {
            let wanted = without_nulls(new.as_object().expect("all are objects"));
            assert_eq!(patched(&old, &patch), wanted, "{old} -> {new}");
        }
    }
}

fn kustomization() -> Kustomization {
    serde_json::from_value(json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "web", "namespace": "apps", "resourceVersion": "5", "generation": 2},
        "spec": {"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "web"}},
        "status": {"observedGeneration": 1, "lastAppliedRevision": "main@sha1:1"},
    }))
    .expect("it is a Kustomization")
}

fn answering_with_the_object(asked: &mock_api::Asked) -> (u16, Value) {
    let mut object = serde_json::to_value(kustomization()).expect("it serializes");
    object["status"] = patched(&object["status"], &asked.body["status"]);
    object["metadata"]["resourceVersion"] = json!("6");
    (200, object)
}

#[tokio::test]
async fn an_equal_status_is_not_sent() {
    let (client, log) = mock_api::client(answering_with_the_object);
    let object = kustomization();
    let status = object.status.clone().expect("it has one");
    let answer = patch_status(&client, &object, &status, "gotk-kustomize-controller")
        .await
        .expect("nothing fails");
    assert!(answer.is_none());
    assert!(log.all().is_empty());
}

#[tokio::test]
async fn a_changed_status_is_one_merge_patch_without_a_resource_version() {
    let (client, log) = mock_api::client(answering_with_the_object);
    let object = kustomization();
    let mut status = object.status.clone().expect("it has one");
    status.observed_generation = Some(2);
    let answer = patch_status(&client, &object, &status, "gotk-kustomize-controller")
        .await
        .expect("it is taken");
    assert_eq!(
        answer.expect("it was sent").metadata.resource_version.as_deref(),
        Some("6")
    );
    let all = log.all();
    assert_eq!(all.len(), 1);
    let path = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/apps/kustomizations/web/status";
    assert_eq!(all[0].line(), format!("PATCH {path}"));
    assert_eq!(all[0].content_type, "application/merge-patch+json");
    assert!(
        all[0].query.contains("fieldManager=gotk-kustomize-controller"),
        "{}",
        all[0].query
    );
    assert_eq!(all[0].body, json!({"status": {"observedGeneration": 2}}));
}

#[tokio::test]
async fn a_first_status_is_sent_whole() {
    let (client, log) = mock_api::client(answering_with_the_object);
    let mut object = kustomization();
    let status = object.status.take().expect("it has one");
    patch_status(&client, &object, &status, "manager")
        .await
        .expect("it is taken");
    let sent = log.all()[0].body["status"].clone();
    assert_eq!(sent["lastAppliedRevision"], "main@sha1:1");
    assert_eq!(sent["observedGeneration"], 1);
}

#[tokio::test]
async fn an_object_that_is_gone_is_told_apart() {
    for (code, gone) in [(404, true), (403, false)] {
        let (client, _) = mock_api::client(move |_| mock_api::refusal(code, "NotFound"));
        let object = kustomization();
        let mut status = object.status.clone().expect("it has one");
        status.observed_generation = Some(9);
        let error = patch_status(&client, &object, &status, "manager")
            .await
            .expect_err("it is refused");
        assert_eq!(error.is_not_found(), gone);
        assert_eq!(error.to_string(), "failed to patch the status of apps/web");
    }
}
