//! For tests: what reconciles and calls share, with an API server that is a function.

use std::sync::{Arc, Mutex};

use clap::Parser as _;
use controller_kit::events::Recorder as Events;
use controller_kit::metrics::Metrics;
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use kube::runtime::{reflector, watcher};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::flags::NAME;

/// Requests to the API server: "PATCH /apis/…", in order.
pub type Asked = Arc<Mutex<Vec<String>>>;

/// A client of an API server that answers with code and JSON.
pub fn client<F, A>(answer: F) -> (Client, Asked)
where
    F: Fn(String) -> A + Send + Sync + 'static,
    A: Future<Output = (u16, Value)> + Send,
{
    let (asked, answer) = (Asked::default(), Arc::new(answer));
    let noted = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let line = format!("{} {}", request.method(), request.uri().path());
        noted.lock().unwrap().push(line.clone());
        let answer = Arc::clone(&answer);
        async move {
            let (code, body) = answer(line).await;
            let body = Body::from(body.to_string().into_bytes());
            Response::builder().status(code).body(body)
        }
    });
    (Client::new(service, "apps"), asked)
}

/// The answer of an API server that refuses.
pub fn refusal(code: u16) -> (u16, Value) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "refused", "code": code});
    (code, body)
}

/// Context after these Receivers have been read.
pub fn context(client: Client, receivers: impl IntoIterator<Item = Receiver>) -> Arc<Context> {
    controller_kit::process::init();
    let (flags, metrics) = (Flags::parse_from([NAME]), Metrics::new());
    let (store, mut writer) = reflector::store();
    for receiver in receivers {
        writer.apply_watcher_event(&watcher::Event::Apply(receiver));
    }
    Arc::new(Context {
        client: client.clone(),
        receivers: Cache::new(store),
        queue: Queue::new("receiver", flags.rate, &metrics),
        index: Index::default(),
        events: Events::new(client, NAME, CancellationToken::new()),
        keys: Keys::new(Issuers::new().unwrap()),
        evaluator: Evaluator::default(),
        values: Semaphore::new(answer::MOST_VALUES_AT_ONCE),
        limiter: Limiter::new(0),
        replays: Replays::new(flags.receiver.receiver_replay_window),
        metrics: HttpMetrics::register(&metrics, "gotk_receiver", false).standing_for_all(PREFIX),
        no_cross_namespace_refs: true,
        served: Served::all(),
        sees_secrets: true,
        unread: Mutex::new(Some(HashSet::new())),
    })
}
