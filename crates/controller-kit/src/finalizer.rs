//! Adding and removing Flux's finalizer.
//!
//! In: an object as last seen. Out: at most one JSON patch that is guarded by a test of what it builds on, so
//! that a stale view cannot drop another's finalizer or add ours twice. When the test fails, the object is read
//! again and the patch re-created.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub use api::meta::FINALIZER;

/// Each failed test means that someone else changed the list; that many in a row are no coincidence.
const ATTEMPTS: usize = 5;

/// Error of changing the finalizer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server did not take the patch.
    #[error("failed to {action} the finalizer of {object}")]
    Patch {
        /// "add" or "remove".
        action: &'static str,
        /// Namespace and name.
        object: String,
        /// Error of the API server.
        #[source]
        source: Box<kube::Error>,
    },
    /// The object could not be read again after its finalizers had changed.
    #[error("failed to read {object} again to {action} its finalizer")]
    Read {
        /// "add" or "remove".
        action: &'static str,
        /// Namespace and name.
        object: String,
        /// Error of the API server.
        #[source]
        source: Box<kube::Error>,
    },
}

/// Adds the finalizer; gives the changed object, or None if there is nothing to do: it has the finalizer, or it
/// is being deleted (the API server takes no new finalizers then), or it is gone.
pub async fn add<K>(client: &Client, object: &K, field_manager: &str) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    add_named(client, object, FINALIZER, field_manager).await
}

/// As [`add`], for a kind with a finalizer of its own.
pub async fn add_named<K>(
    client: &Client,
    object: &K,
    finalizer: &str,
    field_manager: &str,
) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let patch = |object: &K| addition(object, finalizer);
    change(client, object, field_manager, "add", patch).await
}

/// Removes the finalizer; gives the changed object, or None if there is nothing to do.
pub async fn remove<K>(client: &Client, object: &K, field_manager: &str) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    remove_named(client, object, FINALIZER, field_manager).await
}

/// As [`remove`], for a kind with a finalizer of its own.
pub async fn remove_named<K>(
    client: &Client,
    object: &K,
    finalizer: &str,
    field_manager: &str,
) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let patch = |object: &K| removal(object, finalizer);
    change(client, object, field_manager, "remove", patch).await
}

/// Returns whether the object has the finalizer.
pub fn is_set<K: Resource>(object: &K) -> bool {
    has(object, FINALIZER)
}

/// Returns whether the object has a finalizer of this name.
pub fn has<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|other| other == finalizer)
}

async fn change<K>(
    client: &Client,
    object: &K,
    field_manager: &str,
    action: &'static str,
    patch: impl Fn(&K) -> Option<Value>,
) -> Result<Option<K>, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
{
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    let api: Api<K> = Api::namespaced(client.clone(), &namespace);
    let parameters = PatchParams {
        field_manager: Some(field_manager.to_owned()),
        ..PatchParams::default()
    };
    let mut current = object.clone();
    for attempt in 1.. {
        let Some(patch) = patch(&current) else {
            return Ok(None);
        };
        let operations = serde_json::from_value(patch).expect("the operations below are valid JSON patches");
        match api
            .patch(&name, &parameters, &Patch::Json::<()>(operations))
            .await
        {
            Ok(changed) => return Ok(Some(changed)),
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
            // 422: the test failed. 409: the object changed between the server's read and its write.
            Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) && attempt < ATTEMPTS => {}
            Err(source) => {
                let object = format!("{namespace}/{name}");
                return Err(Error::Patch {
                    action,
                    object,
                    source: Box::new(source),
                });
            }
        }
        let read = api.get_opt(&name).await.map_err(|source| {
            let object = format!("{namespace}/{name}");
            Error::Read {
                action,
                object,
                source: Box::new(source),
            }
        })?;
        match read {
            // Another object of the same name is not the one that we were asked about.
            Some(read) if read.uid() == object.uid() => current = read,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// The API server takes a test for null as a test for absence.
fn addition<K: Resource>(object: &K, finalizer: &str) -> Option<Value> {
    if has(object, finalizer) || object.meta().deletion_timestamp.is_some() {
        return None;
    }
    let finalizers = object.finalizers();
    if finalizers.is_empty() {
        return Some(json!([
            { "op": "test", "path": "/metadata/finalizers", "value": null },
            { "op": "add", "path": "/metadata/finalizers", "value": [finalizer] },
        ]));
    }
    Some(json!([
        { "op": "test", "path": "/metadata/finalizers", "value": finalizers },
        { "op": "add", "path": "/metadata/finalizers/-", "value": finalizer },
    ]))
}

fn removal<K: Resource>(object: &K, finalizer: &str) -> Option<Value> {
    let index = object.finalizers().iter().position(|other| other == finalizer)?;
    let path = format!("/metadata/finalizers/{index}");
    Some(json!([
        { "op": "test", "path": path, "value": finalizer },
        { "op": "remove", "path": path },
    ]))
}

#[cfg(test)]
mod tests;
