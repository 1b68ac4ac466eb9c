//! Record: tells the API server what was concluded: at most one status patch, events in the background, log lines.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;

use api::meta::{HasConditions, StatusObject};
use controller_kit::events::{Recorder, Severity};
use controller_kit::runtime::Cache;
use controller_kit::status;
use kube::Client;
use kube::core::NamespaceResourceScope;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A kind of images.
pub(crate) trait Kind:
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

impl Kind for api::image::ImageRepository {}
impl Kind for api::image::ImagePolicy {}
impl Kind for api::image::ImageUpdateAutomation {}

/// How one kind is recorded.
#[derive(Clone)]
pub(crate) struct Writer<K: Kind> {
    pub(crate) client: Client,
    pub(crate) cache: Cache<K>,
    pub(crate) recorder: Recorder,
    /// Name of Flux's controller of the kind.
    pub(crate) manager: &'static str,
}

impl<K: Kind> Writer<K> {
    /// Writes the status if it differs. Returns the object as it is then.
    pub(crate) async fn write(
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
    pub(crate) fn publish(&self, object: &K, severity: Severity, reason: &str, message: &str) {
        match severity {
            Severity::Error => tracing::error!(reason, error = message, "failed to reconcile"),
            Severity::Trace | Severity::Info => tracing::info!("{message}"),
        }
        self.recorder
            .publish(object, severity, reason, message, BTreeMap::new());
    }
}
