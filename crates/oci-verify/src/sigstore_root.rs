//! The Sigstore trusted root for keyless signatures, if the object names none.
//!
//! It is read from a file, if one is configured. Otherwise it is the root of the public Sigstore instance, whose keys and
//! certificates change over time: it is refreshed from the instance's [TUF](https://theupdateframework.io) repository, starting
//! from built-in root metadata. If the repository is unreachable, the last fetched root is used, or else the built-in one.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use error_chain::chain;
use jiff::Timestamp;
use signature::cosign::TrustedRoot;
use sigstore_tuf::transport::FetchFuture;
use sigstore_tuf::{MemoryStore, Repository, Updater};
use tokio::sync::Mutex;
use tokio::time::Instant;
use transport::http::{self, Clients, Settings};
use url::Url;

use super::error::Error;

/// TUF root metadata of the public instance, as published by Sigstore. Newer root metadata is verified against it.
const PUBLIC_ROOT: &[u8] = include_bytes!("../data/sigstore-tuf-root.json");
/// TUF target that contains the trusted root.
const TARGET: &str = "trusted_root.json";

/// Interval between refreshes. TUF timestamps of the public repository are valid for several days.
const FRESH_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// Delay before a retry if the repository is unreachable.
const RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// Timeout of a refresh. The verification then continues with the known root.
const PATIENCE: Duration = Duration::from_secs(10);

/// Origin of the trusted root. Clones share the fetched root.
#[derive(Clone, Default)]
pub struct SigstoreRoot(Origin);

#[derive(Clone, Default)]
enum Origin {
    /// The built-in root.
    #[default]
    BuiltIn,
    /// `--sigstore-trusted-root`.
    File(PathBuf),
    /// `--sigstore-tuf-mirror`.
    Mirror(Arc<Mutex<Mirror>>),
}

/// A TUF repository and the root that was fetched from it.
struct Mirror {
    url: Url,
    root: Vec<u8>,
    clients: Clients,
    /// The last fetched trusted root.
    json: Option<Vec<u8>>,
    /// Time of the next refresh; None: immediately.
    due: Option<Instant>,
    /// Verified metadata, which protects against rollback to older metadata.
    verified: Arc<MemoryStore>,
}

impl SigstoreRoot {
    /// Creates it from `--sigstore-trusted-root` and `--sigstore-tuf-mirror`; the file takes precedence.
    pub fn new(file: Option<PathBuf>, mirror: Option<Url>) -> Self {
        Self(match (file.filter(|file| !file.as_os_str().is_empty()), mirror) {
            (Some(file), _) => Origin::File(file),
            (None, Some(url)) => Origin::Mirror(Mirror::shared(url, PUBLIC_ROOT.to_vec())),
            (None, None) => Origin::BuiltIn,
        })
    }

    /// Loads the trusted root. A file is read on each call, so that it can be updated without a restart.
    pub(crate) async fn load(&self) -> Result<TrustedRoot, Error> {
        match &self.0 {
            Origin::BuiltIn => TrustedRoot::public_good().map_err(Error::Trust),
            Origin::File(file) => {
                let json = tokio::fs::read(file).await.map_err(|source| Error::ReadRoot {
                    path: file.display().to_string(),
                    source,
                })?;
                TrustedRoot::from_json(&json).map_err(Error::Trust)
            }
            // Concurrent verifications wait for a running refresh instead of starting another one.
            Origin::Mirror(mirror) => mirror.lock().await.trusted_root().await,
        }
    }
}

impl Mirror {
    fn shared(url: Url, root: Vec<u8>) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            url,
            root,
            clients: Clients::default(),
            json: None,
            due: None,
            verified: Arc::default(),
        }))
    }

    async fn trusted_root(&mut self) -> Result<TrustedRoot, Error> {
        if self.due.is_none_or(|due| due <= Instant::now()) {
            let refreshed = tokio::time::timeout(PATIENCE, self.refresh()).await;
            let problem = match refreshed {
                Ok(Ok(())) => None,
                Ok(Err(problem)) => Some(problem),
                Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
            };
            let pause = problem.as_ref().map_or(FRESH_FOR, |_| RETRY_AFTER);
            self.due = Instant::now().checked_add(pause);
            if let Some(problem) = problem {
                tracing::warn!(
                    url = %self.url,
                    problem,
                    going_on_with = if self.json.is_some() { "what was fetched last" } else { "what is built in" },
                    "failed to refresh the trusted root of Sigstore (--sigstore-tuf-mirror)"
                );
            }
        }
        let known = match &self.json {
            Some(json) => TrustedRoot::from_json(json),
            None => TrustedRoot::public_good(),
        };
        known.map_err(Error::Trust)
    }

    async fn refresh(&mut self) -> Result<(), String> {
        let now = Timestamp::now();
        let repository = Remote::new(&self.url, &self.clients)?;
        let updater = Updater::new(repository, &self.root).map_err(|error| chain(&error))?;
        let mut updater = updater.with_store(Arc::clone(&self.verified));
        updater.refresh(now).await.map_err(|error| chain(&error))?;
        let json = updater.get_target(TARGET, now).await;
        let json = json.map_err(|error| chain(&error))?;
        TrustedRoot::from_json(&json).map_err(|error| error.to_string())?;
        self.json = Some(json);
        Ok(())
    }
}

/// Reads the files of the repository over HTTP.
struct Remote {
    url: Url,
    client: http::Client,
}

impl Remote {
    fn new(url: &Url, clients: &Clients) -> Result<Self, String> {
        let mut url = url.clone();
        // Without a trailing slash, `join` would replace the last path segment.
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let settings = Settings::default().towards(url.host_str().unwrap_or_default());
        let client = clients.get(&settings).map_err(|error| error.to_string())?;
        Ok(Self { url, client })
    }

    fn fetch(&self, path: String, most: u64) -> FetchFuture<'_> {
        Box::pin(async move {
            let failed = |error: http::Error| sigstore_tuf::Error::transport_with_source("fetch", error);
            let invalid = |error| sigstore_tuf::Error::transport_with_source(format!("{path:?}"), error);
            let deadline = Instant::now() + PATIENCE;
            let request = http::Request {
                method: reqwest::Method::GET,
                url: self.url.join(&path).map_err(invalid)?,
                headers: reqwest::header::HeaderMap::new(),
                authorization: None,
            };
            let answer = http::send(&self.client, request, deadline)
                .await
                .map_err(failed)?;
            let status = answer.status();
            // Object stores answer 403 for missing objects.
            if matches!(status.as_u16(), 403 | 404) {
                return Ok(None);
            }
            if !status.is_success() {
                let words = format!("{path}: the server answers {status}");
                return Err(sigstore_tuf::Error::transport(words));
            }
            let body = http::read(answer, most, deadline).await.map_err(failed)?;
            Ok(Some(body.to_vec()))
        })
    }
}

impl Repository for Remote {
    fn fetch_metadata<'a>(&'a self, name: &'a str, most: u64) -> FetchFuture<'a> {
        self.fetch(name.to_owned(), most)
    }

    fn fetch_target<'a>(&'a self, path: &'a str, most: u64) -> FetchFuture<'a> {
        self.fetch(format!("targets/{path}"), most)
    }
}

#[cfg(test)]
mod tests;
