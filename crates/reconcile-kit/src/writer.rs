//! Writes to an object: its finalizer, its status, and events about it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use api::meta::{Delivers, RECONCILE_REQUEST_ANNOTATION};
use controller_kit::events::Severity;
use controller_kit::{finalizer, status};
use jiff::Timestamp;
use kube::core::NamespaceResourceScope;
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::base::Base;

/// Frame of a report: the request and generation that it acknowledges.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// `metadata.generation`.
    pub generation: i64,
    /// Value of `reconcile.fluxcd.io/requestedAt`.
    pub requested_at: Option<&'a str>,
    /// The time.
    pub now: Timestamp,
}

/// Writes about one object, each time from the newest version of it.
pub struct Writer<'a, K: Resource<DynamicType = ()> + Clone + 'static> {
    base: &'a Base<K>,
    object: Arc<K>,
    /// The request that the object had when it was observed. One that came since is left for the next run.
    requested_at: Option<String>,
}

impl<'a, K> Writer<'a, K>
where
    K: Delivers + Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + 'static,
    K::Status: Serialize,
{
    /// Starts from the object as it was observed.
    pub fn new(base: &'a Base<K>, object: Arc<K>) -> Self {
        let requested_at = object.annotations().get(RECONCILE_REQUEST_ANNOTATION).cloned();
        Self {
            base,
            object,
            requested_at,
        }
    }

    /// Returns the object as it was written last.
    pub fn object(&self) -> &Arc<K> {
        &self.object
    }

    /// Returns what the next report acknowledges.
    pub fn frame(&self) -> Frame<'_> {
        Frame {
            generation: self.object.meta().generation.unwrap_or_default(),
            requested_at: self.requested_at.as_deref(),
            now: Timestamp::now(),
        }
    }

    /// Returns whether the object has our finalizer.
    pub fn has_finalizer(&self) -> bool {
        finalizer::is_set(&*self.object)
    }

    /// Adds our finalizer, if it is not there.
    pub async fn ensure_finalizer(&mut self) -> Result<(), finalizer::Error> {
        if self.has_finalizer() {
            return Ok(());
        }
        let changed = finalizer::add(&self.base.client, &*self.object, self.base.manager).await?;
        self.advance(changed);
        Ok(())
    }

    /// Removes our finalizer; the object goes when it was the last.
    pub async fn remove_finalizer(&self) -> Result<(), finalizer::Error> {
        finalizer::remove(&self.base.client, &*self.object, self.base.manager)
            .await
            .map(drop)
    }

    /// Writes a status. Returns whether it differed; `written` is called with the object as it was before, if it did.
    pub async fn write(&mut self, next: &K::Status, written: impl FnOnce(&K)) -> Result<bool, status::Error> {
        match status::patch_status(&self.base.client, &*self.object, next, self.base.manager).await {
            Ok(changed) => {
                let differed = changed.is_some();
                if differed {
                    written(&self.object);
                }
                self.advance(changed);
                Ok(differed)
            }
            // The object is gone; there is no one left to tell.
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Publishes an event about the object.
    pub fn event(
        &self,
        severity: Severity,
        reason: &str,
        message: &str,
        annotations: BTreeMap<String, String>,
    ) {
        self.base
            .events
            .publish(&*self.object, severity, reason, message, annotations);
    }

    /// Goes on from the answer to our own write, which is newer than what the watch has seen.
    fn advance(&mut self, changed: Option<K>) {
        if let Some(changed) = changed {
            self.object = Arc::new(changed.clone());
            self.base.objects.remember(changed);
        }
    }
}
