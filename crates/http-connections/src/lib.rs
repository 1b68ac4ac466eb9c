//! HTTP connections of strangers: only so many at once, and each has a time for its headers, its silence and all of it.
//!
//! For services that anybody may reach. What a call costs beside its connection is bounded by whoever answers.

mod shares;

use std::convert::Infallible;
use std::error::Error;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use shares::{Share, Shares};

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
    /// How many of them may be from one address; further ones are closed. As many as all where proxies are in between.
    pub of_one_address: usize,
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
    _permit: Arc<(OwnedSemaphorePermit, Share)>,
}

/// What is spoken.
#[derive(Debug, Clone, Copy)]
enum Protocol {
    Http1,
    /// In plain text, as gRPC speaks it behind a proxy. So many calls of a connection at a time.
    Http2(u32),
}

/// Serves until the token is cancelled, and then until what is under way is answered. `answer` gets a call, who sent it, and the
/// place of its connection.
pub async fn serve<A, F, B>(listener: TcpListener, limits: Limits, token: CancellationToken, answer: A)
where
    A: Fn(Request<Incoming>, SocketAddr, Place) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    accept(listener, Protocol::Http1, limits, token, answer).await;
}

/// Serves HTTP/2 without TLS in the same way, so many calls of a connection at a time.
pub async fn serve_http2<A, F, B>(
    listener: TcpListener,
    calls: u32,
    limits: Limits,
    token: CancellationToken,
    answer: A,
) where
    A: Fn(Request<Incoming>, SocketAddr, Place) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    accept(listener, Protocol::Http2(calls), limits, token, answer).await;
}

async fn accept<A, F, B>(
    listener: TcpListener,
    protocol: Protocol,
    limits: Limits,
    token: CancellationToken,
    answer: A,
) where
    A: Fn(Request<Incoming>, SocketAddr, Place) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let connections = Arc::new(Semaphore::new(limits.connections));
    let shares = Shares::new(limits.of_one_address);
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
                let Some(share) = shares.take(peer.ip()) else {
                    tracing::debug!(%peer, "an address has too many connections");
                    continue;
                };
                let place = Place {
                    _permit: Arc::new((permit, share)),
                };
                let answer = answer.clone();
                let answer = move |request| answer(request, peer, place.clone());
                let token = token.clone();
                match protocol {
                    Protocol::Http1 => tasks.spawn(http1(stream, limits, token, answer)),
                    Protocol::Http2(calls) => tasks.spawn(http2(stream, calls, limits, token, answer)),
                };
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

async fn http1<A, F, B>(stream: TcpStream, limits: Limits, token: CancellationToken, answer: A)
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
    until_over(connection, http1::Connection::graceful_shutdown, limits, token).await;
}

async fn http2<A, F, B>(stream: TcpStream, calls: u32, limits: Limits, token: CancellationToken, answer: A)
where
    A: Fn(Request<Incoming>) -> F,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    let service = service_fn(|request| {
        let response = answer(request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    // Who is not there does not answer pings: that stands for the time that headers may take.
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(limits.header_timeout))
        .keep_alive_timeout(limits.header_timeout)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .max_concurrent_streams(calls)
        .serve_connection(TokioIo::new(stream), service);
    until_over(connection, http2::Connection::graceful_shutdown, limits, token).await;
}

/// Goes on with a connection until it ends, or its time does.
async fn until_over<C, E>(
    connection: C,
    end: impl FnOnce(Pin<&mut C>),
    limits: Limits,
    token: CancellationToken,
) where
    C: Future<Output = Result<(), E>>,
    E: Error,
{
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
            end(connection.as_mut());
            timeout(LAST_CALL, connection).await
        }
    };
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a connection failed"),
        Err(_) => tracing::debug!("a connection took too long"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::StreamExt as _;
    use http_body::Frame;
    use http_body_util::{BodyExt as _, Empty, StreamBody};
    use hyper_util::client::legacy::Client;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpSocket;
    use tokio::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn pieces_of_an_answer_come_one_by_one() {
        let limits = Limits {
            connections: 2,
            of_one_address: 2,
            header_bytes: 16 << 10,
            header_timeout: Duration::from_secs(5),
            lifetime: Duration::from_secs(60),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let token = CancellationToken::new();
        let (pieces, received) = mpsc::channel::<Bytes>(1);
        let received = std::sync::Mutex::new(Some(received));
        let received = Arc::new(received);
        let answer = move |_request, _peer, _place| {
            let mut received = received.lock().unwrap().take().unwrap();
            let pieces = futures::stream::poll_fn(move |context| received.poll_recv(context));
            let body = StreamBody::new(pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece))));
            std::future::ready(Response::new(body))
        };
        let serving = tokio::spawn(serve_http2(listener, 4, limits, token.clone(), answer));
        let http = Client::builder(TokioExecutor::new())
            .http2_only(true)
            .build_http();
        let request = Request::get(url).body(Empty::<Bytes>::new()).unwrap();
        let mut answer = http.request(request).await.unwrap();
        assert_eq!(answer.version(), http::Version::HTTP_2);
        for word in ["one", "two"] {
            pieces.send(Bytes::from_static(word.as_bytes())).await.unwrap();
            let frame = answer.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), word);
        }
        drop(pieces);
        assert!(answer.collect().await.unwrap().to_bytes().is_empty());
        token.cancel();
        serving.await.unwrap();
    }

    #[tokio::test]
    async fn one_address_leaves_room_for_others() {
        let limits = Limits {
            connections: 8,
            of_one_address: 2,
            header_bytes: 16 << 10,
            header_timeout: Duration::from_secs(60),
            lifetime: Duration::from_secs(60),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let token = CancellationToken::new();
        let answer = |_request, _peer, _place| std::future::ready(Response::new(Empty::<Bytes>::new()));
        let serving = tokio::spawn(serve(listener, limits, token.clone(), answer));
        let connect = async |from: [u8; 4]| {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind((from, 0).into()).unwrap();
            socket.connect(address).await.unwrap()
        };
        // Who says nothing has a place as well. A third connection is closed at once.
        let silent = (connect([127, 0, 0, 1]).await, connect([127, 0, 0, 1]).await);
        let mut third = connect([127, 0, 0, 1]).await;
        assert_eq!(third.read(&mut [0]).await.unwrap_or_default(), 0);
        let mut other = connect([127, 0, 0, 2]).await;
        other
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .await
            .unwrap();
        let mut answer = [0; 12];
        other.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200");
        drop((silent, other));
        // Their end makes room again.
        let again = async {
            loop {
                let mut next = connect([127, 0, 0, 1]).await;
                let asked = next.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
                if asked.is_ok() && next.read_exact(&mut answer).await.is_ok() {
                    return;
                }
            }
        };
        timeout(Duration::from_secs(10), again).await.unwrap();
        token.cancel();
        serving.await.unwrap();
    }
}
