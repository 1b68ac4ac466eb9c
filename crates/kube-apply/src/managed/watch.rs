//! The watch of one kind: lists, follows and feeds the index, and comes back after trouble.
//!
//! Only metadata is asked for, only of objects that wear the owner label, and each object is reduced while its JSON is
//! parsed. A kind that may not be watched, or is gone, is given up for a while and tried again ever more slowly.

use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kube::runtime::watcher::{self, Event, InitialListStrategy};
use kube::{Api, Client};
use tokio::task::AbortHandle;

use super::Inner;
use crate::fingerprint::{Facts, Glimpse};
use crate::mapper::Resource;

/// Objects per page of a list; a page is the most that is held in memory at once.
const PAGE: u32 = 50;

/// Pauses after trouble: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Errors in a row after which the watch counts as lost, and is started from a new list.
const PATIENCE: u32 = 5;

/// Starts the watch.
pub(super) fn spawn(inner: Weak<Inner>, client: Client, kind: Arc<Resource>) -> AbortHandle {
    tokio::spawn(run(inner, client, kind)).abort_handle()
}

async fn run(inner: Weak<Inner>, client: Client, kind: Arc<Resource>) {
    let Some(label) = inner.upgrade().map(|inner| inner.settings.name_label()) else {
        return;
    };
    let api = Api::<Glimpse>::all_with(client, &kind.api);
    let (mut config, mut pause) = (streaming(&label), PAUSES.0);
    loop {
        let mut events = pin!(watcher::watcher(api.clone(), config.clone()));
        let mut failures = 0;
        while let Some(event) = events.next().await {
            let Some(inner) = inner.upgrade() else { return };
            let error = match event {
                Ok(event) => {
                    // A list that fails begins well, too.
                    if !matches!(event, Event::Init | Event::InitApply(_)) {
                        (failures, pause) = (0, PAUSES.0);
                    }
                    take_in(&inner, &kind, event);
                    continue;
                }
                Err(error) => error,
            };
            if config.initial_list_strategy == InitialListStrategy::StreamingList && cannot_stream(&error) {
                config = paged(&label);
                break;
            }
            failures += 1;
            let lost = failures >= PATIENCE || will_not_heal_by_itself(&error);
            if lost {
                give_up(&inner, &kind, &error);
            }
            drop(inner);
            tokio::time::sleep(pause).await;
            pause = PAUSES.1.min(pause * 2);
            if lost {
                break;
            }
        }
    }
}

/// Has the first list come one object at a time, in the same request as the watch.
fn streaming(label: &str) -> watcher::Config {
    watcher::Config::default().labels(label).streaming_lists()
}

/// Lists in pages first, for servers before Kubernetes 1.34 or without the feature WatchList.
fn paged(label: &str) -> watcher::Config {
    watcher::Config {
        page_size: Some(PAGE),
        ..watcher::Config::default().labels(label)
    }
}

/// The server does not know `sendInitialEvents`, or forbids it.
fn cannot_stream(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::WatchStartFailed(kube::Error::Api(status)) if matches!(status.code, 400 | 422))
}

fn give_up(inner: &Inner, kind: &Resource, error: &watcher::Error) {
    tracing::warn!(kind = %kind.api.kind, group = %kind.api.group, error = %Cause(error),
        "managed objects of this kind cannot be watched; they are applied anew at each reconcile");
    inner.index().lose(&kind.api.group, &kind.api.kind);
}

fn take_in(inner: &Arc<Inner>, kind: &Resource, event: Event<Glimpse>) {
    let (group, name) = (kind.api.group.as_str(), kind.api.kind.as_str());
    let now = Instant::now();
    // The guard must be gone before drift is told: telling locks the index again.
    let due = {
        let mut index = inner.index();
        match event {
            Event::Init => {
                index.relist_begins(group, name);
                Vec::new()
            }
            Event::InitDone => index.relist_ends(group, name, now),
            Event::InitApply(seen) | Event::Apply(seen) => {
                let ignored = index.ignored((group, name), seen.namespace(), seen.name());
                let facts = Facts::of_all_but(&seen, &inner.settings, ignored.as_deref());
                index
                    .observe((group, name), seen.namespace(), seen.name(), facts, now)
                    .into_iter()
                    .collect()
            }
            Event::Delete(seen) => {
                let version = seen.resource_version().and_then(|v| v.parse().ok());
                index
                    .vanish((group, name), seen.namespace(), seen.name(), version, now)
                    .into_iter()
                    .collect()
            }
        }
    };
    due.into_iter().for_each(|due| inner.notify(Some(due)));
}

/// Permission is missing, or the kind is gone: neither changes because the same request is sent again soon.
fn will_not_heal_by_itself(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => {
            matches!(status.code, 401 | 403 | 404 | 405)
        }
        watcher::Error::NoResourceVersion => true,
        _ => false,
    }
}

/// Prints the innermost message: kube's repeat their source.
struct Cause<'a>(&'a watcher::Error);

impl std::fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut error: &dyn std::error::Error = self.0;
        while let Some(source) = error.source() {
            error = source;
        }
        std::fmt::Display::fmt(error, f)
    }
}
