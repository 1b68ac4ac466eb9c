//! A server that keeps one object and applies the patches, with and without others who change it.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;

use super::*;
use crate::mock_api::{self, Asked, Log};

type Finalizers = Arc<Mutex<Vec<String>>>;

fn object(finalizers: &[String], deleted: bool) -> ConfigMap {
    let mut value =
        json!({ "metadata": { "name": "a", "namespace": "ns", "uid": "1", "finalizers": finalizers } });
    if deleted {
        value["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:00:00Z");
    }
    serde_json::from_value(value).expect("it is a ConfigMap")
}

/// Applies the two operations that we send, as the API server would.
fn apply(finalizers: &mut Vec<String>, operations: &Value) -> bool {
    let (test, change) = (&operations[0], &operations[1]);
    let path = test["path"].as_str().expect("every operation has a path");
    let found = match path.strip_prefix("/metadata/finalizers/") {
        Some(index) => finalizers
            .get(index.parse::<usize>().expect("a number"))
            .map(|name| json!(name)),
        None => (!finalizers.is_empty()).then(|| json!(finalizers)),
    };
    if found.unwrap_or(Value::Null) != test["value"] {
        return false;
    }
    match (
        change["op"].as_str(),
        change["path"].as_str().and_then(|path| path.rsplit('/').next()),
    ) {
        (Some("remove"), Some(index)) => drop(finalizers.remove(index.parse().expect("a number"))),
        (Some("add"), Some("-")) => finalizers.push(change["value"].as_str().expect("a name").to_owned()),
        (Some("add"), _) => *finalizers = serde_json::from_value(change["value"].clone()).expect("a list"),
        other => panic!("{other:?}"),
    }
    true
}

fn server(stored: &[&str]) -> (Client, Log, Finalizers) {
    let finalizers: Finalizers = Arc::new(Mutex::new(stored.iter().map(|name| (*name).to_owned()).collect()));
    let kept = Arc::clone(&finalizers);
    let (client, log) = mock_api::client(move |asked: &Asked| {
        let mut finalizers = kept.lock().expect("no test panics with it");
        if asked.method == "PATCH" && !apply(&mut finalizers, &asked.body) {
            return mock_api::refusal(422, "Invalid");
        }
        (
            200,
            serde_json::to_value(object(&finalizers, false)).expect("it serializes"),
        )
    });
    (client, log, finalizers)
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn it_is_added_and_removed_and_others_stay() {
    // (seen by us, stored, after adding, after removing)
    type Names = &'static [&'static str];
    let cases: [[Names; 4]; 5] = [
        [&[], &[], &[FINALIZER], &[]],
        [&["x"], &["x"], &["x", FINALIZER], &["x"]],
        [&[], &["x"], &["x", FINALIZER], &["x"]],
        [&["x", "y"], &["y"], &["y", FINALIZER], &["y"]],
        [&[], &[FINALIZER, "x"], &[FINALIZER, "x"], &["x"]],
    ];
    for [seen, stored, added, removed] in cases {
        let (client, _, finalizers) = server(stored);
        let changed = add(&client, &object(&names(seen), false), "manager")
            .await
            .expect("it is taken");
        assert_eq!(
            *finalizers.lock().expect("no panic"),
            added,
            "{seen:?} {stored:?}"
        );
        let current = changed.unwrap_or_else(|| object(&names(added), false));
        remove(&client, &current, "manager").await.expect("it is taken");
        assert_eq!(
            *finalizers.lock().expect("no panic"),
            removed,
            "{seen:?} {stored:?}"
        );
    }
}

#[tokio::test]
async fn a_stale_index_does_not_remove_the_finalizer_of_another() {
    let (client, log, finalizers) = server(&[FINALIZER, "x"]);
    remove(&client, &object(&names(&["y", FINALIZER]), false), "manager")
        .await
        .expect("it is taken");
    assert_eq!(*finalizers.lock().expect("no panic"), ["x"]);
    let path = "/api/v1/namespaces/ns/configmaps/a";
    assert_eq!(
        log.lines(),
        [
            format!("PATCH {path}"),
            format!("GET {path}"),
            format!("PATCH {path}")
        ]
    );
}

#[tokio::test]
async fn nothing_is_sent_when_there_is_nothing_to_do() {
    let (client, log, _) = server(&[]);
    let with = object(&names(&[FINALIZER]), false);
    let deleted = object(&[], true);
    assert!(
        add(&client, &with, "manager")
            .await
            .expect("nothing fails")
            .is_none()
    );
    assert!(
        add(&client, &deleted, "manager")
            .await
            .expect("nothing fails")
            .is_none()
    );
    assert!(
        remove(&client, &deleted, "manager")
            .await
            .expect("nothing fails")
            .is_none()
    );
    assert!(log.all().is_empty());
}

#[tokio::test]
async fn an_object_that_is_gone_needs_nothing() {
    let (client, _) = mock_api::client(|_| mock_api::refusal(404, "NotFound"));
    let with = object(&names(&[FINALIZER]), true);
    assert!(
        remove(&client, &with, "manager")
            .await
            .expect("it is gone")
            .is_none()
    );
}

#[tokio::test]
async fn a_server_that_always_refuses_is_not_asked_for_ever() {
    let (client, log) = mock_api::client(|asked| match asked.method.as_str() {
        "GET" => (
            200,
            serde_json::to_value(object(&[], false)).expect("it serializes"),
        ),
        _ => mock_api::refusal(422, "Invalid"),
    });
    let error = add(&client, &object(&[], false), "manager")
        .await
        .expect_err("it is refused");
    assert_eq!(error.to_string(), "failed to add the finalizer of ns/a");
    assert_eq!(
        log.lines()
            .iter()
            .filter(|line| line.starts_with("PATCH"))
            .count(),
        ATTEMPTS
    );
}
