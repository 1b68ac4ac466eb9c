//! Watches as lists of events.

use api::kustomize::Kustomization;
use api::source::GitRepository;
use futures::stream;
use kube::runtime::watcher::Event;
use serde_json::{Value, json};

use super::*;

/// An object with its generation and whatever else is laid over it.
fn object(name: &str, generation: i64, overlay: Value) -> Kustomization {
    let mut value = json!({
        "metadata": {"name": name, "namespace": "apps", "uid": name, "generation": generation, "annotations": {}},
        "spec": {"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "web"}},
    });
    for (pointer, overlaid) in overlay.as_object().expect("an overlay is an object") {
        let (parent, key) = pointer.rsplit_once('/').expect("keys are pointers");
        let parent = if parent.is_empty() {
            Some(&mut value)
        } else {
            value.pointer_mut(parent)
        };
        parent.expect("the parent is there")[key] = overlaid.clone();
    }
    serde_json::from_value(value).expect("it is a Kustomization")
}

fn plain(name: &str, generation: i64) -> Kustomization {
    object(name, generation, json!({}))
}

/// Runs events through; gives the names of the objects that came.
async fn names(events: Vec<Event<Kustomization>>) -> Vec<String> {
    let events = stream::iter(events.into_iter().map(Ok));
    let (_, touched) = store_and_touched(events, |object| Some(ReconcileTrigger::from_object(object)));
    touched.map(|reference| reference.name).collect().await
}

#[tokio::test]
async fn an_object_comes_when_something_changed_that_matters() {
    let requested =
        |value: &str| json!({"/metadata/annotations": {"reconcile.fluxcd.io/requestedAt": value}});
    let cases = [
        ("a new generation", plain("a", 1), plain("a", 2), true),
        ("nothing", plain("a", 1), plain("a", 1), false),
        (
            "our own status",
            plain("a", 1),
            object("a", 1, json!({"/status": {"observedGeneration": 1}})),
            false,
        ),
        (
            "another version",
            plain("a", 1),
            object("a", 1, json!({"/metadata/resourceVersion": "9"})),
            false,
        ),
        (
            "a label",
            plain("a", 1),
            object("a", 1, json!({"/metadata/labels": {"x": "y"}})),
            false,
        ),
        (
            "a finalizer",
            plain("a", 1),
            object("a", 1, json!({"/metadata/finalizers": ["f"]})),
            false,
        ),
        ("a request", plain("a", 1), object("a", 1, requested("1")), true),
        (
            "another request",
            object("a", 1, requested("1")),
            object("a", 1, requested("2")),
            true,
        ),
        (
            "the same request",
            object("a", 1, requested("1")),
            object("a", 1, requested("1")),
            false,
        ),
        (
            "deletion",
            plain("a", 1),
            object(
                "a",
                1,
                json!({"/metadata/deletionTimestamp": "2026-11-21T10:00:00Z"}),
            ),
            true,
        ),
        (
            "a new object of the same name",
            plain("a", 1),
            object("a", 1, json!({"/metadata/uid": "b"})),
            true,
        ),
    ];
    for (name, before, after, comes) in cases {
        let events = vec![
            Event::Init,
            Event::InitApply(before),
            Event::InitDone,
            Event::Apply(after),
        ];
        assert_eq!(names(events).await.len(), 1 + usize::from(comes), "{name}");
    }
}

#[tokio::test]
async fn a_list_after_a_broken_watch_brings_what_changed_meanwhile() {
    let events = vec![
        Event::Init,
        Event::InitApply(plain("same", 1)),
        Event::InitApply(plain("changed", 1)),
        Event::InitApply(plain("gone", 1)),
        Event::InitDone,
        Event::Init,
        Event::InitApply(plain("same", 1)),
        Event::InitApply(plain("changed", 2)),
        Event::InitApply(plain("new", 1)),
        Event::InitDone,
        Event::Delete(plain("same", 1)),
    ];
    assert_eq!(
        names(events).await,
        ["same", "changed", "gone", "changed", "new", "gone", "same"]
    );
}

#[tokio::test]
async fn a_list_that_is_begun_again_is_one_list() {
    let events = vec![
        Event::Init,
        Event::InitApply(plain("a", 1)),
        Event::Init,
        Event::InitApply(plain("a", 1)),
        Event::InitApply(plain("b", 1)),
        Event::InitDone,
    ];
    assert_eq!(names(events).await, ["a", "b"]);
}

#[tokio::test]
async fn who_gets_a_key_finds_the_object() {
    let events = vec![
        Event::Init,
        Event::InitApply(plain("a", 1)),
        Event::InitDone,
        Event::Apply(plain("a", 2)),
        Event::Delete(plain("a", 2)),
    ];
    let events = stream::iter(events.into_iter().map(Ok));
    let (store, touched) = store_and_touched(events, |object| Some(ReconcileTrigger::from_object(object)));
    let found = touched.map(|reference| {
        store
            .get(&reference)
            .and_then(|object| object.metadata.generation)
    });
    assert_eq!(found.collect::<Vec<_>>().await, [Some(1), Some(2), None]);
}

#[tokio::test]
async fn an_object_without_a_fingerprint_is_kept_and_never_comes() {
    let events = vec![
        Event::Init,
        Event::InitApply(plain("a", 1)),
        Event::InitDone,
        Event::Apply(plain("a", 2)), // gets a fingerprint
        Event::Apply(plain("a", 4)), // the same one
        Event::Apply(plain("a", 5)), // loses it
        Event::Delete(plain("a", 5)),
    ];
    let events = stream::iter(events.into_iter().map(Ok));
    let even = |object: &Kustomization| {
        object
            .metadata
            .generation
            .filter(|generation| generation % 2 == 0)
            .map(|_| ())
    };
    let (_, touched) = store_and_touched(events, even);
    assert_eq!(touched.count().await, 2);
}

#[tokio::test]
async fn errors_of_the_watch_do_not_end_the_stream() {
    let events = vec![
        Err(watcher::Error::NoResourceVersion),
        Ok(Event::Apply(plain("a", 1))),
        Err(watcher::Error::NoResourceVersion),
        Ok(Event::Apply(plain("b", 1))),
    ];
    let (_, touched) = store_and_touched(stream::iter(events), |object| {
        Some(ReconcileTrigger::from_object(object))
    });
    assert_eq!(touched.count().await, 2);
}

#[test]
fn managed_fields_and_the_last_applied_manifest_are_dropped() {
    let mut stripped = object(
        "a",
        1,
        json!({
            "/metadata/managedFields": [{"manager": "kubectl"}],
            "/metadata/annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "x"},
        }),
    );
    strip(&mut stripped);
    assert_eq!(stripped.metadata.managed_fields, None);
    assert_eq!(stripped.annotations().keys().collect::<Vec<_>>(), ["kept"]);
}

#[test]
fn a_request_is_handled_once() {
    let cases = [
        (None, None, false),
        (Some("1"), None, true),
        (Some("1"), Some("1"), false),
        (Some("2"), Some("1"), true),
        (None, Some("1"), false),
    ];
    for (requested, handled, expected) in cases {
        let mut object = plain("a", 1);
        if let Some(requested) = requested {
            object.annotations_mut().insert(
                api::meta::RECONCILE_REQUEST_ANNOTATION.to_owned(),
                requested.to_owned(),
            );
        }
        object.status = handled.map(|handled| {
            serde_json::from_value(json!({"lastHandledReconcileAt": handled})).expect("it is a status")
        });
        assert_eq!(
            should_reconcile_now(&object),
            expected,
            "{requested:?} {handled:?}"
        );
    }
}

#[test]
fn the_answer_to_a_write_is_newer_than_the_store_until_the_watch_catches_up() {
    let at =
        |version: &str, generation| object("a", generation, json!({"/metadata/resourceVersion": version}));
    let (store, mut writer) = reflector::store();
    let cache = Cache::new(store);
    let reference = ObjectRef::from_obj(&at("9", 1));
    let seen = |cache: &Cache<Kustomization>| {
        cache
            .get(&reference)
            .map(|object| object.resource_version().expect("set"))
    };
    cache.remember(at("8", 1));
    assert_eq!(
        seen(&cache),
        None,
        "an object that the watch does not have is gone"
    );
    writer.apply_watcher_event(&Event::Apply(at("9", 1)));
    cache.remember(at("10", 1));
    assert_eq!(seen(&cache).as_deref(), Some("10"), "as numbers, not as text");
    cache.remember(at("9", 1));
    assert_eq!(seen(&cache).as_deref(), Some("10"), "a late answer is not newer");
    writer.apply_watcher_event(&Event::Apply(at("11", 2)));
    assert_eq!(seen(&cache).as_deref(), Some("11"));
    writer.apply_watcher_event(&Event::Delete(at("11", 2)));
    cache.remember(at("12", 2));
    assert_eq!(seen(&cache), None);
}

#[test]
fn an_object_that_cannot_be_read_is_left_out() {
    let read = |spec: serde_json::Value| -> DeserializeGuard<GitRepository> {
        let object = serde_json::json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": "a", "namespace": "b"}, "spec": spec,
        });
        serde_json::from_value(object).expect("the guard takes what has metadata")
    };
    let good = read(serde_json::json!({"url": "https://host/path", "interval": "1m"}));
    assert!(matches!(readable(Event::Apply(good)), Some(Event::Apply(_))));
    let bad = read(serde_json::json!({"url": ["no", "text"], "interval": "1m"}));
    assert!(readable(Event::InitApply(bad)).is_none());
    assert!(matches!(
        readable::<GitRepository>(Event::InitDone),
        Some(Event::InitDone)
    ));
}
