use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use controller_kit::metrics::Metrics;
use kube::client::Body;
use kube::runtime::{reflector, watcher};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::objects::Ready;

const SECOND: Duration = Duration::from_secs(1);

/// A dispatcher with a Provider `p`, before an API server that tells labels when it is let, one time each.
struct Bench {
    dispatcher: Dispatcher,
    asked: Arc<AtomicUsize>,
    allowed: Arc<Notify>,
    metrics: Metrics,
}

impl Bench {
    /// With an Alert for each spec and its annotations.
    fn new(alerts: &[(Value, Value)]) -> Self {
        let (asked, allowed) = (Arc::<AtomicUsize>::default(), Arc::new(Notify::new()));
        let client = client(Arc::clone(&asked), Arc::clone(&allowed));
        let provider = json!({
            "metadata": {"name": "p", "namespace": "apps"},
            "spec": {"type": "generic", "address": "http://localhost"},
        });
        let (providers, mut writer) = reflector::store();
        writer.apply_watcher_event(&watcher::Event::Apply(serde_json::from_value(provider).unwrap()));
        let metrics = Metrics::new();
        let dispatcher = Dispatcher::new(
            client.clone(),
            Recorder::new(client, "notification-controller", CancellationToken::new()),
            Policy::default(),
            providers,
            Desk::new(300 * SECOND),
            Results::register(&metrics),
        );
        let alerts = alerts.iter().enumerate().map(|(number, (source, annotations))| {
            let mut source = source.clone();
            source["kind"] = json!("Kustomization");
            source["name"] = json!("*");
            let alert = json!({
                "metadata": {"name": format!("a{number}"), "namespace": "apps", "annotations": annotations},
                "spec": {"providerRef": {"name": "p"}, "eventSources": [source]},
            });
            Arc::new(serde_json::from_value(alert).unwrap())
        });
        dispatcher.set_rules(&alerts.collect::<Vec<_>>());
        Self {
            dispatcher,
            asked,
            allowed,
            metrics,
        }
    }

    /// Returns the events that wait to be sent.
    fn waiting(&self) -> Vec<Event> {
        let queues = self.dispatcher.desk().outbox.saved();
        let waiting = queues.into_iter().flat_map(|queue| queue.waiting);
        waiting.map(|delivery| delivery.message.event).collect()
    }

    fn observe(&self, ready: Ready, revision: &str) {
        let object = event("").involved_object;
        let known = Known {
            ready: ready.clone(),
            revision: Some(revision.to_owned()),
            ..Known::default()
        };
        let observed = Observed {
            object,
            ready,
            ..Observed::default()
        };
        self.dispatcher.observe(known, &observed, true);
    }
}

fn client(asked: Arc<AtomicUsize>, allowed: Arc<Notify>) -> Client {
    let server = tower::service_fn(move |request: http::Request<Body>| {
        let (asked, allowed) = (Arc::clone(&asked), Arc::clone(&allowed));
        async move {
            if request.method() == http::Method::GET {
                asked.fetch_add(1, Ordering::Relaxed);
                allowed.notified().await;
            }
            let object = json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": {"name": "web", "namespace": "apps", "labels": {"team": "a"}},
            });
            let body = Body::from(object.to_string().into_bytes());
            Ok::<_, Infallible>(http::Response::new(body))
        }
    });
    Client::new(server, "default")
}

fn labelled(team: &str) -> (Value, Value) {
    (json!({"matchLabels": {"team": team}}), json!({}))
}

fn event(message: &str) -> Event {
    let event = json!({
        "involvedObject": {
            "kind": "Kustomization", "namespace": "apps", "name": "web", "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        },
        "severity": "error", "reason": "BuildFailed", "message": message,
        "metadata": {"kustomize.toolkit.fluxcd.io/revision": "1"},
    });
    serde_json::from_value(event).unwrap()
}

#[tokio::test]
async fn labels_are_read_once_for_all_alerts() {
    let bench = Bench::new(&[labelled("a"), labelled("a"), labelled("b")]);
    bench.allowed.notify_one();
    let verdict = bench.dispatcher.take(event("broken"), Way::Posted).await;
    assert_eq!(verdict, Verdict::New);
    assert_eq!(bench.waiting().len(), 2);
    assert_eq!(bench.asked.load(Ordering::Relaxed), 1);
    // What was heard already is not for anybody.
    let verdict = bench.dispatcher.take(event("broken"), Way::Posted).await;
    assert_eq!(verdict, Verdict::Repeated);
    assert_eq!(bench.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_counts_as_heard_only_when_it_is_told() {
    let bench = Bench::new(&[labelled("a")]);
    let taken = timeout(SECOND, bench.dispatcher.take(event("broken"), Way::Posted)).await;
    assert!(taken.is_err() && bench.waiting().is_empty());
    bench.allowed.notify_one();
    let verdict = bench.dispatcher.take(event("broken"), Way::Posted).await;
    assert_eq!(verdict, Verdict::New);
    assert_eq!(bench.waiting().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn labels_are_not_waited_for_without_end() {
    let bench = Bench::new(&[labelled("a"), (json!({}), json!({}))]);
    let taken = timeout(20 * SECOND, bench.dispatcher.take(event("broken"), Way::Posted)).await;
    assert_eq!(taken, Ok(Verdict::New));
    assert_eq!(bench.waiting().len(), 1, "the other Alert needs none");
}

#[tokio::test]
async fn an_event_that_counts_several_tells_the_revision_of_the_status() {
    let bench = Bench::new(&[(json!({}), json!({}))]);
    bench.observe(Ready::Unknown, "2");
    bench.dispatcher.take(event("broken"), Way::Counted).await;
    let waiting = bench.waiting();
    assert_eq!(json!(waiting[0].metadata), json!({"revision": "2"}));
}

#[tokio::test]
async fn what_is_deleted_while_it_fails_is_told_as_over_and_suspected_no_more() {
    let bench = Bench::new(&[(json!({}), json!({"windlass.dev/resolve": "true"}))]);
    let failing = Ready::False {
        reason: "BuildFailed".to_owned(),
        message: "broken otherwise".to_owned(),
    };
    bench.observe(failing, "1");
    bench.dispatcher.take(event("broken"), Way::Posted).await;
    bench
        .dispatcher
        .forget(|object| object == "Kustomization/apps/web");
    let told: Vec<_> = bench.waiting().into_iter().map(|event| event.message).collect();
    assert_eq!(told, ["broken", "deleted; it had failed with: broken"]);
    assert_eq!(bench.dispatcher.desk().deadline(), None);
}

#[tokio::test]
async fn what_has_no_room_in_the_outbox_is_counted() {
    let bench = Bench::new(&[(json!({}), json!({}))]);
    for number in 0..110 {
        let message = format!("{number} {}", "x".repeat(60_000));
        bench.dispatcher.take(event(&message), Way::Posted).await;
    }
    let dropped = 110 - bench.waiting().len();
    assert!(dropped > 0);
    let line =
        format!("windlass_notifications_total{{provider_type=\"generic\",result=\"dropped\"}} {dropped}\n");
    let metrics = bench.metrics.encode().unwrap();
    assert!(metrics.contains(&line), "{metrics}");
}
