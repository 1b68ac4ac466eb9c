//! Limits the responses of remote clusters: the author of a kubeconfig may run the API server that it names.
//!
//! A response is buffered before it is parsed, and so is each event of a watch. Both are limited in bytes and in JSON values,
//! since a list of empty objects takes a hundred times the memory of its text. A third limit holds for everything that is
//! buffered from all remote clusters at the same time. A request that exceeds a limit fails; the error states the limit.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use manifest::json::ValueCounter;

/// Bytes and JSON values of one answer. A page of 500 objects has some megabytes and 200,000 values.
const ANSWER: Limit = Limit {
    what: "the cluster's answer",
    bytes: 32 << 20,
    values: 2_000_000,
};
/// The same of one event of a watch, which holds one object: etcd takes 1.5 MiB.
const EVENT: Limit = Limit {
    what: "an event of the cluster",
    bytes: 4 << 20,
    values: 250_000,
};
/// Bytes of an answer or event that need no room among all.
const FREE: u64 = 256 << 10;
/// Bytes of all answers and events together, without what is free of each.
const AT_ONCE: u64 = 128 << 20;

#[derive(Debug, Clone, Copy)]
struct Limit {
    what: &'static str,
    bytes: u64,
    values: u64,
}

/// What is being collected from all remote clusters. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Answers(Arc<AtomicU64>);

#[derive(Debug, thiserror::Error)]
enum TooMuch {
    #[error("{what} has more than {limit} bytes")]
    Bytes { what: &'static str, limit: u64 },
    #[error("{what} has more than {limit} values")]
    Values { what: &'static str, limit: u64 },
    #[error(
        "remote clusters send more than {} bytes at once; the request will be retried",
        AT_ONCE
    )]
    AtOnce,
}

impl Answers {
    /// The client, with limits to what it is answered.
    pub(super) fn limit(&self, client: &Client) -> Client {
        let (namespace, client) = (client.default_namespace().to_owned(), client.clone());
        let answers = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, answers) = (client.clone(), answers.clone());
            async move {
                let limit = if is_watch(&request) { EVENT } else { ANSWER };
                let response: Result<Response<Body>, kube::Error> = client.send(request).await;
                response.map(|response| response.map(|body| Limited::new(body, limit, answers)))
            }
        });
        Client::new(service, namespace)
    }
}

/// Returns whether the answer has no end, and is read line by line.
fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query
        .split('&')
        .any(|pair| matches!(pair, "watch=true" | "watch=1"))
}

/// A body of which no more is taken.
struct Limited {
    body: Body,
    limit: Limit,
    answers: Answers,
    /// Bytes of the answer, or of the event.
    bytes: u64,
    values: ValueCounter,
}

impl Limited {
    fn new(body: Body, limit: Limit, answers: Answers) -> Self {
        Self {
            body,
            limit,
            answers,
            bytes: 0,
            values: ValueCounter::default(),
        }
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), TooMuch> {
        if self.limit.what != EVENT.what {
            return self.add(piece);
        }
        for line in piece.split_inclusive(|byte| *byte == b'\n') {
            self.add(line)?;
            if line.ends_with(b"\n") {
                self.forget();
            }
        }
        Ok(())
    }

    fn add(&mut self, piece: &[u8]) -> Result<(), TooMuch> {
        let Limit { what, bytes, values } = self.limit;
        let before = self.bytes.saturating_sub(FREE);
        self.bytes += piece.len() as u64;
        let more = self.bytes.saturating_sub(FREE) - before;
        let all = self.answers.0.fetch_add(more, Ordering::Relaxed) + more;
        if self.bytes > bytes {
            return Err(TooMuch::Bytes { what, limit: bytes });
        }
        if self.values.feed(piece) > values {
            return Err(TooMuch::Values { what, limit: values });
        }
        if more > 0 && all > AT_ONCE {
            return Err(TooMuch::AtOnce);
        }
        Ok(())
    }

    /// The event was read.
    fn forget(&mut self) {
        let held = self.bytes.saturating_sub(FREE);
        self.answers.0.fetch_sub(held, Ordering::Relaxed);
        self.bytes = 0;
        self.values = ValueCounter::default();
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.forget();
    }
}

impl http_body::Body for Limited {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = match http_body::Body::poll_frame(Pin::new(&mut self.body), context) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(Box::new(error)))),
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        let taken = frame.data_ref().map_or(Ok(()), |piece| self.take(piece));
        Poll::Ready(Some(taken.map(|()| frame).map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use http_body_util::StreamBody;
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::Api;
    use kube::api::{ListParams, WatchEvent, WatchParams};

    use super::*;

    /// A cluster that answers everything like this, in pieces as they come over a connection.
    fn cluster(answers: &Answers, text: Vec<u8>) -> Api<ConfigMap> {
        let text = Bytes::from(text);
        let remote = tower::service_fn(move |_: Request<Body>| {
            let text = text.clone();
            let pieces = (0..text.len()).step_by(16 << 10).map(move |start| {
                let end = text.len().min(start + (16 << 10));
                Ok::<_, kube::Error>(Frame::data(text.slice(start..end)))
            });
            let body = StreamBody::new(futures::stream::iter(pieces));
            async move { Ok::<_, kube::Error>(Response::new(body)) }
        });
        Api::namespaced(answers.limit(&Client::new(remote, "default")), "default")
    }

    fn list(items: &str) -> Vec<u8> {
        format!(r#"{{"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {{}}, "items": [{items}]}}"#)
            .into()
    }

    async fn refusal(api: &Api<ConfigMap>) -> String {
        let error = api.list(&ListParams::default()).await.unwrap_err();
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }

    #[tokio::test]
    async fn an_answer_has_a_bound_in_bytes_and_in_values() {
        let answers = Answers::default();
        let api = cluster(&answers, list(r#"{"metadata": {"name": "a"}}"#));
        assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 1);
        let long = format!(r#"{{"data": {{"a": "{}"}}}}"#, "a".repeat(33 << 20));
        let refused = refusal(&cluster(&answers, list(&long))).await;
        assert!(
            refused.contains("the cluster's answer has more than 33554432 bytes"),
            "{refused}"
        );
        let many = vec!["{}"; 1_100_000].join(",");
        let refused = refusal(&cluster(&answers, list(&many))).await;
        assert!(
            refused.contains("the cluster's answer has more than 2000000 values"),
            "{refused}"
        );
        assert_eq!(answers.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn all_that_comes_at_once_has_a_bound_of_its_own() {
        let answers = Answers::default();
        let text = format!(r#"{{"data": {{"a": "{}"}}}}"#, "a".repeat(2 << 20));
        let api = cluster(&answers, list(&text));
        answers.0.store(AT_ONCE - (1 << 20), Ordering::Relaxed);
        let refused = refusal(&api).await;
        assert!(refused.contains("remote clusters send more than"), "{refused}");
        answers.0.store(0, Ordering::Relaxed);
        assert!(api.list(&ListParams::default()).await.is_ok());
        assert_eq!(answers.0.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn each_event_of_a_watch_has_a_bound_and_the_watch_has_none() {
        let answers = Answers::default();
        let event = |size: usize| {
            let data = "a".repeat(size);
            let object = format!(r#"{{"metadata": {{"name": "a"}}, "data": {{"a": "{data}"}}}}"#);
            format!(r#"{{"type": "ADDED", "object": {object}}}"#) + "\n"
        };
        let text = [event(3 << 20).repeat(3), event(4 << 20)].concat();
        let api = cluster(&answers, text.into());
        let events = api.watch(&WatchParams::default(), "0").await.unwrap();
        let events: Vec<_> = events.collect().await;
        let added = |event: &&kube::Result<WatchEvent<ConfigMap>>| matches!(event, Ok(WatchEvent::Added(_)));
        assert_eq!(events.iter().filter(added).count(), 3);
        let refused = events.iter().find_map(|event| event.as_ref().err()).unwrap();
        assert!(
            format!("{refused:?}").contains("an event of the cluster"),
            "{refused:?}"
        );
    }
}
