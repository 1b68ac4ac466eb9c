//! The reverse proxy before the registry: it records, checks credentials, marks lists and injects faults, and changes nothing
//! else.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::TryStreamExt as _;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// Credentials for the registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Access {
    /// Everybody.
    #[default]
    Anonymous,
    /// User name and password with each request.
    Basic {
        /// The user name.
        username: String,
        /// The password.
        password: String,
    },
    /// Bearer token from `/token`, as the large public registries want it; with credentials, `/token` asks
    /// for them.
    Token(Option<(String, String)>),
}

/// Fault of every request about a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Answers with this HTTP status.
    Status(u16),
    /// Answers that there were too many requests, and asks for a pause (`Retry-After`).
    TooManyRequests(Duration),
    /// Answers with this HTTP status when a blob is asked for.
    BlobStatus(u16),
    /// Changes the last byte of every blob.
    CorruptBlobs,
    /// Answers as usual after this time.
    Delay(Duration),
    /// Takes the request and never answers.
    Hang,
}

/// One request that reached the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The repository's name; empty for requests about none.
    pub repository: String,
    /// Kind of the request.
    pub kind: Kind,
    /// The tag or digest, where there is one.
    pub reference: String,
    /// True if the credentials were good.
    pub allowed: bool,
}

/// Kind of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `GET /v2/`.
    Ping,
    /// `GET /token`.
    Token,
    /// The list of tags.
    Tags,
    /// The same, answered with «not modified».
    TagsUnchanged,
    /// `HEAD` of a manifest.
    ManifestHead,
    /// `GET` of a manifest.
    ManifestGet,
    /// `HEAD` of a blob.
    BlobHead,
    /// `GET` of a blob.
    BlobGet,
    /// Anything else, pushes for instance.
    Other,
}

#[derive(Debug)]
pub(super) struct Shared {
    upstream: String,
    http: reqwest::Client,
    state: Mutex<StateOfProxy>,
}

#[derive(Debug, Default)]
pub(super) struct StateOfProxy {
    pub(super) access: Access,
    pub(super) faults: HashMap<String, Fault>,
    /// Repositories whose lists of tags have an `ETag`, as some registries give one.
    pub(super) marked: HashSet<String>,
    pub(super) requests: Vec<Request>,
}

impl Shared {
    pub(super) fn new(upstream: String, http: reqwest::Client) -> Self {
        Self {
            upstream,
            http,
            state: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, StateOfProxy> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token that `/token` gives out.
const TOKEN: &str = "testkit-token";

pub(super) async fn start(shared: Arc<Shared>) -> Result<(String, JoinHandle<()>)> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .context("failed to listen for the registry's proxy")?;
    let address = listener.local_addr()?.to_string();
    let app = Router::new().fallback(serve).with_state(shared);
    // It ends with the task; there is no one to tell about an error.
    let task = tokio::spawn(async move {
        let _ = axum::serve(listener, app).await;
    });
    Ok((address, task))
}

async fn serve(State(shared): State<Arc<Shared>>, http_request: HttpRequest) -> Response {
    let (access, fault, request) = {
        let mut state = shared.state();
        let mut request = describe(http_request.method(), http_request.uri().path());
        request.allowed = may_enter(&state.access, request.kind, http_request.headers());
        state.requests.push(request.clone());
        (
            state.access.clone(),
            state.faults.get(&request.repository).cloned(),
            request,
        )
    };
    let is_blob = matches!(request.kind, Kind::BlobGet | Kind::BlobHead);
    match fault {
        Some(Fault::Status(status)) => return answer_status(status),
        Some(Fault::TooManyRequests(pause)) => {
            let mut answer = answer_status(429);
            answer
                .headers_mut()
                .insert(header::RETRY_AFTER, pause.as_secs().into());
            return answer;
        }
        Some(Fault::BlobStatus(status)) if is_blob => return answer_status(status),
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::Hang) => std::future::pending().await,
        Some(Fault::BlobStatus(_) | Fault::CorruptBlobs) | None => {}
    }
    if !request.allowed {
        return challenge(&access, http_request.headers(), &request.repository);
    }
    if request.kind == Kind::Token {
        return axum::Json(serde_json::json!({"token": TOKEN, "expires_in": 300})).into_response();
    }
    let corrupt = fault == Some(Fault::CorruptBlobs) && request.kind == Kind::BlobGet;
    let condition = http_request.headers().get(header::IF_NONE_MATCH).cloned();
    let is_marked = request.kind == Kind::Tags && shared.state().marked.contains(&request.repository);
    let forwarded = match forward(&shared, http_request, corrupt).await {
        Ok(response) if is_marked => mark(response, condition.as_ref()).await,
        forwarded => forwarded,
    };
    match forwarded {
        Ok(response) if response.status() == StatusCode::NOT_MODIFIED => {
            let kind = Kind::TagsUnchanged;
            shared.state().requests.push(Request { kind, ..request });
            response
        }
        Ok(response) => response,
        Err(error) => (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response(),
    }
}

fn describe(method: &Method, path: &str) -> Request {
    let request = |kind, repository: &str, reference: &str| Request {
        repository: repository.to_owned(),
        kind,
        reference: reference.to_owned(),
        allowed: false,
    };
    let Some(rest) = path.strip_prefix("/v2/") else {
        return request(
            if path == "/token" {
                Kind::Token
            } else {
                Kind::Other
            },
            "",
            "",
        );
    };
    if rest.is_empty() {
        return request(Kind::Ping, "", "");
    }
    if let Some(repository) = rest.strip_suffix("/tags/list") {
        return request(Kind::Tags, repository, "");
    }
    let head = *method == Method::HEAD;
    for (part, on_head, on_get) in [
        ("/manifests/", Kind::ManifestHead, Kind::ManifestGet),
        ("/blobs/", Kind::BlobHead, Kind::BlobGet),
    ] {
        if let Some((repository, reference)) = rest.split_once(part) {
            let kind = if head { on_head } else { on_get };
            let kind = if head || *method == Method::GET {
                kind
            } else {
                Kind::Other
            };
            return request(kind, repository, reference);
        }
    }
    request(Kind::Other, rest, "")
}

fn may_enter(access: &Access, kind: Kind, headers: &HeaderMap) -> bool {
    let given = headers.get(header::AUTHORIZATION).map(HeaderValue::as_bytes);
    let basic = |username: &str, password: &str| {
        given == Some(format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))).as_bytes())
    };
    match access {
        Access::Anonymous => true,
        Access::Basic { username, password } => basic(username, password),
        Access::Token(None) if kind == Kind::Token => true,
        Access::Token(Some((username, password))) if kind == Kind::Token => basic(username, password),
        Access::Token(_) => given == Some(format!("Bearer {TOKEN}").as_bytes()),
    }
}

fn challenge(access: &Access, headers: &HeaderMap, repository: &str) -> Response {
    let host = headers
        .get(header::HOST)
        .and_then(|host| host.to_str().ok())
        .unwrap_or_default();
    let challenge = match access {
        Access::Token(_) => format!(
            "Bearer realm=\"http://{host}/token\",service=\"testkit\",scope=\"repository:{repository}:pull\""
        ),
        _ => "Basic realm=\"testkit\"".to_owned(),
    };
    let body = axum::Json(serde_json::json!({
        "errors": [{"code": "UNAUTHORIZED", "message": "authentication required"}],
    }));
    (
        StatusCode::UNAUTHORIZED,
        [(header::WWW_AUTHENTICATE, challenge)],
        body,
    )
        .into_response()
}

fn answer_status(status: u16) -> Response {
    StatusCode::from_u16(status)
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        .into_response()
}

async fn forward(shared: &Shared, request: HttpRequest, corrupt: bool) -> Result<Response> {
    let (head, body) = request.into_parts();
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    let mut headers = head.headers;
    // The Host stays as it is: the registry makes its upload addresses of it, which must lead here again.
    for connection_header in [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::AUTHORIZATION,
    ] {
        headers.remove(connection_header);
    }
    let answer = shared
        .http
        .request(head.method, format!("http://{}{path}", shared.upstream))
        .headers(headers)
        .body(reqwest::Body::wrap_stream(body.into_data_stream()))
        .send()
        .await
        .context("failed to ask the registry")?;
    let mut response = Response::builder().status(answer.status());
    for (name, value) in answer.headers() {
        if *name != HeaderName::from_static("transfer-encoding") {
            response = response.header(name, value);
        }
    }
    let body = if corrupt {
        let mut data = answer.bytes().await.context("failed to read a blob")?.to_vec();
        if let Some(last) = data.last_mut() {
            *last ^= 1;
        }
        Body::from(data)
    } else {
        Body::from_stream(answer.bytes_stream().map_err(std::io::Error::other))
    };
    response
        .body(body)
        .context("failed to make an answer of what the registry said")
}

/// Gives an answer an `ETag`, or leaves only that if it is the condition.
async fn mark(response: Response, condition: Option<&HeaderValue>) -> Result<Response> {
    let (mut head, body) = response.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20)
        .await
        .context("failed to read a list")?;
    let mark = format!("\"{}\"", hex::encode(Sha256::digest(&body)));
    let mark = HeaderValue::from_str(&mark).context("failed to mark a list")?;
    if condition == Some(&mark) {
        return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, mark)]).into_response());
    }
    head.headers.insert(header::ETAG, mark);
    Ok(Response::from_parts(head, Body::from(body)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_told_apart_by_method_and_path() {
        for (method, path, kind, repository, reference) in [
            (Method::GET, "/v2/", Kind::Ping, "", ""),
            (Method::GET, "/token", Kind::Token, "", ""),
            (Method::GET, "/v2/a/b/tags/list", Kind::Tags, "a/b", ""),
            (
                Method::HEAD,
                "/v2/a/b/manifests/latest",
                Kind::ManifestHead,
                "a/b",
                "latest",
            ),
            (
                Method::GET,
                "/v2/a/manifests/sha256:0",
                Kind::ManifestGet,
                "a",
                "sha256:0",
            ),
            (
                Method::GET,
                "/v2/a/blobs/sha256:0",
                Kind::BlobGet,
                "a",
                "sha256:0",
            ),
            (
                Method::HEAD,
                "/v2/a/blobs/sha256:0",
                Kind::BlobHead,
                "a",
                "sha256:0",
            ),
            (Method::PUT, "/v2/a/manifests/latest", Kind::Other, "a", "latest"),
            (Method::POST, "/v2/a/blobs/uploads/", Kind::Other, "a", "uploads/"),
        ] {
            let request = describe(&method, path);
            assert_eq!(
                (
                    request.kind,
                    request.repository.as_str(),
                    request.reference.as_str()
                ),
                (kind, repository, reference),
                "{method} {path}"
            );
        }
    }
}
