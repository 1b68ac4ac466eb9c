//! HTTP as every remote needs it: pooled clients, redirects that leave credentials behind, bounded bodies.
//!
//! In: a URL, the TLS and proxy settings of an object, a deadline. Out: a response, or an [`Error`] that says what
//! went wrong in words for people and in a [`Kind`] for the controller. One client is kept for each distinct
//! [`Settings`], so that a hundred objects of one registry share connections and one set of root certificates;
//! clients never hold credentials, those go with each request. Nothing here knows Git or registries.

mod retry_after;

use std::collections::HashMap;
use std::error::Error as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderValue, LOCATION};
use reqwest::{Method, Response, StatusCode};
use tokio::time::Instant;
use url::Url;

pub(crate) use self::retry_after::RetryAfter;

/// Establishing a connection takes no longer than this; the object's own time-out holds as well.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Objects with settings of their own are few; when there are more, idle clients are built anew.
const MAX_CLIENTS: usize = 64;
/// As Go's client, which Flux uses.
const MAX_REDIRECTS: usize = 10;
/// What a server says about its refusal is read up to here, in bytes, and quoted up to there, in characters.
const MAX_REFUSAL_BYTES: u64 = 16 << 10;
const MAX_QUOTED: usize = 300;

/// What a person must do about a failure, and what the controller does meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Credentials are missing or refused.
    Unauthorized,
    /// What was asked for is not there.
    NotFound,
    /// The remote did not answer in time.
    Timeout,
    /// The remote cannot be reached, or broke off.
    Unreachable,
    /// The remote answered with something that is refused: too large, a bad redirect, nonsense.
    Refused,
}

/// A request that failed. No variant carries credentials: URLs lose user, password and query first.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The TLS or proxy settings cannot be used.
    #[error("failed to configure TLS and proxy: {0}")]
    Configure(String),
    /// The connection failed, or broke.
    #[error("failed to reach '{url}': {cause}")]
    Reach {
        /// Where to.
        url: String,
        /// The innermost cause, such as "connection refused".
        cause: String,
    },
    /// The deadline passed.
    #[error("failed to get an answer from '{url}' in time")]
    Wait {
        /// Where from.
        url: String,
    },
    /// The server refused.
    #[error("'{url}' answered {status}{detail}")]
    Status {
        /// Where from.
        url: String,
        /// The HTTP status.
        status: StatusCode,
        /// What the server said, with a leading colon; may be empty.
        detail: Box<str>,
        /// When the server wants to be asked again, if it said so.
        #[source]
        retry_after: Option<RetryAfter>,
    },
    /// The answer is larger than what is read of it.
    #[error("failed to read the answer of '{url}': larger than {limit} bytes")]
    ReadAll {
        /// Where from.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// A redirect leads to where it must not.
    #[error("failed to follow the redirect of '{url}': {problem}")]
    Redirect {
        /// Where from.
        url: String,
        /// Why it is not followed.
        problem: &'static str,
    },
}

impl Error {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Wait { .. } => Kind::Timeout,
            Self::Reach { .. } => Kind::Unreachable,
            Self::Status {
                status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN,
                ..
            } => Kind::Unauthorized,
            Self::Status {
                status: StatusCode::NOT_FOUND | StatusCode::GONE,
                ..
            } => Kind::NotFound,
            Self::Status { status, .. } if status.is_server_error() => Kind::Unreachable,
            Self::Status {
                status: StatusCode::TOO_MANY_REQUESTS,
                ..
            } => Kind::Unreachable,
            Self::Status { .. } | Self::ReadAll { .. } | Self::Redirect { .. } | Self::Configure(_) => {
                Kind::Refused
            }
        }
    }

    /// A connection failure, told by its innermost cause.
    pub(crate) fn reach(url: &Url, error: reqwest::Error) -> Self {
        if error.is_timeout() {
            return Self::Wait { url: public(url) };
        }
        let error = error.without_url();
        let mut cause = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            cause = error.to_string();
            source = error.source();
        }
        Self::Reach {
            url: public(url),
            cause,
        }
    }
}

/// How connections of one object are made. Equal settings share a client.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Settings {
    /// PEM of certificate authorities that are trusted besides the system's.
    pub(crate) ca: Option<Vec<u8>>,
    /// PEM of the client certificate, followed by that of its key.
    pub(crate) identity: Option<Vec<u8>>,
    /// Accept any server certificate: only for OCI registries with `spec.insecure`, as Flux does.
    pub(crate) skip_verification: bool,
    /// Proxy for all requests; None leaves it to the environment variables.
    pub(crate) proxy: Option<Proxy>,
    /// Use no proxy, not even one of the environment.
    pub(crate) direct: bool,
}

impl Settings {
    /// The settings for a remote at this host. As Go does it, a proxy of the environment is not used for this machine.
    pub(crate) fn towards(mut self, host: &str) -> Self {
        let name = host.trim_start_matches('[').trim_end_matches(']');
        let loopback = name
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
        self.direct = self.proxy.is_none() && (loopback || name == "localhost");
        self
    }
}

/// An HTTP or SOCKS proxy.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Proxy {
    /// Its address.
    pub(crate) address: String,
    /// User and password, if it wants any.
    pub(crate) credentials: Option<(String, String)>,
}

/// The clients of this process.
#[derive(Clone, Default)]
pub(crate) struct Clients {
    by_settings: Arc<Mutex<HashMap<Settings, reqwest::Client>>>,
}

impl Clients {
    /// The client for these settings, made when first asked for.
    pub(crate) fn get(&self, settings: &Settings) -> Result<reqwest::Client, Error> {
        let mut clients = self.by_settings.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(settings) {
            return Ok(client.clone());
        }
        let client = build(settings)?;
        if clients.len() >= MAX_CLIENTS {
            clients.clear(); // clients in use live on in their users
        }
        clients.insert(settings.clone(), client.clone());
        Ok(client)
    }
}

fn build(settings: &Settings) -> Result<reqwest::Client, Error> {
    let configure = |error: reqwest::Error| Error::Configure(error.without_url().to_string());
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("windlass-source-controller/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(2)
        .tls_danger_accept_invalid_certs(settings.skip_verification);
    if let Some(ca) = &settings.ca {
        let certificates = reqwest::Certificate::from_pem_bundle(ca).map_err(configure)?;
        if certificates.is_empty() {
            return Err(Error::Configure(
                "the certificate authority holds no PEM certificate".to_owned(),
            ));
        }
        builder = builder.tls_certs_merge(certificates);
    }
    if let Some(identity) = &settings.identity {
        builder = builder.identity(reqwest::Identity::from_pem(identity).map_err(configure)?);
    }
    if settings.direct {
        builder = builder.no_proxy();
    }
    if let Some(proxy) = &settings.proxy {
        let mut to = reqwest::Proxy::all(resolving(&proxy.address)).map_err(configure)?;
        if let Some((user, password)) = &proxy.credentials {
            to = to.basic_auth(user, password);
        }
        builder = builder.proxy(to);
    }
    builder.build().map_err(configure)
}

/// As with Go's client, a SOCKS5 proxy resolves the names of servers, whichever way its address is written.
fn resolving(address: &str) -> String {
    match address.strip_prefix("socks5://") {
        Some(rest) => format!("socks5h://{rest}"),
        None => address.to_owned(),
    }
}

/// A request without a body.
pub(crate) struct Request<'a> {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Sent to the origin of `url` only, never to where a redirect leads.
    pub(crate) authorization: Option<&'a HeaderValue>,
}

/// Sends a request and follows redirects, whatever the status at the end.
///
/// Credentials stay with the origin that was asked; a redirect from https to http is refused.
pub(crate) async fn send(
    client: &reqwest::Client,
    request: Request<'_>,
    deadline: Instant,
) -> Result<Response, Error> {
    let mut url = request.url.clone();
    for _ in 0..=MAX_REDIRECTS {
        let mut builder = client
            .request(request.method.clone(), url.clone())
            .headers(request.headers.clone());
        if let Some(authorization) = request.authorization.filter(|_| same_origin(&url, &request.url)) {
            builder = builder.header(reqwest::header::AUTHORIZATION, authorization);
        }
        let response = within(deadline, &url, builder.send()).await?;
        match redirect_target(&url, &response)? {
            Some(target) => url = target,
            None => return Ok(response),
        }
    }
    Err(Error::Redirect {
        url: public(&request.url),
        problem: "too many redirects",
    })
}

/// Turns a refusal into an error that quotes what the server said.
pub(crate) async fn checked(response: Response, deadline: Instant) -> Result<Response, Error> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let url = public(response.url());
    let retry_after = RetryAfter::of(status, response.headers(), jiff::Timestamp::now());
    let body = read(response, MAX_REFUSAL_BYTES, deadline)
        .await
        .unwrap_or_default();
    Err(Error::Status {
        url,
        status,
        detail: quoted(&body).into(),
        retry_after,
    })
}

/// Reads a body of at most `limit` bytes.
pub(crate) async fn read(mut response: Response, limit: u64, deadline: Instant) -> Result<Bytes, Error> {
    let mut body = BytesMut::new();
    while let Some(chunk) = next_chunk(&mut response, deadline).await? {
        if body.len() as u64 + chunk.len() as u64 > limit {
            return Err(Error::ReadAll {
                url: public(response.url()),
                limit,
            });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The next piece of a body, or None at its end.
pub(crate) async fn next_chunk(response: &mut Response, deadline: Instant) -> Result<Option<Bytes>, Error> {
    let url = response.url().clone();
    within(deadline, &url, response.chunk()).await
}

/// Waits for an operation until the deadline.
pub(crate) async fn within<T>(
    deadline: Instant,
    url: &Url,
    operation: impl Future<Output = Result<T, reqwest::Error>>,
) -> Result<T, Error> {
    match tokio::time::timeout_at(deadline, operation).await {
        Ok(result) => result.map_err(|error| Error::reach(url, error)),
        Err(_) => Err(Error::Wait { url: public(url) }),
    }
}

fn redirect_target(url: &Url, response: &Response) -> Result<Option<Url>, Error> {
    const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
    if !REDIRECTS.contains(&response.status().as_u16()) {
        return Ok(None);
    }
    let refuse = |problem| Error::Redirect {
        url: public(url),
        problem,
    };
    let location = response
        .headers()
        .get(LOCATION)
        .and_then(|location| location.to_str().ok());
    let location = location.ok_or_else(|| refuse("it does not say where to"))?;
    let target = url.join(location).map_err(|_| refuse("it leads to no URL"))?;
    match (url.scheme(), target.scheme()) {
        ("https", "http") => Err(refuse("it leads from https to http")),
        (_, "http" | "https") => Ok(Some(target)),
        _ => Err(refuse("it leads to neither http nor https")),
    }
}

/// Whether both are served by the same server, so that what one may know the other may know.
pub(crate) fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

/// The URL as it may be shown: without user, password, query (signed URLs) and fragment.
pub(crate) fn public(url: &Url) -> String {
    let mut url = url.clone();
    let _ = url.set_username(""); // fails only for URLs that can have none
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// One line of what a server answered, after a colon; nothing when it is not text.
fn quoted(body: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(body) else {
        return String::new();
    };
    let line = registry_errors(text).unwrap_or_else(|| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let markup = line.starts_with(['<', '{', '[']);
    if line.is_empty() || markup || line.chars().any(char::is_control) {
        return String::new();
    }
    format!(": {}", line.chars().take(MAX_QUOTED).collect::<String>())
}

/// The refusals of an OCI registry, written as Flux's library writes them.
fn registry_errors(text: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Answer {
        errors: Vec<Refusal>,
    }
    #[derive(serde::Deserialize)]
    struct Refusal {
        code: String,
        #[serde(default)]
        message: String,
    }
    let answer: Answer = serde_json::from_str(text).ok()?;
    let lines = answer
        .errors
        .iter()
        .map(|refusal| format!("{}: {}", refusal.code, refusal.message));
    Some(lines.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_urls_hold_no_secrets() {
        let cases = [
            (
                "https://user:pass@example.com/a?token=x#y",
                "https://example.com/a",
            ),
            ("http://example.com:8080/a.git", "http://example.com:8080/a.git"),
        ];
        for (url, shown) in cases {
            assert_eq!(public(&Url::parse(url).unwrap()), shown);
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |a: &str, b: &str| same_origin(&Url::parse(a).unwrap(), &Url::parse(b).unwrap());
        assert!(same("https://a/x", "https://a:443/y"));
        assert!(!same("https://a/", "http://a/"));
        assert!(!same("https://a/", "https://b/"));
        assert!(!same("https://a/", "https://a:444/"));
        assert!(!same("https://a/", "https://a.evil/"));
    }

    #[test]
    fn a_proxy_of_the_environment_is_not_used_for_this_machine() {
        let direct = |host: &str| Settings::default().towards(host).direct;
        assert!(
            ["localhost", "127.0.0.1", "127.1.2.3", "[::1]"]
                .into_iter()
                .all(direct)
        );
        assert!(
            !["example.com", "10.0.0.1", "localhost.example.com"]
                .into_iter()
                .any(direct)
        );
        let proxy = Some(Proxy {
            address: "http://proxy".to_owned(),
            credentials: None,
        });
        assert!(
            !Settings {
                proxy,
                ..Default::default()
            }
            .towards("localhost")
            .direct
        );
    }

    #[test]
    fn a_socks_proxy_resolves_names() {
        assert_eq!(resolving("socks5://proxy:1080"), "socks5h://proxy:1080");
        assert_eq!(resolving("socks5h://proxy"), "socks5h://proxy");
        assert_eq!(resolving("http://proxy"), "http://proxy");
    }

    #[test]
    fn a_status_is_classified() {
        let cases = [
            (401, Kind::Unauthorized),
            (403, Kind::Unauthorized),
            (404, Kind::NotFound),
            (429, Kind::Unreachable),
            (503, Kind::Unreachable),
            (418, Kind::Refused),
        ];
        for (status, kind) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            let error = Error::Status {
                url: String::new(),
                status,
                detail: Box::default(),
                retry_after: None,
            };
            assert_eq!(error.kind(), kind, "{status}");
        }
    }

    #[test]
    fn only_plain_words_of_a_server_are_quoted() {
        assert_eq!(quoted(b"no such\n repository "), ": no such repository");
        assert_eq!(quoted(b"<html>"), "");
        assert_eq!(quoted(br#"{"a": 1}"#), "");
        let refusal =
            br#"{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown", "detail": {}}]}"#;
        assert_eq!(quoted(refusal), ": MANIFEST_UNKNOWN: manifest unknown");
        assert_eq!(quoted("ü".repeat(1000).as_bytes()).chars().count(), 302);
        assert_eq!(quoted(b"\xff\xfe"), "");
        assert_eq!(quoted(b""), "");
    }
}
