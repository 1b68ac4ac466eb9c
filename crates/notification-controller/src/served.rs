//! Which of the kinds that events are about the cluster serves, by watching definitions.
//!
//! A kind without a definition is neither watched nor annotated; it is as soon as its definition comes. Where definitions
//! may not be watched (a controller of one namespace), all kinds count as served, and a watch that fails is tried again.

use std::collections::HashSet;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt as _};
use tokio::sync::watch;
use tokio::time::sleep;

use crate::kinds;

/// The names of the definitions that are there; None if that is not known.
type Definitions = Option<HashSet<String>>;

/// How long those who begin wait for the first list.
const FIRST_LIST: Duration = Duration::from_secs(2);

/// Pauses after trouble: the first, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// Tells which kinds are served, and of changes.
#[derive(Debug, Clone)]
pub struct Served(watch::Receiver<Definitions>);

impl Served {
    /// Watches definitions as long as the future is polled. Nothing is known before the first list.
    pub fn watch(client: Client) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, receiver) = watch::channel(None);
        (Self(receiver), follow(client, sender))
    }

    /// All kinds, for tests.
    #[cfg(test)]
    pub fn all() -> Self {
        Self(watch::channel(None).1)
    }

    /// These definitions and no others, for tests.
    #[cfg(test)]
    pub fn only(definitions: &[&str]) -> Self {
        let definitions = definitions.iter().map(|&name| name.to_owned()).collect();
        Self(watch::channel(Some(definitions)).1)
    }

    /// Returns whether the kind, by its plural and its group, is served. Kinds that are none of ours count as served.
    pub fn serves(&self, plural: &str, group: &str) -> bool {
        let name = format!("{plural}.{group}");
        let is_there = |definitions: &HashSet<String>| definitions.contains(&name);
        !kinds::is_definition(&name) || self.0.borrow().as_ref().is_none_or(is_there)
    }

    /// Waits until it is known what is served, but not for long.
    pub async fn settle(&mut self) {
        let _ = tokio::time::timeout(FIRST_LIST, self.0.wait_for(Option::is_some)).await;
    }

    /// Comes when something was installed or removed. Never, once no one watches.
    pub async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            futures::future::pending::<()>().await;
        }
    }
}

/// The reason of conditions and events about kinds that are not served.
pub const REASON: &str = "KindNotServed";

/// Message for a kind without a definition.
pub fn missing(kind: &str, group: &str) -> String {
    format!(
        "kind {kind} of {group} is not served by this cluster; it is waited for until its definition is installed"
    )
}

async fn follow(client: Client, definitions: watch::Sender<Definitions>) {
    let api: Api<PartialObjectMeta<CustomResourceDefinition>> = Api::all(client);
    let mut events = watcher(api, watcher::Config::default()).boxed();
    let (mut pause, mut listed) = (PAUSES.0, HashSet::new());
    while let Some(event) = events.next().await {
        let name_of =
            |object: &PartialObjectMeta<_>| Some(object.name_any()).filter(|name| kinds::is_definition(name));
        match event {
            Ok(watcher::Event::Init) => listed.clear(),
            Ok(watcher::Event::InitApply(object)) => listed.extend(name_of(&object)),
            Ok(watcher::Event::InitDone) => {
                pause = PAUSES.0;
                set(&definitions, std::mem::take(&mut listed));
            }
            Ok(watcher::Event::Apply(object)) => change(&definitions, name_of(&object), HashSet::insert),
            Ok(watcher::Event::Delete(object)) => {
                change(&definitions, name_of(&object), |set, name| set.remove(&name));
            }
            Err(error) => {
                tracing::debug!(%error, "failed to watch definitions");
                sleep(pause).await;
                pause = PAUSES.1.min(pause * 2);
            }
        }
    }
}

fn set(definitions: &watch::Sender<Definitions>, listed: HashSet<String>) {
    definitions.send_if_modified(|before| {
        let is_new = before.as_ref() != Some(&listed);
        *before = Some(listed);
        is_new
    });
}

fn change(
    definitions: &watch::Sender<Definitions>,
    name: Option<String>,
    change: impl FnOnce(&mut HashSet<String>, String) -> bool,
) {
    let Some(name) = name else { return };
    definitions.send_if_modified(|known| known.as_mut().is_some_and(|known| change(known, name)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_served_if_its_definition_is_there_or_nothing_is_known() {
        let some = Served::only(&["buckets.source.toolkit.fluxcd.io"]);
        assert!(some.serves("buckets", "source.toolkit.fluxcd.io"));
        assert!(!some.serves("imagepolicies", "image.toolkit.fluxcd.io"));
        // What is none of ours is found out by asking.
        assert!(some.serves("things", "example.com"));
        assert!(Served::all().serves("imagepolicies", "image.toolkit.fluxcd.io"));
    }
}
