//! The frame around a reconcile of a kind that has no objects of its own in the cluster, and how its end is recorded: a status
//! patch, events in the background, log lines.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use api::meta::{HasConditions, StatusObject, condition_types, reasons};
use jiff::Timestamp;
use kube::Client;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::conditions::{self, Fact};
use crate::events::{Recorder, Severity};
use crate::metrics::Metrics;
use crate::queue::Outcome;
use crate::runtime::{Cache, requested_at};
use crate::{ObjectKey, finalizer, status};

/// A kind that a controller reconciles and writes a status of.
pub trait Kind:
    StatusObject
    + HasStatus<Status: HasConditions + Clone + Default + PartialEq + Serialize>
    + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: StatusObject
        + HasStatus<Status: HasConditions + Clone + Default + PartialEq + Serialize>
        + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// How one kind is recorded.
#[derive(Clone)]
pub struct Writer<K: Kind> {
    /// The connection to the API server.
    pub client: Client,
    /// All objects of the kind, with our own newest writes.
    pub cache: Cache<K>,
    /// Publishes events.
    pub recorder: Recorder,
    /// Metrics.
    pub metrics: Metrics,
    /// Field manager of what is written.
    pub manager: &'static str,
}

/// The API server did not take what was concluded.
#[derive(Debug, thiserror::Error)]
pub enum Unrecorded {
    /// The status.
    #[error(transparent)]
    Status(#[from] status::Error),
    /// The finalizer.
    #[error(transparent)]
    Finalizer(#[from] finalizer::Error),
}

impl Unrecorded {
    /// Returns whether the object is gone.
    fn is_gone(&self) -> bool {
        matches!(self, Self::Status(error) if error.is_not_found())
    }
}

impl<K: Kind> Writer<K> {
    /// Reconciles an object: `forget` when it is gone or about to go, with it if it is still there, and `work` unless it is
    /// suspended.
    pub async fn reconcile<F>(
        &self,
        key: &ObjectKey,
        forget: impl FnOnce(Option<&K>),
        work: impl FnOnce(Arc<K>) -> F,
    ) -> Outcome
    where
        F: Future<Output = Result<Outcome, Unrecorded>>,
    {
        let (kind, began) = (K::kind(&()), Instant::now());
        let Some(object) = self.cache.get(&key.object_ref()) else {
            forget(None);
            self.metrics.forget_object(&kind, &key.namespace, &key.name);
            return Outcome::Done;
        };
        let ended = async {
            if object.meta().deletion_timestamp.is_some() {
                forget(Some(&object));
                finalizer::remove(&self.client, &*object, self.manager).await?;
                return Ok(Outcome::Done);
            }
            let object = match finalizer::add(&self.client, &*object, self.manager).await? {
                Some(changed) => {
                    self.cache.remember(changed.clone());
                    Arc::new(changed)
                }
                None => object,
            };
            if object.suspended() {
                return Ok(Outcome::Done);
            }
            work(object).await
        };
        let ended = ended.await;
        self.metrics
            .observe_reconcile(&kind, &key.namespace, &key.name, began.elapsed());
        ended.unwrap_or_else(|error: Unrecorded| {
            if error.is_gone() {
                return Outcome::Done;
            }
            tracing::error!(
                error = error_chain::chain(&error),
                "failed to record the reconcile"
            );
            Outcome::Backoff
        })
    }

    /// Records a failure.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn fail(
        &self,
        object: Arc<K>,
        failed: Failed<<K as HasStatus>::Status>,
    ) -> Result<Outcome, Unrecorded> {
        let object = self.write(object, &failed.status).await?;
        self.publish(&object, Severity::Error, failed.reason, &failed.message);
        Ok(match failed.is_final {
            true => Outcome::Terminal,
            false => Outcome::Backoff,
        })
    }

    /// Writes the status if it differs. Returns the object as it is then.
    ///
    /// # Errors
    /// When the API server does not take it.
    pub async fn write(
        &self,
        object: Arc<K>,
        new: &<K as HasStatus>::Status,
    ) -> Result<Arc<K>, status::Error> {
        let patched = status::patch_status(&self.client, &*object, new, self.manager).await?;
        Ok(match patched {
            Some(answer) => {
                self.cache.remember(answer.clone());
                Arc::new(answer)
            }
            None => object,
        })
    }

    /// Publishes an event, and logs it. Logs name the object through the span of the reconcile.
    pub fn publish(&self, object: &K, severity: Severity, reason: &str, message: &str) {
        self.publish_with(object, severity, reason, message, BTreeMap::new());
    }

    /// Publishes an event with metadata, and logs it.
    pub fn publish_with(
        &self,
        object: &K,
        severity: Severity,
        reason: &str,
        message: &str,
        metadata: BTreeMap<String, String>,
    ) {
        match severity {
            Severity::Error => tracing::error!(reason, error = message, "failed to reconcile"),
            Severity::Trace | Severity::Info => tracing::info!("{message}"),
        }
        self.recorder.publish(object, severity, reason, message, metadata);
    }
}

/// A failure as it is written.
pub struct Failed<S> {
    /// The status that says so.
    pub status: S,
    /// Reason of the condition and the event.
    pub reason: &'static str,
    /// Message of both.
    pub message: String,
    /// Only a change of the object helps.
    pub is_final: bool,
}

impl<S: HasConditions> Failed<S> {
    /// What was concluded before stays in the status beside the failure.
    pub fn new<K>(
        object: &K,
        error: &dyn std::error::Error,
        (reason, is_final): (&'static str, bool),
        now: Timestamp,
    ) -> Self
    where
        K: Kind + HasStatus<Status = S>,
        S: Clone + Default,
    {
        let mut status = begun(object);
        let generation = object.meta().generation.unwrap_or_default();
        let message = error_chain::chain(error);
        let conditions = status.conditions_mut();
        let ready = Fact::does_not_hold(condition_types::READY, reason, &*message);
        conditions::set(conditions, ready, generation, now);
        if is_final {
            let stalled = Fact::holds(condition_types::STALLED, reason, &*message);
            conditions::set(conditions, stalled, generation, now);
            conditions::remove(conditions, condition_types::RECONCILING);
            status.set_observed_generation(generation);
        } else {
            let again = Fact::holds(
                condition_types::RECONCILING,
                reasons::PROGRESSING_WITH_RETRY,
                &*message,
            );
            conditions::set(conditions, again, generation, now);
            conditions::remove(conditions, condition_types::STALLED);
        }
        Self {
            status,
            reason,
            message,
            is_final,
        }
    }
}

/// The status so far, with the request that is being handled.
pub fn begun<K: Kind>(object: &K) -> <K as HasStatus>::Status {
    let mut status = object.status().cloned().unwrap_or_default();
    if let Some(requested) = requested_at(object) {
        status.set_last_handled_reconcile_at(requested);
    }
    status
}

/// The status after success, for the kind to put its results into.
pub fn succeeded<K: Kind>(object: &K, message: &str, now: Timestamp) -> <K as HasStatus>::Status {
    let mut status = begun(object);
    let generation = object.meta().generation.unwrap_or_default();
    let conditions = status.conditions_mut();
    let ready = Fact::holds(condition_types::READY, reasons::SUCCEEDED, message);
    conditions::set(conditions, ready, generation, now);
    conditions::remove(conditions, condition_types::RECONCILING);
    conditions::remove(conditions, condition_types::STALLED);
    status.set_observed_generation(generation);
    status
}
