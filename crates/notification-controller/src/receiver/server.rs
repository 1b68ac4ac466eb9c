//! The HTTP server: connections, limits and bodies. Answers are numbers without a body.
//!
//! Strangers reach it. A connection has a time for its headers, its body and its silence; there are only so many of them,
//! and an address may only ask so often. A body is kept only if its path is somebody's, and all bodies together take no
//! more than [`MOST_BYTES`].

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::index::Entry;
use super::{Context, PREFIX, answer};

/// A larger body is refused, as in Flux.
const MAX_BODY_BYTES: usize = 3 << 20;
/// Larger headers are refused, as in Flux.
const MAX_HEADER_BYTES: usize = 256 << 10;
/// More headers are refused.
const MAX_HEADERS: usize = 1000;
/// How long headers may take, as in Flux; also how long a connection may be silent between two calls.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a body may take: with the headers it is 30 seconds, as in Flux.
const BODY_TIMEOUT: Duration = Duration::from_secs(20);
/// How long the answer may take. Services give up after some ten seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long calls that are under way may take to end at shutdown, as in Flux.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// What all bodies together may take.
const MOST_BYTES: usize = 48 << 20;

struct Server {
    context: Arc<Context>,
    bytes: Arc<Semaphore>,
}

/// Serves until the token is cancelled.
pub async fn serve(context: Arc<Context>, listener: TcpListener, most: usize, token: CancellationToken) {
    let server = Arc::new(Server {
        context,
        bytes: Arc::new(Semaphore::new(MOST_BYTES)),
    });
    let connections = Arc::new(Semaphore::new(most));
    let tasks = TaskTracker::new();
    loop {
        let accepted = async {
            let slot = Arc::clone(&connections).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = token.cancelled() => break,
        };
        match (slot, accepted) {
            (Ok(slot), Ok((stream, peer))) => {
                let connection = Arc::clone(&server).connection(stream, peer, slot, token.clone());
                tasks.spawn(connection);
            }
            (_, Err(error)) => {
                tracing::warn!(%error, "failed to accept a connection");
                // Out of file descriptors, most likely: some have to be closed first.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            (Err(_), _) => break,
        }
    }
    tasks.close();
    if timeout(DRAIN_TIMEOUT, tasks.wait()).await.is_err() {
        tracing::error!("webhooks were still under way at shutdown");
    }
}

impl Server {
    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        peer: SocketAddr,
        slot: OwnedSemaphorePermit,
        token: CancellationToken,
    ) {
        let service = service_fn(move |request| {
            let server = Arc::clone(&self);
            async move { Ok::<_, Infallible>(server.respond(request, peer).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_buf_size(MAX_HEADER_BYTES)
            .max_headers(MAX_HEADERS)
            .serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = token.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection failed");
        }
        drop(slot);
    }

    async fn respond(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Empty<Bytes>> {
        let started = Instant::now();
        let path = path(&request);
        let method = request.method().clone();
        let found = self.context.index.find(&path);
        // Anybody can make up paths of nobody: they are not named.
        let shown = if found.is_some() { path.as_str() } else { PREFIX };
        let metrics = &self.context.metrics;
        let _in_flight = metrics.begin(shown);
        let status = match timeout(ANSWER_TIMEOUT, self.status(request, peer, found)).await {
            Ok(status) => status,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        metrics.observe(shown, &method, status, started.elapsed());
        let mut response = Response::new(Empty::new());
        *response.status_mut() = status;
        response
    }

    async fn status(&self, request: Request<Incoming>, peer: SocketAddr, found: Option<Entry>) -> StatusCode {
        let uid = match &found {
            Some(Entry::Open(receiver)) => receiver.uid.as_str(),
            Some(Entry::Closed) | None => "",
        };
        if !self.context.limiter.admits(peer.ip(), uid, Instant::now()) {
            return StatusCode::TOO_MANY_REQUESTS;
        }
        if !request.uri().path().starts_with(PREFIX) {
            return StatusCode::NOT_FOUND;
        }
        let (parts, body) = request.into_parts();
        let body = match timeout(BODY_TIMEOUT, self.read(body, found.is_some())).await {
            Ok(Ok(body)) => body,
            Ok(Err(status)) => return status,
            Err(_) => return StatusCode::REQUEST_TIMEOUT,
        };
        match found {
            Some(Entry::Open(receiver)) => {
                let span = tracing::error_span!(
                    "webhook",
                    logger = "receiver-server",
                    name = receiver.name,
                    namespace = receiver.namespace
                );
                answer::answer(&self.context, &receiver, &parts.headers, &body.bytes)
                    .instrument(span)
                    .await
            }
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

    /// Reads a body to its end or to the limit, and keeps it if it is to be looked at.
    async fn read(&self, mut body: Incoming, is_kept: bool) -> Result<Kept, StatusCode> {
        let (mut kept, mut length) = (BytesMut::new(), 0_usize);
        let mut permits: Option<OwnedSemaphorePermit> = None;
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
            if is_kept {
                let more = u32::try_from(data.len()).unwrap_or(u32::MAX);
                let more = Arc::clone(&self.bytes)
                    .try_acquire_many_owned(more)
                    .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
                match permits.as_mut() {
                    Some(permits) => permits.merge(more),
                    None => permits = Some(more),
                }
                kept.extend_from_slice(&data);
            }
        }
        Ok(Kept {
            bytes: kept.freeze(),
            _permits: permits,
        })
    }
}

/// A body, and the room that it takes.
struct Kept {
    bytes: Bytes,
    _permits: Option<OwnedSemaphorePermit>,
}

/// The path as it was asked for, query included: that is what Flux compares.
fn path(request: &Request<Incoming>) -> String {
    let uri = request.uri();
    uri.path_and_query()
        .map_or_else(|| uri.path().to_owned(), ToString::to_string)
}
