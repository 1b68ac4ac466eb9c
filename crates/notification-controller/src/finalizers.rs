//! Takes the finalizer of older controllers off Alerts and Providers: there is nothing to be done when one is deleted.

use std::fmt::Debug;

use controller_kit::events::{Recorder, Severity};
use controller_kit::finalizer;
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

use crate::flags;

/// Takes the finalizer off an object, unless it is suspended and is to stay.
pub async fn release<K>(client: &Client, events: &Recorder, object: &K, is_suspended: bool)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let is_deleted = object.meta().deletion_timestamp.is_some();
    if !finalizer::is_set(object) || (is_suspended && !is_deleted) {
        return;
    }
    let kind = K::kind(&());
    match finalizer::remove(client, object, flags::NAME).await {
        Ok(Some(_)) if !is_deleted => {
            let message = format!("removed finalizer from {kind} to migrate to static {kind}");
            events.publish(object, Severity::Info, "Migration", &message, Default::default());
        }
        Ok(_) => {}
        Err(error) => {
            let error = format!("{:#}", anyhow::Error::new(error));
            tracing::error!(%kind, name = object.name_any(), namespace = object.namespace(), error, "failed to remove the finalizer");
        }
    }
}
