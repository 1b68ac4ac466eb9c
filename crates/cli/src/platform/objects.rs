//! Objects of any kind, addressed through the server's discovery: as a manifest or an inventory names them.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Api, Client};
use kube_apply::Address;
use kube_apply::mapper::{Resource, RestMapper};
use manifest::{GroupVersionKind, Object, ObjectId, read_objects};
use serde_json::{Map, Value};

use super::Platform;
use crate::cluster::Failure;

/// An object and the way to it.
pub(crate) struct Located {
    pub(crate) object: Object,
    pub(crate) api: Api<DynamicObject>,
    pub(crate) resource: Arc<Resource>,
}

impl Located {
    pub(crate) fn id(&self) -> ObjectId {
        self.object.id()
    }

    pub(crate) fn at(&self) -> Address {
        Address {
            resource: Arc::clone(&self.resource),
            namespace: self.object.namespace().to_owned(),
            name: self.object.name().to_owned(),
        }
    }

    /// Deletes it after what it owns; it may be gone already.
    pub(crate) async fn delete(&self) -> Result<(), Failure> {
        match self
            .api
            .delete(self.object.name(), &DeleteParams::foreground())
            .await
        {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(Failure::request(format!("delete {}", self.id()), error)),
        }
    }

    /// The object as it is in the cluster.
    pub(crate) async fn live(&self) -> Result<Option<DynamicObject>, Failure> {
        let found = self.api.get_opt(self.object.name()).await;
        found.map_err(|error| Failure::request(format!("get {}", self.id()), error))
    }

    /// Waits until it is gone if it was deleted: what is applied onto it would go with it.
    pub(crate) async fn gone_if_deleted(
        &self,
        platform: &Platform,
        timeout: Duration,
    ) -> Result<(), Failure> {
        let live = self.live().await?;
        match live.is_some_and(|live| live.metadata.deletion_timestamp.is_some()) {
            true => platform.wait_gone(&self.at(), timeout).await,
            false => Ok(()),
        }
    }

    /// Applies it on the server, taking fields from whoever has them.
    pub(crate) async fn apply(&self, manager: &str, dry_run: bool) -> Result<DynamicObject, Failure> {
        let parameters = PatchParams {
            dry_run,
            ..PatchParams::apply(manager).force()
        };
        let patch = Patch::Apply(self.object.value());
        let applied = self.api.patch(self.object.name(), &parameters, &patch).await;
        applied.map_err(|error| Failure::request(format!("apply {}", self.id()), error))
    }
}

/// Finds the way to an object. One without a namespace is in `namespace`, if its kind has namespaces.
pub(crate) async fn locate(
    client: &Client,
    mapper: &RestMapper,
    mut object: Object,
    namespace: &str,
) -> Result<Located, Failure> {
    let gvk = object.gvk();
    let resource = resolve(mapper, &gvk).await?;
    let api = if resource.namespaced {
        if object.namespace().is_empty() {
            object.set_namespace(namespace);
        }
        Api::namespaced_with(client.clone(), object.namespace(), &resource.api)
    } else {
        if let Some(Value::Object(metadata)) = object.value_mut().get_mut("metadata") {
            metadata.remove("namespace");
        }
        Api::all_with(client.clone(), &resource.api)
    };
    Ok(Located {
        object,
        api,
        resource,
    })
}

async fn resolve(mapper: &RestMapper, gvk: &GroupVersionKind) -> Result<Arc<Resource>, Failure> {
    mapper.resolve(gvk).await.map_err(|error| {
        let cause = std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
        Failure::Request {
            what: format!("find the kind {}", gvk.kind),
            why: format!("{error}{cause}"),
        }
    })
}

/// Reads the objects of a release's manifest.
pub(crate) fn of_manifest(manifest: &str) -> Result<Vec<Object>, Failure> {
    read_objects(manifest, "manifest").map_err(|error| Failure::Request {
        what: "read what the chart was rendered to".to_owned(),
        why: error.to_string(),
    })
}

/// An object that was kept as JSON.
pub(crate) fn of_value(value: &Value) -> Object {
    let fields: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    Object::new(fields, None)
}

/// A live object as JSON with its kind, without managers and state: what could be applied again.
pub(crate) fn as_declared(live: DynamicObject, resource: &ApiResource) -> Value {
    // What was read as JSON can be written as JSON.
    let mut value = serde_json::to_value(live).unwrap_or_default();
    value["apiVersion"] = resource.api_version.clone().into();
    value["kind"] = resource.kind.clone().into();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "managedFields",
            "uid",
            "resourceVersion",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "ownerReferences",
            "selfLink",
        ] {
            metadata.remove(field);
        }
        if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
            annotations.remove("deployment.kubernetes.io/revision");
        }
    }
    match resource.kind.as_str() {
        // Someone else may have the addresses by now; tokens of accounts are re-created.
        "Service" => ["clusterIP", "clusterIPs", "healthCheckNodePort"]
            .iter()
            .for_each(|field| drop(value["spec"].as_object_mut().and_then(|spec| spec.remove(*field)))),
        "ServiceAccount" => drop(value.as_object_mut().and_then(|fields| fields.remove("secrets"))),
        _ => {}
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_only_the_server_knows_is_left_out_of_what_is_declared() {
        let live = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "1", "labels": {"l": "1"},
                "annotations": {"deployment.kubernetes.io/revision": "3", "k": "v"}, "managedFields": []},
            "spec": {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "type": "ClusterIP"},
            "status": {"loadBalancer": {}},
        });
        let resource = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Service".to_owned(),
            plural: "services".to_owned(),
        };
        assert_eq!(
            as_declared(serde_json::from_value(live).unwrap(), &resource),
            json!({"apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "a", "namespace": "n", "labels": {"l": "1"}, "annotations": {"k": "v"}},
                "spec": {"type": "ClusterIP"}})
        );
    }
}
