//! HTTP connections of strangers: only so many at once, and each has a time for its headers, its silence and all of it.
//!
//! For services that anybody may reach. What a call costs beside its connection is bounded by whoever answers.

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// More headers are refused.
const MOST_HEADERS: usize = 1000;
/// How long calls that are under way may take to end at shutdown, as in Flux.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// How long its last call may take after that: its headers, its body and its answer.
const LAST_CALL: Duration = Duration::from_secs(60);
/// The pause after a connection that could not be taken: there are too many open files, most likely, and some have to be closed first.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits for connections.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once; further ones wait.
    pub connections: usize,
    /// Larger headers are refused.
    pub header_bytes: usize,
    /// How long headers may take to come; also how long a connection may be silent between two calls.
    pub header_timeout: Duration,
    /// How long a connection is used: who does not read its answers would keep it for ever.
    pub lifetime: Duration,
}

/// The place of a connection. What is begun for it holds a clone: then there is no more of that than there are connections,
/// although a sender that leaves makes room for another.
#[derive(Debug, Clone)]
pub struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

/// Serves until the token is cancelled, and then until what is under way is answered. `answer` gets a call, who sent it, and the
/// place of its connection.
pub async fn serve<A, F, B>(listener: TcpListener, limits: Limits, token: CancellationToken, answer: A)
where
    A: Fn(Request<Incoming>, SocketAddr, Place) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let connections = Arc::new(Semaphore::new(limits.connections));
    let tasks = TaskTracker::new();
    loop {
        let accepted = async {
            let permit = Arc::clone(&connections).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = token.cancelled() => break,
        };
        match (permit, accepted) {
            (Ok(permit), Ok((stream, peer))) => {
                let place = Place {
                    _permit: Arc::new(permit),
                };
                let answer = answer.clone();
                let answer = move |request| answer(request, peer, place.clone());
                tasks.spawn(connection(stream, limits, token.clone(), answer));
            }
            // No one closes the semaphore.
            (Err(_), _) => break,
            (_, Err(error)) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    tasks.close();
    if timeout(DRAIN_TIMEOUT, tasks.wait()).await.is_err() {
        tracing::error!("calls were still under way at shutdown");
    }
}

async fn connection<A, F, B>(stream: TcpStream, limits: Limits, token: CancellationToken, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>>,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let service = service_fn(|request| {
        let response = answer(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.header_bytes)
        .max_headers(MOST_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    let is_over = async {
        tokio::select! {
            () = token.cancelled() => {}
            () = sleep(limits.lifetime) => {}
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => Ok(ended),
        () = is_over => {
            connection.as_mut().graceful_shutdown();
            timeout(LAST_CALL, connection).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection failed"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}
