//! For tests: an API server that is a function from request to answer, and remembers what it was asked.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

/// One request as it came in.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    pub(crate) content_type: String,
    pub(crate) body: Value,
}

impl Asked {
    /// "PATCH /api/v1/…"
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// All requests so far.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Asked>>>);

impl Log {
    pub(crate) fn all(&self) -> Vec<Asked> {
        self.0.lock().expect("no test panics with it").clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.all().iter().map(Asked::line).collect()
    }
}

/// A client of a server that answers with status code and JSON.
pub(crate) fn client<F>(answer: F) -> (Client, Log)
where
    F: Fn(&Asked) -> (u16, Value) + Send + Sync + 'static,
{
    let (log, answer) = (Log::default(), Arc::new(answer));
    let recorded = log.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (recorded, answer) = (recorded.clone(), Arc::clone(&answer));
        async move {
            let asked = read(request).await;
            recorded
                .0
                .lock()
                .expect("no test panics with it")
                .push(asked.clone());
            let (code, body) = answer(&asked);
            Response::builder()
                .status(code)
                .body(Body::from(body.to_string().into_bytes()))
        }
    });
    (Client::new(service, "default"), log)
}

/// The answer of an API server that refuses.
pub(crate) fn refusal(code: u16, reason: &str) -> (u16, Value) {
    let body = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("refused: {reason}"), "reason": reason, "code": code });
    (code, body)
}

async fn read(request: Request<Body>) -> Asked {
    let (parts, body) = request.into_parts();
    let bytes = body.collect_bytes().await.expect("bodies of requests are whole");
    let content_type = parts
        .headers
        .get("content-type")
        .and_then(|value| value.to_str().ok());
    Asked {
        method: parts.method.to_string(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        content_type: content_type.unwrap_or_default().to_owned(),
        body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
    }
}
