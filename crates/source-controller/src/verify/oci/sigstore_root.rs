//! The Sigstore installation that is trusted for keyless signatures where an object names none.
//!
//! A file, if there is one; else the public installation, whose keys and certificates change: they are refreshed from its
//! repository of [The Update Framework](https://theupdateframework.io), starting from a root that is built in. Where the
//! repository cannot be reached, what was fetched last counts, and before that what is built in.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use signature::cosign::TrustedRoot;
use sigstore_tuf::transport::FetchFuture;
use sigstore_tuf::{MemoryStore, Repository, Updater};
use tokio::sync::Mutex;
use tokio::time::Instant;
use url::Url;

use super::Error;
use crate::error::chain;
use crate::fetch::http::{self, Clients, Settings};

/// Root metadata of the public installation's repository, as Sigstore has published it. What it signs leads to newer ones.
const PUBLIC_ROOT: &[u8] = include_bytes!("../../../data/sigstore-tuf-root.json");
/// The description of an installation among the repository's targets.
const TARGET: &str = "trusted_root.json";

/// How long what was fetched counts: the repository's timestamp is signed anew each few days.
const FRESH_FOR: Duration = Duration::from_secs(24 * 60 * 60);
/// How long a repository that cannot be reached is left alone.
const RETRY_AFTER: Duration = Duration::from_secs(60 * 60);
/// How long a verification waits for a refresh. It goes on with what is known.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where the description of the installation comes from. Clones share what was fetched.
#[derive(Clone, Default)]
pub(crate) struct SigstoreRoot(Origin);

#[derive(Clone, Default)]
enum Origin {
    /// What is built in.
    #[default]
    BuiltIn,
    /// `--sigstore-trusted-root`.
    File(PathBuf),
    /// `--sigstore-tuf-mirror`.
    Mirror(Arc<Mutex<Mirror>>),
}

/// A repository of The Update Framework, and what it has given.
struct Mirror {
    url: Url,
    root: Vec<u8>,
    clients: Clients,
    /// What it gave last.
    json: Option<Vec<u8>>,
    /// When it is asked again; None at once.
    due: Option<Instant>,
    /// What was verified, so that no older metadata is taken later.
    verified: Arc<MemoryStore>,
}

impl SigstoreRoot {
    /// As `--sigstore-trusted-root` and `--sigstore-tuf-mirror` say; either may be empty.
    pub(crate) fn new(file: Option<PathBuf>, mirror: Option<Url>) -> Self {
        Self(match (file.filter(|file| !file.as_os_str().is_empty()), mirror) {
            (Some(file), _) => Origin::File(file),
            (None, Some(url)) => Origin::Mirror(Mirror::shared(url, PUBLIC_ROOT.to_vec())),
            (None, None) => Origin::BuiltIn,
        })
    }

    /// Reads the file anew each time: whoever refreshes it does not restart the controller.
    pub(super) async fn load(&self) -> Result<TrustedRoot, Error> {
        match &self.0 {
            Origin::BuiltIn => TrustedRoot::public_good().map_err(Error::Trust),
            Origin::File(file) => {
                let json = tokio::fs::read(file).await.map_err(|source| Error::ReadRoot {
                    path: file.display().to_string(),
                    source,
                })?;
                TrustedRoot::from_json(&json).map_err(Error::Trust)
            }
            // Whoever comes while it is refreshed waits for it, and does not ask again.
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

/// The files of the repository, over HTTP.
struct Remote {
    url: Url,
    client: reqwest::Client,
}

impl Remote {
    fn new(url: &Url, clients: &Clients) -> Result<Self, String> {
        let mut url = url.clone();
        // What is joined takes the place of the last part, unless a slash ends it.
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
            // Stores of objects answer 403 for what is not there.
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
