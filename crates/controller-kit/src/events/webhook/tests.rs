//! Events as a notification-controller gets them.

use std::sync::{Arc, Mutex};

use api::kustomize::Kustomization;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::*;
use crate::events::Recorder;
use crate::events::occurrence::Severity;
use crate::mock_api;

/// A receiver that answers with the given statuses, one after the other, and then with 202.
#[derive(Clone, Default)]
struct Receiver {
    answers: Arc<Mutex<Vec<u16>>>,
    /// Content type and body of each request.
    got: Arc<Mutex<Vec<(String, Value)>>>,
}

async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: String) -> StatusCode {
    let kind = headers["content-type"].to_str().unwrap().to_owned();
    let body = serde_json::from_str(&body).unwrap();
    receiver.got.lock().unwrap().push((kind, body));
    let answer = receiver.answers.lock().unwrap().pop().unwrap_or(202);
    StatusCode::from_u16(answer).unwrap()
}

impl Receiver {
    /// Starts it with the answers; also gives a webhook that does not wait long.
    async fn start(answers: &[u16]) -> (Self, Webhook) {
        crate::process::init();
        let receiver = Self::default();
        *receiver.answers.lock().unwrap() = answers.iter().rev().copied().collect();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}/", listener.local_addr().unwrap());
        let router = Router::new()
            .route("/", post(receive))
            .with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let webhook = Webhook::from_flag(&address).unwrap().unwrap();
        let pause = Duration::from_millis(1);
        (receiver, Webhook { pause, ..webhook })
    }

    fn messages(&self) -> Vec<String> {
        let got = self.got.lock().unwrap();
        let message = |(_, body): &(String, Value)| body["message"].as_str().unwrap().to_owned();
        got.iter().map(message).collect()
    }
}

fn notification(message: &str) -> Notification {
    let event = Event {
        message: message.to_owned(),
        ..Event::default()
    };
    Notification {
        event,
        since: Instant::now(),
    }
}

/// Posts one after the other, and returns when all was tried.
async fn deliver(webhook: Webhook, messages: &[&str]) {
    let (sender, queue) = mpsc::channel(8);
    for message in messages {
        sender.send(notification(message)).await.unwrap();
    }
    drop(sender);
    webhook.run(queue, CancellationToken::new()).await;
}

fn kustomization(namespace: Option<&str>) -> Kustomization {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": namespace, "uid": "u-1", "resourceVersion": "5",
            "annotations": {"event.toolkit.fluxcd.io/image": "web:2", "other": "x"}},
        "spec": {"interval": "10m", "prune": true, "sourceRef": {"kind": "GitRepository", "name": "web"}},
    }))
    .unwrap()
}

#[tokio::test]
async fn an_event_is_posted_as_flux_posts_it() {
    let (receiver, webhook) = Receiver::start(&[]).await;
    let (client, _) = mock_api::client(|asked| (201, asked.body.clone()));
    let token = CancellationToken::new();
    let (recorder, task) = Recorder::start(client, "kustomize-controller", Some(webhook), token.clone());
    let revision = || {
        [(
            "kustomize.toolkit.fluxcd.io/revision".to_owned(),
            "main@sha1:1".to_owned(),
        )]
        .into()
    };
    let object = kustomization(Some("apps"));
    recorder.publish(
        &object,
        Severity::Error,
        "BuildFailed",
        "no <such> file",
        revision(),
    );
    recorder.publish(
        &object,
        Severity::Trace,
        "Progressing",
        "for the Event only",
        revision(),
    );
    // Flux does not post events of what has no namespace.
    recorder.publish(
        &kustomization(None),
        Severity::Info,
        "Progressing",
        "nowhere",
        revision(),
    );
    token.cancel();
    task.await.unwrap();
    let mut got = receiver.got.lock().unwrap().clone();
    assert_eq!(got.len(), 1, "{got:?}");
    let (content_type, mut event) = got.remove(0);
    assert_eq!(content_type, "application/json");
    let timestamp = event["timestamp"].take();
    assert!(
        timestamp.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(),
        "{timestamp}"
    );
    assert_eq!(timestamp.as_str().unwrap().len(), "2026-11-22T10:00:00Z".len());
    let instance = event["reportingInstance"].take();
    assert_eq!(instance, Value::from(super::instance()));
    let expected = json!({
        "involvedObject": {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "name": "web", "namespace": "apps", "uid": "u-1", "resourceVersion": "5"},
        "severity": "error", "timestamp": null, "message": "no <such> file", "reason": "BuildFailed",
        "metadata": {"kustomize.toolkit.fluxcd.io/revision": "main@sha1:1", "event.toolkit.fluxcd.io/image": "web:2"},
        "reportingController": "kustomize-controller", "reportingInstance": null,
    });
    assert_eq!(event, expected);
}

#[tokio::test]
async fn what_a_server_cannot_take_now_is_tried_five_times() {
    let (receiver, webhook) = Receiver::start(&[500, 503, 502, 500]).await;
    deliver(webhook, &["one"]).await;
    assert_eq!(receiver.messages(), ["one"; 5]);
    let (receiver, webhook) = Receiver::start(&[500; 5]).await;
    deliver(webhook, &["one", "two"]).await;
    assert_eq!(receiver.messages(), ["one", "one", "one", "one", "one", "two"]);
}

#[tokio::test]
async fn what_is_a_repeat_or_refused_is_not_tried_again() {
    for answer in [429, 400, 404, 501] {
        let (receiver, webhook) = Receiver::start(&[answer]).await;
        deliver(webhook, &["one", "two"]).await;
        assert_eq!(receiver.messages(), ["one", "two"], "{answer}");
    }
}

#[tokio::test]
async fn a_receiver_that_stays_away_costs_late_events_one_attempt_each() {
    let (receiver, webhook) = Receiver::start(&[500; 6]).await;
    let (sender, queue) = mpsc::channel(8);
    sender.send(notification("first")).await.unwrap();
    let mut late = notification("late");
    late.since = Instant::now().checked_sub(PATIENCE * 2).unwrap();
    sender.send(late).await.unwrap();
    drop(sender);
    webhook.run(queue, CancellationToken::new()).await;
    assert_eq!(
        receiver.messages(),
        ["first", "first", "first", "first", "first", "late"]
    );
}

#[test]
fn an_address_is_a_url_or_nothing() {
    crate::process::init();
    assert!(Webhook::from_flag("").unwrap().is_none());
    assert!(
        Webhook::from_flag("http://notification-controller.flux-system.svc.cluster.local./")
            .unwrap()
            .is_some()
    );
    assert!(Webhook::from_flag("not a url").is_err());
}
