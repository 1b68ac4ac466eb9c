//! Memory of Helm repositories between two fetches: the validators with which servers can answer that nothing
//! changed.
//!
//! In memory only: after a restart each index is fetched once in full, and found to be the stored one by its digest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use artifact::digest::Digest;
use artifact::store::ObjectKey;
use reqwest::header::{ETAG, HeaderMap, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use tokio::sync::broadcast;

use super::limits::Limits;
use crate::metrics::IndexCache;

/// More repositories than this are not remembered.
const MAX_REPOSITORIES: usize = 10_000;
/// Longer validators are not kept.
const MAX_VALIDATOR: usize = 1 << 10;
/// Repositories that a listener may be behind.
const REFRESHED: usize = 256;

/// Shared by all that fetch from Helm repositories.
#[derive(Clone)]
pub(crate) struct Memory {
    pub(crate) limits: Limits,
    validators: Arc<Mutex<HashMap<ObjectKey, (String, Validators)>>>,
    /// When each repository was asked last and answered.
    checked: Arc<Mutex<HashMap<ObjectKey, Instant>>>,
    refreshed: broadcast::Sender<ObjectKey>,
    /// How often what is kept was enough.
    pub(crate) cache: IndexCache,
}

/// Validators of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    etag: Option<HeaderValue>,
    last_modified: Option<HeaderValue>,
    /// Its content.
    pub(crate) revision: Option<Digest>,
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            validators: Arc::default(),
            checked: Arc::default(),
            refreshed: broadcast::channel(REFRESHED).0,
            cache: IndexCache::default(),
        }
    }
}

impl Memory {
    /// Returns the known validators of the index at this address, if it is at this revision.
    pub(crate) fn recall(&self, key: &ObjectKey, url: &str, revision: &Digest) -> Validators {
        let validators = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        let known = validators
            .get(key)
            .filter(|(of, known)| of == url && known.revision == Some(*revision));
        known.map_or_else(
            || Validators {
                revision: Some(*revision),
                ..Validators::default()
            },
            |(_, known)| known.clone(),
        )
    }

    /// Remembers an index that is stored.
    pub(crate) fn remember(&self, key: ObjectKey, url: String, validators: Validators) {
        let mut all = self.validators.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_REPOSITORIES {
            all.clear();
        }
        all.insert(key, (url, validators));
    }

    /// Notes that a repository said what its index is.
    pub(crate) fn note_check(&self, key: ObjectKey) {
        let mut all = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_REPOSITORIES {
            all.clear();
        }
        all.insert(key, Instant::now());
    }

    /// Returns whether that was within this time.
    pub(crate) fn was_checked(&self, key: &ObjectKey, within: Duration) -> bool {
        let all = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(key).is_some_and(|then| then.elapsed() < within)
    }

    /// Says that the index of a repository was fetched for a chart, so that its status is behind.
    pub(crate) fn tell_of_refresh(&self, key: ObjectKey) {
        let _ = self.refreshed.send(key); // nobody may listen
    }

    /// The repositories whose index was fetched for a chart, from now on.
    pub(crate) fn refreshed(&self) -> broadcast::Receiver<ObjectKey> {
        self.refreshed.subscribe()
    }
}

impl Validators {
    pub(super) fn from_headers(headers: &HeaderMap) -> Self {
        let value = |name| {
            let value: Option<&HeaderValue> = headers.get(name);
            value.filter(|value| value.len() <= MAX_VALIDATOR).cloned()
        };
        Self {
            etag: value(ETAG),
            last_modified: value(LAST_MODIFIED),
            revision: None,
        }
    }

    /// The conditions of a request.
    pub(super) fn headers(&self) -> HeaderMap {
        let conditions = [
            (IF_NONE_MATCH, &self.etag),
            (IF_MODIFIED_SINCE, &self.last_modified),
        ];
        conditions
            .into_iter()
            .filter_map(|(name, value)| Some((name, value.clone()?)))
            .collect()
    }
}
