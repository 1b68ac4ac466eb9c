//! A Helm repository on an HTTP server: files, an index that the real `helm repo index` made, basic authentication, TLS,
//! ETag and Last-Modified, compression, and requests that are counted.

mod tls;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Charts `app` (1.0.0, 1.1.0, 2.0.0-rc.1) and `web` (0.1.0) with their index.
const RECORDED: [(&str, &[u8]); 5] = [
    ("index.yaml", include_bytes!("../charts/index.yaml")),
    ("app-1.0.0.tgz", include_bytes!("../charts/app-1.0.0.tgz")),
    ("app-1.1.0.tgz", include_bytes!("../charts/app-1.1.0.tgz")),
    (
        "app-2.0.0-rc.1.tgz",
        include_bytes!("../charts/app-2.0.0-rc.1.tgz"),
    ),
    ("web-0.1.0.tgz", include_bytes!("../charts/web-0.1.0.tgz")),
];
/// Value of `Last-Modified`.
const LAST_MODIFIED: &str = "Mon, 01 Jan 2024 00:00:00 GMT";

/// A repository on a free port of 127.0.0.1, gone when dropped.
#[derive(Debug)]
pub struct HelmRepository {
    url: String,
    /// PEM of the authority that signed the server's certificate, if it has one.
    authority: Option<String>,
    shared: Arc<Mutex<Shared>>,
    task: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    files: BTreeMap<String, Vec<u8>>,
    credentials: Option<(String, String)>,
    /// Which validators answers have.
    with_etag: bool,
    compressed: bool,
    /// Status of all answers, if it is not the right one.
    failing: Option<StatusCode>,
    requests: Vec<Asked>,
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its path, without the leading slash.
    pub path: String,
    /// The status of the answer.
    pub status: u16,
    /// The `Authorization` header that it had.
    pub authorization: Option<String>,
}

impl HelmRepository {
    /// Starts a repository over plain HTTP, with the recorded charts.
    pub async fn start() -> Result<Self> {
        Self::start_with(false).await
    }

    /// Starts one over HTTPS, with a certificate of an authority of its own.
    pub async fn start_tls() -> Result<Self> {
        Self::start_with(true).await
    }

    async fn start_with(tls: bool) -> Result<Self> {
        let files = RECORDED.map(|(name, data)| (name.to_owned(), data.to_vec()));
        let shared = Arc::new(Mutex::new(Shared {
            files: files.into(),
            with_etag: true,
            ..Shared::default()
        }));
        let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0)))
            .await
            .context("failed to listen")?;
        let address = listener.local_addr().context("failed to learn the port")?;
        let routes = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let (authority, task) = if tls {
            let (authority, listener) = tls::listener(listener)?;
            let serving = axum::serve(listener, routes);
            let task = tokio::spawn(async { drop(serving.await) });
            (Some(authority), task)
        } else {
            let serving = axum::serve(listener, routes);
            (None, tokio::spawn(async { drop(serving.await) }))
        };
        let scheme = if tls { "https" } else { "http" };
        Ok(Self {
            url: format!("{scheme}://{address}"),
            authority,
            shared,
            task,
        })
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// PEM of the authority that clients must trust; only over HTTPS.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Puts a file there, or takes it away.
    pub fn set_file(&self, path: &str, data: Option<Vec<u8>>) {
        let mut shared = self.lock();
        match data {
            Some(data) => shared.files.insert(path.to_owned(), data),
            None => shared.files.remove(path),
        };
    }

    /// A file that is there.
    pub fn file(&self, path: &str) -> Option<Vec<u8>> {
        self.lock().files.get(path).cloned()
    }

    /// Wants this user and password from now on.
    pub fn set_credentials(&self, username: &str, password: &str) {
        self.lock().credentials = Some((username.to_owned(), password.to_owned()));
    }

    /// Returns whether answers have an ETag, else only Last-Modified.
    pub fn set_etag(&self, with_etag: bool) {
        self.lock().with_etag = with_etag;
    }

    /// Returns whether answers are compressed for those who take that.
    pub fn set_compressed(&self, compressed: bool) {
        self.lock().compressed = compressed;
    }

    /// Answers everything with this status from now on; None: as it should be.
    pub fn set_failing(&self, status: Option<u16>) {
        self.lock().failing = status.and_then(|status| StatusCode::from_u16(status).ok());
    }

    /// All requests since this was asked last.
    pub fn take_requests(&self) -> Vec<Asked> {
        std::mem::take(&mut self.lock().requests)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for HelmRepository {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response<Body> {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let response = shared.respond(&path, request.headers());
    let authorization = request.headers().get(header::AUTHORIZATION);
    shared.requests.push(Asked {
        path,
        status: response.status().as_u16(),
        authorization: authorization
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned),
    });
    response
}

impl Shared {
    fn respond(&self, path: &str, headers: &HeaderMap) -> Response<Body> {
        let text = |name| {
            headers
                .get(name)
                .and_then(|value: &header::HeaderValue| value.to_str().ok())
        };
        if let Some(status) = self.failing {
            return empty(status);
        }
        if let Some((username, password)) = &self.credentials {
            let wanted = format!("Basic {}", STANDARD.encode(format!("{username}:{password}")));
            if text(header::AUTHORIZATION) != Some(&wanted) {
                return empty(StatusCode::UNAUTHORIZED);
            }
        }
        let Some(data) = self.files.get(path) else {
            return empty(StatusCode::NOT_FOUND);
        };
        let etag = format!("\"{}\"", hex::encode(Sha256::digest(data)));
        let is_known = match text(header::IF_NONE_MATCH) {
            Some(known) => self.with_etag && known == etag,
            None => text(header::IF_MODIFIED_SINCE) == Some(LAST_MODIFIED),
        };
        if is_known {
            return empty(StatusCode::NOT_MODIFIED);
        }
        let mut response = Response::builder().header(header::LAST_MODIFIED, LAST_MODIFIED);
        if self.with_etag {
            response = response.header(header::ETAG, etag);
        }
        let takes_gzip = text(header::ACCEPT_ENCODING).is_some_and(|encodings| encodings.contains("gzip"));
        let body = if self.compressed && takes_gzip {
            response = response.header(header::CONTENT_ENCODING, "gzip");
            compress(data)
        } else {
            data.clone()
        };
        response
            .body(Body::from(body))
            .unwrap_or_else(|_| empty(StatusCode::INTERNAL_SERVER_ERROR))
    }
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn compress(data: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    // Memory takes everything.
    let _ = encoder.write_all(data);
    encoder.finish().unwrap_or_default()
}
