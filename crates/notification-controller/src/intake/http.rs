//! The endpoint to which controllers post events, as Flux's: any path, one JSON document.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use event::Event;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use http_connections::{self as connections, Place};
use hyper::body::Incoming;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::limit::Verdict;
use crate::http_metrics::HttpMetrics;

/// Limits for senders.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Limits for their connections.
    pub connections: connections::Limits,
    /// A larger body is refused.
    pub body_bytes: usize,
    /// Bytes of all bodies that are being read; a sender beyond that has to try again.
    pub bodies_bytes: usize,
    /// A body that takes longer to come is given up.
    pub body_timeout: Duration,
}

/// Flux's limits, and room for ten of the largest bodies at once.
pub const LIMITS: Limits = Limits {
    connections: connections::Limits {
        connections: 256,
        of_one_address: 256,
        header_bytes: 256 << 10,
        header_timeout: Duration::from_secs(10),
        lifetime: Duration::from_secs(300),
    },
    body_bytes: 3 << 20,
    bodies_bytes: 32 << 20,
    // With the headers it is 30 seconds.
    body_timeout: Duration::from_secs(20),
};

struct Endpoint<T> {
    take: T,
    limits: Limits,
    metrics: HttpMetrics,
    bytes: Arc<Semaphore>,
    takes: TaskTracker,
}

/// Serves until the token is cancelled, and then until everything that was posted is taken. `take` takes an event; who posted it
/// may leave before it is through.
pub async fn serve<T, F>(
    listener: TcpListener,
    limits: Limits,
    metrics: HttpMetrics,
    token: CancellationToken,
    take: T,
) where
    T: Fn(Event) -> F + Send + Sync + 'static,
    F: Future<Output = Verdict> + Send + 'static,
{
    let endpoint = Arc::new(Endpoint {
        take,
        limits,
        metrics,
        bytes: Arc::new(Semaphore::new(limits.bodies_bytes)),
        takes: TaskTracker::new(),
    });
    let answering = Arc::clone(&endpoint);
    connections::serve(
        listener,
        limits.connections,
        token,
        move |request, _peer, place| {
            let endpoint = Arc::clone(&answering);
            async move {
                // Answers are numbers without a body.
                let mut response = Response::new(Empty::<Bytes>::new());
                *response.status_mut() = endpoint.respond(request, place).await;
                response
            }
        },
    )
    .await;
    endpoint.takes.close();
    endpoint.takes.wait().await;
}

impl<T, F> Endpoint<T>
where
    T: Fn(Event) -> F + Send + Sync + 'static,
    F: Future<Output = Verdict> + Send + 'static,
{
    async fn respond(self: Arc<Self>, request: Request<Incoming>, place: Place) -> StatusCode {
        let started = Instant::now();
        let method = request.method().clone();
        let path = request.uri().path().to_owned();
        let _in_flight = self.metrics.begin(&path);
        let status = Arc::clone(&self).answer(request, place).await;
        self.metrics.observe(&path, &method, status, started.elapsed());
        status
    }

    async fn answer(self: Arc<Self>, request: Request<Incoming>, place: Place) -> StatusCode {
        let body = match timeout(self.limits.body_timeout, self.read(request.into_body())).await {
            Ok(Ok(body)) => body,
            Ok(Err(status)) => return status,
            Err(_) => {
                tracing::error!("reading the request body failed: it takes too long");
                return StatusCode::BAD_REQUEST;
            }
        };
        let endpoint = Arc::clone(&self);
        // A task of its own: who posted it may give up waiting, and it is to be told nevertheless.
        let taken = self.takes.spawn(async move {
            let event = decode(&body.bytes)?;
            drop(body);
            let verdict = (endpoint.take)(event).await;
            drop(place);
            Ok(verdict)
        });
        match taken.await {
            Ok(Ok(Verdict::New | Verdict::Known)) => StatusCode::ACCEPTED,
            Ok(Ok(Verdict::Repeated)) => {
                tracing::debug!("discarding event, rate limiting duplicate events");
                StatusCode::TOO_MANY_REQUESTS
            }
            Ok(Err(status)) => status,
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Reads a body; what is wrong is logged, and its sender gets a status only.
    async fn read(&self, mut body: Incoming) -> Result<Body, StatusCode> {
        let mut read = BytesMut::new();
        let mut room: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                tracing::error!(%error, "reading the request body failed");
                StatusCode::BAD_REQUEST
            })?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if read.len() + data.len() > self.limits.body_bytes {
                tracing::error!("reading the request body failed: it is too large");
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            let more = u32::try_from(data.len()).unwrap_or(u32::MAX);
            let more = Arc::clone(&self.bytes)
                .try_acquire_many_owned(more)
                .map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
            match &mut room {
                Some(room) => room.merge(more),
                None => room = Some(more),
            }
            read.extend_from_slice(&data);
        }
        Ok(Body {
            bytes: read.freeze(),
            _room: room,
        })
    }
}

/// A body, and the room that it takes.
struct Body {
    bytes: Bytes,
    _room: Option<OwnedSemaphorePermit>,
}

fn decode(body: &[u8]) -> Result<Event, StatusCode> {
    serde_json::from_slice(body).map_err(|error| {
        tracing::error!(%error, "decoding the request body failed");
        StatusCode::BAD_REQUEST
    })
}

#[cfg(test)]
mod tests;
