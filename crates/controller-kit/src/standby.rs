//! Answers of a standby replica at the addresses of the leader: what the leader answers.
//!
//! A Service sends requests to every replica that is ready, and readiness does not wait for leadership. The leader says on its Lease
//! where it is, and requests are passed on to it. If it does not say so or is not there, who posts gets 503 and a time to come again,
//! rather than a refused connection.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{self, CONNECTION, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use http_connections::{Limits, Share, Shares};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::admin;
use crate::leader::Leader;

/// Seconds after which a request may find another leader.
const PAUSE: &str = "5";
/// Environment variable with the address of this Pod.
const POD_IP: &str = "POD_IP";
/// Who connects and asks nothing is shown out soon, and one address keeps none of the others from asking.
const CONNECTIONS: Limits = Limits {
    connections: 512,
    of_one_address: 128,
    header_bytes: 256 << 10,
    header_timeout: Duration::from_secs(10),
    lifetime: Duration::from_secs(300),
};
/// Requests that are passed on at a time. The leader itself accepts more.
const MOST: usize = 128;
/// How many of them may come from one address.
const MOST_OF_ONE: usize = MOST / 4;
/// Time that a request may take. Services that send webhooks wait for 10 s.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Time for what is under way when this process becomes the leader.
const GRACE: Duration = Duration::from_secs(2);
/// Says that a request was passed on, so that it is not again where two processes take each other for the leader.
const FORWARDED: HeaderName = HeaderName::from_static("windlass-forwarded");
/// Headers that are about one connection.
const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Returns where other Pods reach this process at the addresses that it serves; none if it is not known.
pub(crate) fn reached_at(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let ip = std::env::var(POD_IP).ok();
    let ip: Option<IpAddr> = ip.and_then(|ip| ip.parse().ok());
    let at = |ip| {
        addresses
            .iter()
            .map(move |address| SocketAddr::new(ip, address.port()))
    };
    ip.into_iter().flat_map(at).collect()
}

/// The ports of a process that was a standby, so that none is closed when it becomes the leader: who connects meanwhile waits.
#[derive(Clone, Debug, Default)]
pub struct Listeners(Arc<Mutex<HashMap<SocketAddr, std::net::TcpListener>>>);

impl Listeners {
    /// Listens on an address, or goes on to do so. To be called once for each.
    ///
    /// # Errors
    /// When the address is taken, or is none of this host.
    pub async fn listen(&self, address: SocketAddr) -> Result<TcpListener, admin::Error> {
        let kept = lock(&self.0).remove(&address);
        match kept.map(TcpListener::from_std) {
            Some(listener) => listener.map_err(|source| admin::Error { address, source }),
            None => admin::bind(address).await,
        }
    }

    /// Listens on an address that will be asked for again.
    async fn keep(&self, address: SocketAddr) -> Result<TcpListener, admin::Error> {
        let failed = |source| admin::Error { address, source };
        let listener = admin::bind(address).await?.into_std().map_err(failed)?;
        lock(&self.0).insert(address, listener.try_clone().map_err(failed)?);
        TcpListener::from_std(listener).map_err(failed)
    }
}

/// A panic leaves what is in it as it was before or after a change.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers at the addresses until the token is cancelled, as the leader does that is at the other ones. The listeners keep the ports.
pub(crate) async fn serve(
    addresses: &[SocketAddr],
    listeners: &Listeners,
    leader: &watch::Receiver<Leader>,
    token: &CancellationToken,
) -> Result<JoinSet<()>, admin::Error> {
    let mut serving = JoinSet::new();
    let slots = Slots::default();
    for (index, address) in addresses.iter().enumerate() {
        let listener = listeners.keep(*address).await?;
        let forward = Forward {
            leader: leader.clone(),
            index,
            client: Client::builder(TokioExecutor::new()).build_http(),
            slots: slots.clone(),
        };
        let answer = move |request: axum::http::Request<_>, peer: SocketAddr, _place| {
            let forward = forward.clone();
            async move { forward.answer(peer.ip(), request.map(Body::new)).await }
        };
        let answering = http_connections::serve(listener, CONNECTIONS, token.clone(), answer);
        let over = token.clone();
        serving.spawn(async move {
            let under_way = async move {
                over.cancelled().await;
                tokio::time::sleep(GRACE).await;
            };
            tokio::select! {
                () = answering => {}
                () = under_way => {}
            }
        });
    }
    Ok(serving)
}

#[derive(Clone)]
struct Forward {
    leader: watch::Receiver<Leader>,
    /// Which of the leader's addresses it is.
    index: usize,
    client: Client<HttpConnector, Body>,
    slots: Slots,
}

/// Places for what is passed on.
#[derive(Clone)]
struct Slots {
    all: Arc<Semaphore>,
    shares: Shares,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MOST)),
            shares: Shares::new(MOST_OF_ONE),
        }
    }
}

impl Slots {
    /// None if there is none left, or none for this address.
    fn take(&self, of: IpAddr) -> Option<(Share, OwnedSemaphorePermit)> {
        let share = self.shares.take(of)?;
        let permit = Arc::clone(&self.all).try_acquire_owned().ok()?;
        Some((share, permit))
    }
}

impl Forward {
    async fn answer(self, peer: IpAddr, request: Request) -> Response {
        let leader = self.leader.borrow().addresses().get(self.index).copied();
        let Some(leader) = leader.filter(|_| !request.headers().contains_key(FORWARDED)) else {
            return come_again();
        };
        let Some(_slot) = self.slots.take(peer) else {
            return come_again();
        };
        let Some(request) = addressed(request, leader) else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        match tokio::time::timeout(TIMEOUT, self.client.request(request)).await {
            Ok(Ok(mut answer)) => {
                without_hops(answer.headers_mut());
                answer.map(Body::new)
            }
            Ok(Err(error)) => {
                tracing::debug!(%leader, error = error_chain::chain(&error), "failed to pass a request on to the leader");
                come_again()
            }
            Err(_) => {
                tracing::debug!(%leader, "the leader did not answer in time");
                come_again()
            }
        }
    }
}

/// The request as it goes to the leader. None if its address cannot be read.
fn addressed(mut request: Request, leader: SocketAddr) -> Option<Request> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let uri = Uri::builder()
        .scheme("http")
        .authority(leader.to_string())
        .path_and_query(path)
        .build()
        .ok()?;
    *request.uri_mut() = uri;
    *request.version_mut() = axum::http::Version::HTTP_11;
    without_hops(request.headers_mut());
    request
        .headers_mut()
        .insert(FORWARDED, HeaderValue::from_static("1"));
    Some(request)
}

fn without_hops(headers: &mut HeaderMap) {
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// A Service balances connections: who keeps theirs would come again to us.
fn come_again() -> Response {
    let headers = [(RETRY_AFTER, PAUSE), (CONNECTION, "close")];
    (StatusCode::SERVICE_UNAVAILABLE, headers).into_response()
}

#[cfg(test)]
mod tests {
    use axum::Router;

    use super::*;

    fn free() -> SocketAddr {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        free.local_addr().expect("it has an address")
    }

    /// What a standby answers whose leader is at these addresses.
    async fn standby(leader: Vec<SocketAddr>, token: &CancellationToken) -> (SocketAddr, JoinSet<()>) {
        let (_leader, seen) = watch::channel(Leader::At(leader));
        let address = free();
        (
            address,
            serve(&[address], &Listeners::default(), &seen, token)
                .await
                .expect("it listens"),
        )
    }

    async fn post(address: SocketAddr, path: &str, body: &str) -> (u16, HeaderMap, String) {
        // One provider per process; another test may have installed it.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let posted = client
            .post(format!("http://{address}{path}"))
            .header("x-token", "t")
            .body(body.to_owned());
        let answer = posted.send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        (status, headers, answer.text().await.expect("a text"))
    }

    #[tokio::test]
    async fn what_the_leader_answers_is_answered() {
        let token = CancellationToken::new();
        let listener = admin::bind(free()).await.expect("a port");
        let leader = listener.local_addr().expect("an address");
        let echo = Router::new().fallback(async |request: Request| {
            let token = request.headers()["x-token"].to_str().expect("a text").to_owned();
            let uri = request.uri().to_string();
            let body = axum::body::to_bytes(request.into_body(), 1 << 20)
                .await
                .expect("a body");
            let body = String::from_utf8_lossy(&body).len();
            (
                StatusCode::IM_A_TEAPOT,
                [("x-said", "leader")],
                format!("{uri} {token} {body}"),
            )
        });
        tokio::spawn(async move { axum::serve(listener, echo).await });
        let (address, _serving) = standby(vec![leader], &token).await;
        let large = "x".repeat(300_000);
        let (status, headers, said) = post(address, "/hook/a%20b?c=d", &large).await;
        assert_eq!((status, &*said), (418, "/hook/a%20b?c=d t 300000"));
        assert_eq!(headers["x-said"], "leader");
        // Two that take each other for the leader do not pass a request to and fro.
        let (one, two) = (free(), free());
        let (_there, at_two) = watch::channel(Leader::At(vec![two]));
        let (_back, at_one) = watch::channel(Leader::At(vec![one]));
        let _first = serve(&[one], &Listeners::default(), &at_two, &token)
            .await
            .expect("it listens");
        let _second = serve(&[two], &Listeners::default(), &at_one, &token)
            .await
            .expect("it listens");
        assert_eq!(post(one, "/", "").await.0, 503);
    }

    #[test]
    fn one_address_leaves_room_for_others() {
        let slots = Slots::default();
        let of = |last| IpAddr::from([127, 0, 0, last]);
        let taken: Vec<_> = (0..200).map_while(|_| slots.take(of(1))).collect();
        assert_eq!(taken.len(), MOST_OF_ONE);
        let others: Vec<_> = (0..800)
            .filter_map(|number| slots.take(of(2 + (number % 8) as u8)))
            .collect();
        assert_eq!(taken.len() + others.len(), MOST);
        drop((taken, others));
        assert_eq!(slots.all.available_permits(), MOST);
        assert!(slots.take(of(1)).is_some());
    }

    #[tokio::test]
    async fn a_leader_that_is_gone_is_asked_again_later() {
        let token = CancellationToken::new();
        let (address, _serving) = standby(vec![free()], &token).await;
        let (status, headers, _) = post(address, "/", "{}").await;
        assert_eq!(
            (status, &headers[RETRY_AFTER]),
            (503, &HeaderValue::from_static(PAUSE))
        );
    }

    #[tokio::test]
    async fn who_posts_is_asked_to_come_again() {
        let token = CancellationToken::new();
        let (address, _serving) = standby(Vec::new(), &token).await;
        let (status, headers, _) = post(address, "/", "{}").await;
        assert_eq!(status, 503);
        assert_eq!(headers[RETRY_AFTER], PAUSE);
        assert_eq!(headers[CONNECTION], "close");
    }

    #[tokio::test]
    async fn who_connects_while_a_standby_becomes_the_leader_is_answered_by_it() {
        let (token, listeners, address) = (CancellationToken::new(), Listeners::default(), free());
        let (_leader, seen) = watch::channel(Leader::Unknown);
        let mut serving = serve(&[address], &listeners, &seen, &token)
            .await
            .expect("it listens");
        token.cancel();
        while serving.join_next().await.is_some() {}
        let between = tokio::spawn(async move { post(address, "/", "").await.0 });
        tokio::time::sleep(Duration::from_millis(50)).await;
        let listener = listeners.listen(address).await.expect("it goes on");
        let work = Router::new().fallback(async || StatusCode::IM_A_TEAPOT);
        tokio::spawn(async move { axum::serve(listener, work).await });
        assert_eq!(between.await.expect("no panic"), 418);
        let other = free();
        assert!(listeners.listen(other).await.is_ok(), "one that was not kept");
    }
}
