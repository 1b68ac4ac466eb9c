//! The HTTP server: connections, limits and bodies. Answers are numbers without a body.
//!
//! Strangers reach it. A connection is for one call, has a time for its headers, its body, its answer and for all of them;
//! there are only so many of them, of one address only half as many, and an address may only ask so often. A body is kept
//! only if its Receiver takes calls and looks at bodies, and all bodies together take no more than [`MOST_BYTES`].

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::compile::Compiled;
use super::connections::{Connections, Slot};
use super::context::Context;
use super::index::Entry;
use super::room::{Kept, Room, Share};
use super::{PREFIX, answer};

/// A larger body is refused, as in Flux.
const MAX_BODY_BYTES: usize = 3 << 20;
/// Larger headers are refused, as in Flux.
const MAX_HEADER_BYTES: usize = 256 << 10;
/// More headers are refused.
const MAX_HEADERS: usize = 1000;
/// How long headers may take, as in Flux.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a body may take: with the headers it is 30 seconds, as in Flux.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the answer may take. Services give up after some ten seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a connection may last: what has a time of its own, and a moment in which the answer is read. Whoever does not
/// read it would keep it for ever.
const CONNECTION_TIMEOUT: Duration = HEADER_TIMEOUT
    .saturating_add(BODY_TIMEOUT)
    .saturating_add(ANSWER_TIMEOUT)
    .saturating_add(Duration::from_secs(5));
/// How long calls that are under way may take to end at shutdown, as in Flux.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// Memory limit for all bodies.
const MOST_BYTES: usize = 48 << 20;
/// Memory limit for the bodies of one Receiver: two of the largest, and some.
const MOST_BYTES_OF_ONE: usize = 8 << 20;

struct Server {
    context: Arc<Context>,
    room: Arc<Room>,
    /// Connections, and calls that are acted on.
    tasks: TaskTracker,
}

/// Serves until the token is cancelled.
pub async fn serve(
    context: Arc<Context>,
    listener: TcpListener,
    connections: Connections,
    token: CancellationToken,
) {
    let server = Arc::new(Server::new(context));
    loop {
        let accepted = async {
            let free = connections.free().await;
            (free, listener.accept().await)
        };
        let (free, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = token.cancelled() => break,
        };
        match (free, accepted) {
            (Ok(free), Ok((stream, peer))) => match connections.take(free, peer.ip()) {
                Some(slot) => {
                    let connection = Arc::clone(&server).connection(stream, peer.ip(), slot, token.clone());
                    server.tasks.spawn(connection);
                }
                None => tracing::debug!(%peer, "an address has too many connections"),
            },
            (_, Err(error)) => {
                tracing::warn!(%error, "failed to accept a connection");
                // Out of file descriptors, most likely: some have to be closed first.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            (Err(_), _) => break,
        }
    }
    server.tasks.close();
    if timeout(DRAIN_TIMEOUT, server.tasks.wait()).await.is_err() {
        tracing::error!("webhooks were still under way at shutdown");
    }
}

impl Server {
    fn new(context: Arc<Context>) -> Self {
        Self {
            context,
            room: Arc::new(Room::new(MOST_BYTES, MOST_BYTES_OF_ONE)),
            tasks: TaskTracker::new(),
        }
    }

    async fn connection(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: IpAddr,
        slot: Slot,
        token: CancellationToken,
    ) {
        let slot = Arc::new(slot);
        let service = service_fn(move |request| {
            let (server, slot) = (Arc::clone(&self), Arc::clone(&slot));
            async move { Ok::<_, Infallible>(server.respond(request, peer, slot).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .keep_alive(false)
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(MAX_HEADER_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let connection = async {
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = token.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        };
        match timeout(CONNECTION_TIMEOUT, connection).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "a connection failed"),
            Err(_) => tracing::debug!(%peer, "a connection took too long"),
        }
    }

    async fn respond(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        slot: Arc<Slot>,
    ) -> Response<Empty<Bytes>> {
        let started = Instant::now();
        let path = path(&request);
        let method = request.method().clone();
        let found = self.context.index.find(&path);
        // Anybody can make up paths of no one: they are not named.
        let shown = if found.is_some() { path.as_str() } else { PREFIX };
        let metrics = &self.context.metrics;
        let _in_flight = metrics.begin(shown);
        let status = self.status(request, peer, found, slot).await;
        metrics.observe(shown, &method, status, started.elapsed());
        let mut response = Response::new(Empty::new());
        *response.status_mut() = status;
        response
    }

    async fn status(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
        found: Option<Entry>,
        slot: Arc<Slot>,
    ) -> StatusCode {
        let receiver = match &found {
            Some(Entry::Open(receiver)) => Some(&**receiver),
            Some(Entry::Closed) | None => None,
        };
        let uid = receiver.map_or("", |receiver| receiver.uid.as_str());
        if !self.context.limiter.admits(peer, uid, Instant::now()) {
            return StatusCode::TOO_MANY_REQUESTS;
        }
        if !request.uri().path().starts_with(PREFIX) {
            return StatusCode::NOT_FOUND;
        }
        let (parts, body) = request.into_parts();
        let is_kept = receiver.is_some_and(Compiled::needs_body);
        let share = is_kept.then(|| self.room.share(uid));
        let body = match timeout(BODY_TIMEOUT, read(body, share)).await {
            Ok(Ok(body)) => body,
            Ok(Err(status)) => return status,
            Err(_) => return StatusCode::REQUEST_TIMEOUT,
        };
        match found {
            Some(Entry::Open(receiver)) => self.act(receiver, parts.headers, body, slot).await,
            Some(Entry::Closed) => {
                tracing::error!(
                    logger = "receiver-server",
                    "a Receiver that is suspended or not ready was called"
                );
                StatusCode::SERVICE_UNAVAILABLE
            }
            None if self.context.knows_all_paths() => StatusCode::NOT_FOUND,
            None => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Acts on a call in a task of its own: a caller who hangs up leaves nothing half done. Until it ends it takes the slot
    /// of its connection, so that there are no more of them than of those.
    async fn act(
        &self,
        receiver: Arc<Compiled>,
        headers: HeaderMap,
        body: Kept,
        slot: Arc<Slot>,
    ) -> StatusCode {
        let span = tracing::error_span!(
            "webhook",
            logger = "receiver-server",
            name = receiver.name,
            namespace = receiver.namespace
        );
        let context = Arc::clone(&self.context);
        let acting = async move {
            let answer = answer::answer(&context, &receiver, &headers, body);
            let answered = timeout(ANSWER_TIMEOUT, answer).await;
            drop(slot);
            answered.unwrap_or_else(|_| {
                tracing::error!("it took more than {ANSWER_TIMEOUT:?}");
                StatusCode::INTERNAL_SERVER_ERROR
            })
        };
        let answered = self.tasks.spawn(acting.instrument(span)).await;
        answered.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

/// Reads a body to its end or to the limit, and keeps it if it has a share of the room.
async fn read(mut body: Incoming, mut share: Option<Share>) -> Result<Kept, StatusCode> {
    let most = usize::try_from(body.size_hint().upper().unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let (mut kept, mut length) = (Vec::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            tracing::debug!(%error, "reading the request body failed");
            StatusCode::BAD_REQUEST
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length += data.len();
        if length > MAX_BODY_BYTES {
            return Err(StatusCode::PAYLOAD_TOO_LARGE);
        }
        let Some(share) = &mut share else { continue };
        let capacity = grown(kept.capacity(), length, most.min(MAX_BODY_BYTES));
        if !share.grow(capacity - kept.capacity()) {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        kept.reserve_exact(capacity - kept.len());
        kept.extend_from_slice(&data);
    }
    Ok(Kept::new(kept, share))
}

/// How much is to be taken for so many bytes: twice what it was, so that few are copied often, but no more than can come.
fn grown(capacity: usize, length: usize, most: usize) -> usize {
    if length <= capacity {
        capacity
    } else {
        capacity.saturating_mul(2).min(most).max(length)
    }
}

/// The path as it was asked for, query included: that is what Flux compares.
fn path(request: &Request<Incoming>) -> String {
    let uri = request.uri();
    uri.path_and_query()
        .map_or_else(|| uri.path().to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests;
