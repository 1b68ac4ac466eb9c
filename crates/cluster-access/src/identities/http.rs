//! The HTTP client with which clouds and key services are asked.

use std::net::IpAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use cloud_identity::{Answer, Future, Http, Reach, Request, SendError};

/// As in Flux: a token service answers within this or is down.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Answers are some kilobytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Two clients: through the proxy of the environment, and past it.
pub struct Clients {
    proxied: reqwest::Client,
    direct: reqwest::Client,
}

impl Clients {
    /// Sets them up.
    pub fn new() -> Result<Self, reqwest::Error> {
        let builder = || {
            reqwest::Client::builder()
                .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
                .redirect(reqwest::redirect::Policy::none())
                .timeout(TIMEOUT)
                .pool_max_idle_per_host(2)
        };
        Ok(Self {
            proxied: builder().build()?,
            direct: builder().no_proxy().build()?,
        })
    }

    async fn ask(&self, request: Request) -> Result<Answer, SendError> {
        let client = if is_near(&request) {
            &self.direct
        } else {
            &self.proxied
        };
        let sent = client
            .request(request.method, request.url)
            .headers(request.headers)
            .body(request.body)
            .send()
            .await;
        let mut response = sent.map_err(failed)?;
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(SendError(format!(
                    "the answer is larger than {MAX_ANSWER_BYTES} bytes"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer {
            status: response.status(),
            headers: response.headers().clone(),
            body: Bytes::from(body),
        })
    }
}

impl Http for Clients {
    fn send(&self, request: Request) -> Future<'_, Result<Answer, SendError>> {
        Box::pin(self.ask(request))
    }
}

/// Metadata servers, and as with Go's client this machine, are never asked through a proxy.
fn is_near(request: &Request) -> bool {
    let host = request.url.host_str().unwrap_or_default();
    let address = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>();
    request.reach == Reach::Local || host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The causes of an error, without the URL: its query may hold a signature.
fn failed(error: reqwest::Error) -> SendError {
    let error = error.without_url();
    let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
    SendError(causes.map(ToString::to_string).collect::<Vec<_>>().join(": "))
}
