//! The ConfigMaps and Secrets that specs refer to.

use std::fmt::Debug;

use controller_kit::ObjectKey;
use futures::StreamExt as _;
use kube::Api;
use kube::core::PartialObjectMeta;
use kube::runtime::{WatchStreamExt as _, watcher};
use serde::de::DeserializeOwned;

/// Calls `touched` for each ConfigMap or Secret with these labels that is made, changed or deleted; without labels, never. Only
/// metadata is watched, and none of it kept: whether a value changed is found out by the run.
pub async fn follow<K>(api: Api<PartialObjectMeta<K>>, labels: Option<String>, touched: impl Fn(ObjectKey))
where
    K: kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let Some(labels) = labels else {
        return futures::future::pending().await;
    };
    let changes = watcher(api, watcher::Config::default().labels(&labels)).default_backoff();
    let mut changes = std::pin::pin!(changes.touched_objects());
    while let Some(object) = changes.next().await {
        match object {
            Ok(object) => touched(ObjectKey::from_object(&object)),
            Err(error) => tracing::warn!(%error, kind = &*K::kind(&()), "failed to watch"),
        }
    }
}
