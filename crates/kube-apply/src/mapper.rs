//! Resolves kinds: which URL an object has, and whether it lives in a namespace.
//!
//! One document for all groups (aggregated discovery, two requests) is read at first use, reduced to a [`Catalog`], and
//! shared by all reconciles. It is read again when someone asks for a kind that is not in it: once for all who ask at
//! the same time, and not again for the same kind within a few seconds, so that a manifest with a misspelt kind costs
//! nothing. Kinds that this process itself defined by applying a CRD are [learnt](RestMapper::learn) without a request.

mod capabilities;
mod catalog;
mod definition;
mod resource;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::Request;
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;
use manifest::GroupVersionKind;

use catalog::{Catalog, Document};
pub use definition::{Definition, definition};

pub use resource::Resource;

/// Why a kind could not be resolved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The server does not serve the kind in this version.
    #[error("no matches for kind {:?} in version {:?}", .0.kind, .0.api_version())]
    UnknownKind(GroupVersionKind),
    /// The server that serves the group does not answer at the moment.
    #[error("failed to discover API group {0:?}: its server does not answer")]
    StaleGroup(String),
    /// The list of kinds could not be read.
    #[error("failed to discover the kinds of the API server")]
    Discover(#[source] Arc<kube::Error>),
}

/// A kind that was not found is not asked for again within this time.
const UNKNOWN_FOR: Duration = Duration::from_secs(3);

/// At most so many kinds are remembered as unknown; kind names come from tenants.
const UNKNOWN_KINDS: usize = 1024;

/// Resolves kinds for all reconciles of a process.
pub struct RestMapper {
    client: Client,
    state: Mutex<State>,
    /// Held while the document is read, so that one request serves all who wait.
    reading: tokio::sync::Mutex<()>,
    version: tokio::sync::Mutex<Option<(Instant, Arc<Info>)>>,
}

#[derive(Default)]
struct State {
    catalog: Catalog,
    /// When the last successful read began; None when the catalog is to be read before it is believed.
    read_at: Option<Instant>,
    unknown: HashMap<GroupVersionKind, Instant>,
}

impl RestMapper {
    /// Makes a mapper that has read nothing yet.
    pub fn new(client: Client) -> Self {
        Self {
            client,
            state: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            version: tokio::sync::Mutex::default(),
        }
    }

    /// Resolves a kind in exactly the version asked for.
    pub async fn resolve(&self, gvk: &GroupVersionKind) -> Result<Arc<Resource>, Error> {
        let asked = Instant::now();
        if let Some(found) = self.known(gvk) {
            return Ok(found);
        }
        if self.is_known_to_be_unknown(gvk, asked) {
            return Err(self.missing(gvk));
        }
        // A read that began before the question may be older than the kind.
        let is_answered = |state: &State| {
            state
                .read_at
                .is_some_and(|began| began >= asked || state.catalog.get(gvk).is_some())
        };
        self.read_unless(is_answered).await?;
        self.known(gvk).ok_or_else(|| {
            self.remember_unknown(gvk);
            self.missing(gvk)
        })
    }

    /// Resolves a kind if it is served already. Does not look again for one that is not: the caller knows that it is
    /// about to be defined.
    pub async fn resolve_known(&self, gvk: &GroupVersionKind) -> Result<Option<Arc<Resource>>, Error> {
        if self.state().read_at.is_none() {
            self.read_unless(|state| state.read_at.is_some()).await?;
        }
        Ok(self.known(gvk))
    }

    /// Resolves a kind in the version given or, when that is gone, in any version that is served. `Ok(None)` means that
    /// the server answered for the whole group and does not know the kind, so that no object of it exists.
    pub async fn resolve_any_version(&self, gvk: &GroupVersionKind) -> Result<Option<Arc<Resource>>, Error> {
        match self.resolve(gvk).await {
            Ok(found) => Ok(Some(found)),
            Err(Error::UnknownKind(_)) => Ok(self.state().catalog.any_version(&gvk.group, &gvk.kind)),
            Err(other) => Err(other),
        }
    }

    /// Returns a kind in any version that was served when the kinds were read last, without asking.
    pub(crate) fn known_in_any_version(&self, group: &str, kind: &str) -> Option<Arc<Resource>> {
        self.state().catalog.any_version(group, kind)
    }

    /// Looks again for a kind, in any version, when a request found that it is not served. `Ok(None)` as in
    /// [`resolve_any_version`](Self::resolve_any_version).
    pub async fn look_again(&self, gvk: &GroupVersionKind) -> Result<Option<Arc<Resource>>, Error> {
        let asked = Instant::now();
        let is_newer = |state: &State| state.read_at.is_some_and(|began| began >= asked);
        self.read_unless(is_newer).await?;
        self.resolve_any_version(gvk).await
    }

    /// Reads the kinds anew, and returns those whose objects can be listed, each in its preferred version.
    pub async fn listable(&self) -> Result<Vec<Arc<Resource>>, Error> {
        self.read_unless(|_| false).await?;
        Ok(self.state().catalog.listable())
    }

    /// Adds the kind that an accepted CRD defines, so that its objects need no new discovery.
    pub fn learn(&self, definition: &Definition) {
        let mut state = self.state();
        for version in &definition.versions {
            state.catalog.insert(definition.resource(version));
        }
        state
            .unknown
            .retain(|gvk, _| gvk.group != definition.group || gvk.kind != definition.kind);
    }

    /// Forgets what is known, after CRDs changed or when a known kind turns out to be gone.
    pub fn invalidate(&self) {
        let mut state = self.state();
        state.read_at = None;
        state.unknown.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, gvk: &GroupVersionKind) -> Option<Arc<Resource>> {
        let state = self.state();
        state.read_at.and_then(|_| state.catalog.get(gvk))
    }

    fn missing(&self, gvk: &GroupVersionKind) -> Error {
        if self.state().catalog.is_stale(&gvk.group) {
            Error::StaleGroup(gvk.group.clone())
        } else {
            Error::UnknownKind(gvk.clone())
        }
    }

    fn is_known_to_be_unknown(&self, gvk: &GroupVersionKind, now: Instant) -> bool {
        let state = self.state();
        state.read_at.is_some()
            && state
                .unknown
                .get(gvk)
                .is_some_and(|at| now.duration_since(*at) < UNKNOWN_FOR)
    }

    fn remember_unknown(&self, gvk: &GroupVersionKind) {
        let mut state = self.state();
        let now = Instant::now();
        if state.unknown.len() >= UNKNOWN_KINDS {
            state
                .unknown
                .retain(|_, at| now.duration_since(*at) < UNKNOWN_FOR);
        }
        if state.unknown.len() < UNKNOWN_KINDS {
            state.unknown.insert(gvk.clone(), now);
        }
    }

    /// Reads the document, unless what others read while this waited is enough.
    async fn read_unless(&self, is_enough: impl Fn(&State) -> bool) -> Result<(), Error> {
        let _one_reader = self.reading.lock().await;
        if is_enough(&self.state()) {
            return Ok(());
        }
        let began = Instant::now();
        let catalog = self
            .read()
            .await
            .map_err(|error| Error::Discover(Arc::new(error)))?;
        tracing::debug!(kinds = catalog.len(), "read the kinds of the API server");
        let mut state = self.state();
        state.catalog = catalog;
        state.read_at = Some(began);
        Ok(())
    }

    async fn read(&self) -> Result<Catalog, kube::Error> {
        let mut catalog = Catalog::default();
        for path in ["/apis", "/api"] {
            let request = Request::get(path)
                .header(
                    http::header::ACCEPT,
                    kube::core::discovery::v2::ACCEPT_AGGREGATED_DISCOVERY_V2,
                )
                .body(Vec::new())
                .map_err(kube::Error::HttpError)?;
            catalog.add(self.client.request::<Document>(request).await?);
        }
        Ok(catalog)
    }
}
