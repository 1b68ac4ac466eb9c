//! Tells that an object may have changed, so that it need not be asked for again and again.

use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use kube::api::DynamicObject;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::runtime::watcher::{Config, Event, Result};
use kube::{Api, Client};
use kube_apply::Address;

/// How long who may not watch waits before asking again: as long as Helm.
const PAUSE: Duration = Duration::from_secs(2);
/// Changes come in bursts, and each look costs requests.
const BURST: Duration = Duration::from_millis(250);

/// A watch on the metadata of one object.
pub(super) struct Changes {
    events: BoxStream<'static, Result<Event<PartialObjectMeta<DynamicObject>>>>,
}

impl Changes {
    /// Watches as `client`.
    pub(super) fn new(client: &Client, at: &Address) -> Self {
        let api: Api<PartialObjectMeta<DynamicObject>> = if at.namespace.is_empty() {
            Api::all_with(client.clone(), &at.resource.api)
        } else {
            Api::namespaced_with(client.clone(), &at.namespace, &at.resource.api)
        };
        let config = Config::default().fields(&format!("metadata.name={}", at.name));
        Self {
            events: watcher(api, config).boxed(),
        }
    }

    /// Waits until the object has changed since the last call, as far as can be told.
    pub(super) async fn next(&mut self) {
        let pause = loop {
            match self.events.next().await {
                // What changed before the watch began is seen by whoever looks now.
                Some(Ok(Event::Apply(_) | Event::Delete(_) | Event::InitDone)) => break BURST,
                Some(Ok(Event::Init | Event::InitApply(_))) => {}
                Some(Err(_)) | None => break PAUSE,
            }
        };
        tokio::time::sleep(pause).await;
        while let Some(Some(Ok(_))) = self.events.next().now_or_never() {}
    }
}
