//! The endpoints for those who run a controller: /metrics, /healthz and /readyz.
//!
//! In: the metrics registry and what is ready. Out: two small HTTP servers. They answer from memory and ask
//! no one, so that a probe tells about this process and not about the API server.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::flags::EndpointFlags;
use crate::metrics::{self, Metrics};

/// Error of opening the endpoints.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}")]
pub struct Error {
    pub(crate) address: SocketAddr,
    #[source]
    pub(crate) source: std::io::Error,
}

/// Parts that must be ready before this process is. Clones share state.
///
/// Without any checks it is ready, as Flux's controllers are: readiness does not depend on leadership, else a
/// rolling update would wait for a leader that waits for the update.
#[derive(Clone, Debug, Default)]
pub struct Ready {
    checks: Arc<Mutex<BTreeMap<String, bool>>>,
}

impl Ready {
    /// Returns whether one thing is ready.
    pub fn set(&self, name: &str, ready: bool) {
        self.checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.to_owned(), ready);
    }

    /// Returns whether everything is ready.
    pub fn is_ready(&self) -> bool {
        self.checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .all(|ready| *ready)
    }

    /// One line per check, as the API server answers to `?verbose`.
    fn report(&self) -> String {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = checks.iter().map(|(name, ready)| {
            if *ready {
                format!("[+]{name} ok\n")
            } else {
                format!("[-]{name} failed: not ready yet\n")
            }
        });
        lines.collect()
    }
}

/// The controllers of a process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Parts(Arc<Mutex<Vec<(Metrics, Ready)>>>);

impl Parts {
    /// Adds a controller.
    pub fn add(&self, metrics: Metrics, ready: Ready) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((metrics, ready));
    }

    fn all(&self) -> Vec<(Metrics, Ready)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Opens the endpoints, and serves them in the background until `token` is cancelled.
pub async fn serve(flags: &EndpointFlags, parts: Parts, token: &CancellationToken) -> Result<(), Error> {
    if let Some(address) = flags.metrics_addr.socket() {
        serve_in_background(bind(address).await?, metrics_routes(parts.clone()), token);
    }
    if let Some(address) = flags.health_addr.socket() {
        serve_in_background(bind(address).await?, health_routes(parts), token);
    }
    Ok(())
}

/// Listens on an address; where there is no IPv6, "all interfaces" are those of IPv4.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, Error> {
    let first = TcpListener::bind(address).await;
    let no_ipv6 = |error: &std::io::Error| {
        matches!(
            error.raw_os_error(),
            Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)
        )
    };
    let result = match first {
        Err(error) if address.is_ipv6() && address.ip().is_unspecified() && no_ipv6(&error) => {
            TcpListener::bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port())).await
        }
        result => result,
    };
    result.map_err(|source| Error { address, source })
}

fn serve_in_background(listener: TcpListener, routes: Router, token: &CancellationToken) {
    let stopped = token.clone().cancelled_owned();
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes)
            .with_graceful_shutdown(stopped)
            .await
        {
            tracing::error!(%error, "an endpoint is no longer served");
        }
    });
}

fn metrics_routes(parts: Parts) -> Router {
    Router::new()
        .route("/metrics", get(answer_metrics))
        .with_state(parts)
}

fn health_routes(parts: Parts) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(answer_ready))
        .with_state(parts)
}

async fn answer_metrics(State(parts): State<Parts>) -> axum::response::Response {
    let texts: Result<Vec<_>, _> = parts.all().iter().map(|(metrics, _)| metrics.encode()).collect();
    match texts.map(metrics::joined) {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn answer_ready(State(parts): State<Parts>) -> (StatusCode, String) {
    let all = parts.all();
    if all.iter().all(|(_, ready)| ready.is_ready()) {
        (StatusCode::OK, "ok".to_owned())
    } else {
        let reports = all.iter().map(|(_, ready)| ready.report());
        (StatusCode::INTERNAL_SERVER_ERROR, reports.collect())
    }
}

#[cfg(test)]
mod tests;
