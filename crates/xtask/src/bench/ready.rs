//! Waiting for many objects with one watch.

use std::collections::BTreeSet;
use std::pin::pin;

use anyhow::{Result, bail};
use futures::StreamExt as _;
use kube::Api;
use kube::api::DynamicObject;
use kube::runtime::watcher;
use testkit::objects;

/// Returns when `count` objects of `api` have been Ready.
pub async fn all_ready(api: Api<DynamicObject>, count: usize) -> Result<()> {
    let mut ready = BTreeSet::new();
    let mut events = pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        if let watcher::Event::Apply(object) | watcher::Event::InitApply(object) = event?
            && objects::is_ready(&object)
        {
            ready.insert(object.metadata.name);
        }
        if ready.len() == count {
            return Ok(());
        }
    }
    bail!("the watch ended")
}
