//! The endpoint to which controllers post events, as Flux's: any path, one JSON document.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use event::Event;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::limit::{Verdict, Way};
use crate::dispatch::Dispatcher;
use crate::http_metrics::HttpMetrics;

/// A larger body is refused, as in Flux.
const MOST_BODY_BYTES: usize = 3 << 20;
/// Larger headers are refused, as in Flux.
const MOST_HEADER_BYTES: usize = 256 << 10;
/// A body that takes longer to come is given up, as in Flux.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bodies that are read at once: what they take together is bounded.
const MOST_BODIES: usize = 16;

#[derive(Clone)]
struct Endpoint {
    dispatcher: Arc<Dispatcher>,
    metrics: HttpMetrics,
    bodies: Arc<Semaphore>,
}

/// Serves until the token is cancelled.
pub async fn serve(
    listener: TcpListener,
    dispatcher: Arc<Dispatcher>,
    metrics: HttpMetrics,
    token: CancellationToken,
) -> std::io::Result<()> {
    let endpoint = Endpoint {
        dispatcher,
        metrics,
        bodies: Arc::new(Semaphore::new(MOST_BODIES)),
    };
    let routes = Router::new().fallback(handle).with_state(endpoint);
    axum::serve(listener, routes)
        .with_graceful_shutdown(async move { token.cancelled().await })
        .await
}

async fn handle(State(endpoint): State<Endpoint>, request: Request) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let _in_flight = endpoint.metrics.begin(&path);
    let status = answer(&endpoint, request).await;
    endpoint
        .metrics
        .observe(&path, &method, status, started.elapsed());
    status.into_response()
}

async fn answer(endpoint: &Endpoint, request: Request) -> StatusCode {
    if header_bytes(request.headers()) > MOST_HEADER_BYTES {
        return StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
    }
    let Ok(_slot) = endpoint.bodies.acquire().await else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    let event = match read(request.into_body()).await {
        Ok(event) => event,
        Err(status) => return status,
    };
    match endpoint.dispatcher.take(event, Way::Posted).await {
        Verdict::New | Verdict::Known => StatusCode::ACCEPTED,
        Verdict::Repeated => {
            tracing::debug!("discarding event, rate limiting duplicate events");
            StatusCode::TOO_MANY_REQUESTS
        }
    }
}

/// Reads one event; what is wrong is logged, and its sender gets a status only.
async fn read(body: Body) -> Result<Event, StatusCode> {
    let body = match timeout(BODY_TIMEOUT, to_bytes(body, MOST_BODY_BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => {
            let chain = format!("{:#}", anyhow::Error::new(error));
            tracing::error!(error = chain, "reading the request body failed");
            let status = if chain.contains("length limit exceeded") {
                StatusCode::PAYLOAD_TOO_LARGE
            } else {
                StatusCode::BAD_REQUEST
            };
            return Err(status);
        }
        Err(_) => return Err(StatusCode::REQUEST_TIMEOUT),
    };
    serde_json::from_slice(&body).map_err(|error| {
        tracing::error!(%error, "decoding the request body failed");
        StatusCode::BAD_REQUEST
    })
}

fn header_bytes(headers: &HeaderMap) -> usize {
    let pairs = headers.iter();
    pairs.map(|(name, value)| name.as_str().len() + value.len()).sum()
}
