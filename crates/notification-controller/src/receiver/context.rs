//! Context that reconciles and calls share.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use api::notification::Receiver;
use controller_kit::ObjectKey;
use controller_kit::events::Recorder as Events;
use controller_kit::queue::Queue;
use controller_kit::runtime::Cache;
use kube::Client;
use tokio::sync::Semaphore;
use webhook::{Evaluator, Keys};

use super::index::Index;
use super::issuers::Issuers;
use super::limit::Limiter;
use super::replay::Replays;
use crate::http_metrics::HttpMetrics;
use crate::served::Served;

/// Context that reconciles and calls share.
pub(super) struct Context {
    pub(super) client: Client,
    pub(super) receivers: Cache<Receiver>,
    pub(super) queue: Queue<ObjectKey>,
    pub(super) index: Index,
    pub(super) events: Events,
    pub(super) keys: Keys<Issuers>,
    pub(super) evaluator: Evaluator,
    /// Room for what bodies are made into.
    pub(super) values: Semaphore,
    pub(super) limiter: Limiter,
    pub(super) replays: Replays,
    pub(super) metrics: HttpMetrics,
    pub(super) no_cross_namespace_refs: bool,
    pub(super) served: Served,
    /// Changes of all Secrets are seen, so that what was read of one is true until then.
    pub(super) sees_secrets: bool,
    /// Receivers that were there at the start and are not in the index yet.
    pub(super) unread: Mutex<Option<HashSet<ObjectKey>>>,
}

impl Context {
    /// Returns whether a path that is not in the index is one of no one.
    pub(super) fn knows_all_paths(&self) -> bool {
        let unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        unread.as_ref().is_some_and(HashSet::is_empty)
    }

    /// Notes that a Receiver is in the index, or can have no path; says whether it was the last one.
    pub(super) fn note_read(&self, key: &ObjectKey) -> bool {
        let mut unread = self.unread.lock().unwrap_or_else(PoisonError::into_inner);
        match unread.as_mut() {
            Some(unread) => unread.remove(key) && unread.is_empty(),
            None => false,
        }
    }
}
