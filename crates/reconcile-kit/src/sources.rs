//! The sources that deliveries are made of: which of their changes matter.

use std::fmt::Debug;

use api::meta::{Artifact, HasConditions, condition_types};
use api::source::Source;
use controller_kit::access_from;
use controller_kit::flags::WatchFlags;
use controller_kit::runtime::{scoped_api, watch_changes};
use futures::Stream;
use kube::core::NamespaceResourceScope;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde::de::DeserializeOwned;

/// Facts about a source: its artifact, or why it has none, and who may refer to it.
#[derive(PartialEq)]
struct Facts {
    /// Revision, digest and address.
    artifact: Option<(String, String, String)>,
    access_from: Option<String>,
    /// Whether its controller has seen its newest spec, and what stands in the way of the artifact.
    state: (bool, Option<String>),
    generation: Option<i64>,
    is_deleted: bool,
}

impl Facts {
    fn from_source<K: Source>(source: &K) -> Self {
        let artifact = source.artifact().map(|artifact: &Artifact| {
            let Artifact {
                revision,
                digest,
                url,
                ..
            } = artifact;
            (revision.clone(), digest.clone(), url.clone())
        });
        let observed = source.status().and_then(HasConditions::observed_generation);
        let is_current = observed == source.meta().generation;
        let stalled = source
            .condition(condition_types::STALLED)
            .filter(|stalled| stalled.status == "True");
        let unready = source
            .condition(condition_types::READY)
            .filter(|ready| ready.status == "False" && (artifact.is_none() || !is_current));
        let trouble = stalled.or(unready).map(|condition| condition.message.clone());
        Self {
            artifact,
            access_from: source.annotations().get(access_from::ANNOTATION).cloned(),
            state: (is_current, trouble),
            generation: source.meta().generation,
            is_deleted: source.meta().deletion_timestamp.is_some(),
        }
    }
}

/// Watches the sources of a kind: a store of them, and those that changed in a way that matters.
pub fn watch<K>(
    client: &Client,
    flags: &WatchFlags,
) -> (Store<K>, impl Stream<Item = ObjectRef<K>> + Send + use<K>)
where
    K: Source + kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    K: Clone + Debug + DeserializeOwned + Send + Sync + 'static,
{
    watch_changes(scoped_api(client, flags), watcher::Config::default(), |source| {
        Some(Facts::from_source(source))
    })
}
