//! Writing a status: one merge patch with what changed, or no request at all.
//!
//! In: the object as last seen, and the status that it shall have. Out: at most one PATCH of the status
//! subresource. What the status says is decided elsewhere (`conditions`, the controllers).

use std::fmt::Debug;

use api::meta::StatusObject;
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Error of writing a status.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A status could not be turned into JSON.
    #[error("failed to serialize the status of {object}")]
    Serialize {
        /// Namespace and name.
        object: String,
        /// Error of the serializer.
        #[source]
        source: serde_json::Error,
    },
    /// The API server did not take the patch.
    #[error("failed to patch the status of {object}")]
    Patch {
        /// Namespace and name.
        object: String,
        /// Error of the API server.
        #[source]
        source: Box<kube::Error>,
    },
}

impl Error {
    /// Returns whether the object is gone, so that there is no status to write any more.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Patch { source, .. } if matches!(&**source, kube::Error::Api(status) if status.code == 404))
    }
}

/// Makes `new_status` the status of `object`.
///
/// Sends only what differs from the status in `object`, without a resource version: like Flux, we own our
/// fields and need not fail because someone else touched the object. So `object` must be the newest that this
/// process knows, and the answer, which is returned, is what the next call has to start from. None means that
/// there was nothing to send. `field_manager` is Flux's `gotk-<controller>`.
pub async fn patch_status<K>(
    client: &Client,
    object: &K,
    new_status: &K::Status,
    field_manager: &str,
) -> Result<Option<K>, Error>
where
    K: StatusObject + kube::Resource<Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    K::Status: Serialize,
{
    let name = || format!("{}/{}", object.namespace().unwrap_or_default(), object.name_any());
    let serialize_error = |source| Error::Serialize {
        object: name(),
        source,
    };
    let old = object
        .status()
        .map(serde_json::to_value)
        .transpose()
        .map_err(serialize_error)?;
    let new = serde_json::to_value(new_status).map_err(serialize_error)?;
    let Some(patch) = merge_patch(&old.unwrap_or(Value::Null), &new) else {
        return Ok(None);
    };
    let api: Api<K> = Api::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    let parameters = PatchParams {
        field_manager: Some(field_manager.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(json!({ "status": patch }));
    let answer = api.patch_status(&object.name_any(), &parameters, &patch).await;
    answer.map(Some).map_err(|source| Error::Patch {
        object: name(),
        source: Box::new(source),
    })
}

/// The JSON merge patch (RFC 7386) that turns `old` into `new`; None if they are equal.
///
/// A merge patch cannot set a value to null: null and absent are the same here, as they are to the API server.
pub fn merge_patch(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let patch = merge_patch_of_objects(old, new);
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (old, Value::Object(new)) => {
            let new = without_nulls(new);
            // An empty object in place of nothing is a difference; in place of a scalar it replaces that.
            (*old != new).then_some(new)
        }
        (old, new) => (old != new).then(|| new.clone()),
    }
}

fn merge_patch_of_objects(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let mut patch = Map::new();
    for (key, new_value) in new {
        let old_value = old.get(key).unwrap_or(&Value::Null);
        if let Some(difference) = merge_patch(old_value, new_value) {
            patch.insert(key.clone(), difference);
        }
    }
    for (key, old_value) in old {
        if !new.contains_key(key) && !old_value.is_null() {
            patch.insert(key.clone(), Value::Null);
        }
    }
    patch
}

/// Within a new object a null would mean "remove", of which there is nothing to do.
fn without_nulls(object: &Map<String, Value>) -> Value {
    let kept = object
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| {
            let value = value.as_object().map_or_else(|| value.clone(), without_nulls);
            (key.clone(), value)
        });
    Value::Object(kept.collect())
}

#[cfg(test)]
mod tests;
