//! A registry that has just what a test gives it, and behaves as badly as a test wants.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// An answer: status, headers, body.
pub type Answer = (u16, Vec<(&'static str, String)>, Vec<u8>);
/// Answers of a test by path and query; None leaves the answer to the content.
pub type Hook = Box<dyn Fn(&str) -> Option<Answer> + Send + Sync>;

/// Content of the one repository `org/app`.
#[derive(Default)]
pub struct Content {
    /// Media type and content by tag or digest.
    pub manifests: BTreeMap<String, (String, Vec<u8>)>,
    /// Content by digest.
    pub blobs: BTreeMap<String, Vec<u8>>,
    /// True if there is a referrers API.
    pub referrers: bool,
    /// Goes before the content.
    pub hook: Option<Hook>,
}

impl Content {
    /// Adds a blob and returns its descriptor.
    pub fn blob(&mut self, media_type: &str, content: &[u8]) -> Value {
        let digest = digest_of(content);
        self.blobs.insert(digest.clone(), content.to_vec());
        json!({"mediaType": media_type, "digest": digest, "size": content.len()})
    }

    /// Adds a manifest under its digest, which is returned.
    pub fn manifest(&mut self, content: &[u8]) -> String {
        let digest = digest_of(content);
        self.manifests
            .insert(digest.clone(), (MANIFEST.to_owned(), content.to_vec()));
        digest
    }

    fn referrers_to(&self, digest: &str) -> Vec<Value> {
        let refers = |content: &[u8]| {
            let manifest: Value = serde_json::from_slice(content).ok()?;
            (manifest["subject"]["digest"] == digest).then_some(manifest)
        };
        let by_digest = self
            .manifests
            .iter()
            .filter(|(name, _)| name.starts_with("sha256:"));
        by_digest
            .filter_map(|(name, (media_type, content))| {
                let manifest = refers(content)?;
                let kind = manifest.get("artifactType").unwrap_or(&manifest["config"]["mediaType"]);
                Some(json!({"mediaType": media_type, "digest": name, "size": content.len(), "artifactType": kind}))
            })
            .collect()
    }

    fn answer(&self, path: &str) -> Answer {
        if let Some(answer) = self.hook.as_ref().and_then(|hook| hook(path)) {
            return answer;
        }
        let found = |media_type: &str, body: &[u8]| {
            (200, vec![("content-type", media_type.to_owned())], body.to_vec())
        };
        let missing = (404, Vec::new(), b"{}".to_vec());
        let Some((kind, name)) = path
            .strip_prefix("/v2/org/app/")
            .and_then(|rest| rest.split_once('/'))
        else {
            return missing;
        };
        match kind {
            "manifests" => match self.manifests.get(name) {
                Some((media_type, content)) => found(media_type, content),
                None => missing,
            },
            "blobs" => match self.blobs.get(name) {
                Some(content) => found("application/octet-stream", content),
                None => missing,
            },
            "referrers" if self.referrers => {
                let index =
                    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": self.referrers_to(name)});
                found(INDEX, index.to_string().as_bytes())
            }
            _ => missing,
        }
    }
}

/// A registry on a free port, gone when dropped.
pub struct ScriptedRegistry {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

struct Shared {
    content: Content,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ScriptedRegistry {
    /// Starts it.
    pub async fn start(content: Content) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let requests = Arc::default();
        let shared = Arc::new(Shared {
            content,
            requests: Arc::clone(&requests),
        });
        let app = Router::new().fallback(serve).with_state(shared);
        let task = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self {
            address,
            requests,
            task,
        })
    }

    /// Returns the URL of its one repository.
    pub fn url(&self) -> String {
        format!("oci://{}/org/app", self.address)
    }

    /// Requests so far: paths with their queries.
    pub fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for ScriptedRegistry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request) -> Response<Body> {
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let path = path.replace("%3A", ":");
    shared
        .requests
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(path.clone());
    let condition = request.headers().get("if-none-match").cloned();
    let (mut status, headers, mut body) = shared.content.answer(&path);
    let has_mark = |(name, value): &(&str, String)| {
        *name == "etag" && condition.as_ref().is_some_and(|mark| mark == value)
    };
    if headers.iter().any(has_mark) {
        (status, body) = (304, Vec::new());
    }
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).expect("tests answer with a status of HTTP");
    for (name, value) in headers {
        let value = value.parse().expect("tests answer with headers that can be sent");
        response.headers_mut().insert(name, value);
    }
    response
}

fn digest_of(content: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(content)))
}
