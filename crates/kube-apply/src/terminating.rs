//! Waits, by watching, for the end of namespaces and definitions that are being deleted under objects of ours.
//!
//! An object cannot be made while its namespace or its kind's definition goes. What its owner also applies comes back by
//! the owner's next apply, as soon as it is gone; what others apply has to be back before that apply can succeed.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use futures::{StreamExt as _, future};
use kube::Api;
use kube::core::ApiResource;
use kube::runtime::watcher;
use manifest::{GroupVersionKind, ObjectId};

use crate::Engine;
use crate::fingerprint::Glimpse;
use crate::inventory::Inventory;

/// At most so many namespaces and definitions are watched for one owner.
const WATCHED: usize = 16;

/// Pause after a watch that failed.
const RETRY: Duration = Duration::from_secs(1);

impl Engine {
    /// Waits until what these objects failed by is gone, if it is in `own`, or else until it is back. Watches as the
    /// identity that the engine was made with, and tells nothing but that it is over. Has no limit of its own.
    pub async fn wait_for_end(&self, objects: &[ObjectId], own: &Inventory) {
        let mut needed = BTreeSet::new();
        for object in objects {
            if !object.namespace.is_empty() {
                needed.insert(("Namespace", object.namespace.clone()));
            }
            // A kind that is not served any more may be forgotten here, too.
            let definitions = own.definitions_of(&object.group).map(str::to_owned);
            for definition in self.definition_of(object).into_iter().chain(definitions) {
                needed.insert(("CustomResourceDefinition", definition));
            }
        }
        let waits = needed.into_iter().take(WATCHED).map(|(kind, name)| {
            let is_own = own.iter().any(|(id, _)| id.kind == kind && id.name == name);
            self.end_of(kind, name, is_own)
        });
        future::join_all(waits).await;
    }

    /// The name of the definition of an object's kind, as far as it is known.
    fn definition_of(&self, object: &ObjectId) -> Option<String> {
        let known = self.mapper().known_in_any_version(&object.group, &object.kind)?;
        object
            .group
            .contains('.')
            .then(|| format!("{}.{}", known.api.plural, object.group))
    }

    async fn end_of(&self, kind: &str, name: String, is_own: bool) {
        let (api_version, plural) = match kind {
            "Namespace" => ("v1", "namespaces"),
            _ => ("apiextensions.k8s.io/v1", "customresourcedefinitions"),
        };
        let gvk = GroupVersionKind::new(api_version, kind);
        let resource = ApiResource {
            group: gvk.group,
            version: gvk.version,
            api_version: api_version.to_owned(),
            kind: gvk.kind,
            plural: plural.to_owned(),
        };
        let api: Api<Glimpse> = Api::all_with(self.managed().client().clone(), &resource);
        let mut states = pin!(watcher::watch_object(api, &name));
        while let Some(state) = states.next().await {
            match state {
                Ok(None) if is_own => return,
                Ok(None) => {}
                Ok(Some(seen)) if seen.is_terminating() => {}
                Ok(Some(_)) => return,
                Err(error) => {
                    tracing::debug!(%error, kind, name, "watching what is being deleted");
                    tokio::time::sleep(RETRY).await;
                }
            }
        }
    }
}
