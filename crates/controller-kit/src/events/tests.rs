//! Events as they go over the wire.

use std::time::Duration;

use api::kustomize::Kustomization;
use serde_json::{Value, json};

use super::*;
use crate::mock_api::{self, Asked, Log};

fn kustomization() -> Kustomization {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "apps", "uid": "u-1", "resourceVersion": "5",
            "annotations": {"event.toolkit.fluxcd.io/image": "web:2", "other": "x"}},
        "spec": {"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "web"}},
    }))
    .expect("it is a Kustomization")
}

fn accept(asked: &Asked) -> (u16, Value) {
    match asked.method.as_str() {
        "POST" => (201, asked.body.clone()),
        _ => (
            200,
            json!({"metadata": {"name": asked.path.rsplit('/').next()}, "involvedObject": {}}),
        ),
    }
}

fn publish(recorder: &Recorder, message: &str) {
    let annotations = [("kustomize.toolkit.fluxcd.io/revision", "main@sha1:1")];
    let annotations = annotations
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into();
    recorder.publish(
        &kustomization(),
        Severity::Error,
        "BuildFailed",
        message,
        annotations,
    );
}

/// With the clock paused, waiting lets everything else run until it waits too.
async fn settle(log: &Log, requests: usize) {
    for _ in 0..1000 {
        if log.all().len() >= requests {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(log.all().len(), requests, "{:?}", log.lines());
}

#[tokio::test(start_paused = true)]
async fn an_event_looks_as_flux_writes_it() {
    let (client, log) = mock_api::client(accept);
    let recorder = Recorder::new(client, "kustomize-controller", CancellationToken::new());
    publish(&recorder, "no such file");
    settle(&log, 1).await;
    let asked = log.all().remove(0);
    assert_eq!(asked.line(), "POST /api/v1/namespaces/apps/events");
    let mut event = asked.body;
    let name = event["metadata"]["name"].take();
    assert!(name.as_str().expect("a name").starts_with("web."), "{name}");
    for key in ["firstTimestamp", "lastTimestamp"] {
        let time = event[key].take();
        assert_eq!(
            time.as_str().expect("a time").len(),
            "2026-11-21T10:00:00Z".len(),
            "{time}"
        );
    }
    let expected = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": null, "namespace": "apps", "annotations": {
            "kustomize.toolkit.fluxcd.io/revision": "main@sha1:1", "event.toolkit.fluxcd.io/image": "web:2"}},
        "involvedObject": {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "name": "web", "namespace": "apps", "uid": "u-1", "resourceVersion": "5"},
        "reason": "BuildFailed", "message": "no such file", "type": "Warning", "count": 1,
        "firstTimestamp": null, "lastTimestamp": null,
        "source": {"component": "kustomize-controller"}, "reportingComponent": "kustomize-controller",
    });
    assert_eq!(event, expected);
}

#[tokio::test(start_paused = true)]
async fn a_repeat_is_a_patch_of_the_count() {
    let (client, log) = mock_api::client(accept);
    let recorder = Recorder::new(client, "kustomize-controller", CancellationToken::new());
    publish(&recorder, "boom");
    publish(&recorder, "boom");
    settle(&log, 2).await;
    let all = log.all();
    let name = all[0].body["metadata"]["name"].as_str().expect("a name");
    assert_eq!(
        all[1].line(),
        format!("PATCH /api/v1/namespaces/apps/events/{name}")
    );
    assert_eq!(all[1].content_type, "application/strategic-merge-patch+json");
    assert_eq!(
        (&all[1].body["count"], &all[1].body["message"]),
        (&json!(2), &json!("boom"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_event_is_created_again_with_its_count() {
    let (client, log) = mock_api::client(|asked| match asked.method.as_str() {
        "PATCH" => mock_api::refusal(404, "NotFound"),
        _ => accept(asked),
    });
    let recorder = Recorder::new(client, "kustomize-controller", CancellationToken::new());
    publish(&recorder, "boom");
    publish(&recorder, "boom");
    settle(&log, 3).await;
    assert_eq!(log.all()[2].body["count"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_event_does_not_hold_up_the_next() {
    let (client, log) = mock_api::client(|asked| match asked.body["message"].as_str() {
        Some("bad") => mock_api::refusal(403, "Forbidden"),
        _ => accept(asked),
    });
    let recorder = Recorder::new(client, "kustomize-controller", CancellationToken::new());
    publish(&recorder, "bad");
    publish(&recorder, "good");
    settle(&log, 2).await;
    assert_eq!(log.all()[1].body["message"], "good");
}

#[tokio::test(start_paused = true)]
async fn publishing_never_waits() {
    // Nothing answers: the queue fills, and the rest is dropped.
    let client = Client::new(
        tower::service_fn(|_: http::Request<kube::client::Body>| {
            std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
        }),
        "default",
    );
    let recorder = Recorder::new(client, "kustomize-controller", CancellationToken::new());
    for number in 0..QUEUE_LENGTH + 10 {
        publish(&recorder, &number.to_string());
    }
    assert_eq!(recorder.dropped.load(Ordering::Relaxed), 10);
}

#[tokio::test(start_paused = true)]
async fn what_waits_at_shutdown_is_still_written() {
    let (client, log) = mock_api::client(accept);
    let token = CancellationToken::new();
    let recorder = Recorder::new(client, "kustomize-controller", token.clone());
    publish(&recorder, "one");
    publish(&recorder, "two");
    token.cancel();
    settle(&log, 2).await;
}

#[test]
fn severities_are_the_two_types_of_events() {
    let cases = [
        (Severity::Trace, "Normal"),
        (Severity::Info, "Normal"),
        (Severity::Error, "Warning"),
    ];
    for (severity, expected) in cases {
        assert_eq!(severity.event_type(), expected);
    }
}
