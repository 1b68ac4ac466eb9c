//! The objects of a hook: read, created, deleted.
//!
//! They are no one's resources: no ownership is looked at, and no fields are taken from others.

use std::sync::Arc;

use http::Request as HttpRequest;
use kube::api::{Patch, PatchParams, PostParams, ValidationDirective};
use kube::core::params::{DeleteParams, PropagationPolicy};
use kube::core::request::Request;
use kube::core::{DynamicObject, Resource as _};
use kube_apply::mapper::Resource;
use manifest::{GroupVersionKind, Object, ObjectId};
use serde_json::Value;

use crate::{Cluster, Error, ErrorKind};

/// An object, and where it is.
pub(super) struct Placed {
    pub(super) object: Object,
    resource: Arc<Resource>,
    namespace: String,
}

impl Placed {
    pub(super) fn id(&self) -> ObjectId {
        ObjectId {
            namespace: self.namespace.clone(),
            ..self.object.id()
        }
    }

    pub(super) fn version(&self) -> String {
        self.object.gvk().version
    }

    fn collection(&self) -> Request {
        let namespace = self.resource.namespaced.then_some(self.namespace.as_str());
        Request::new(DynamicObject::url_path(&self.resource.api, namespace))
    }

    /// `namespace/name group/version, Kind=Kind`, as Helm names it.
    fn shown(&self) -> String {
        let GroupVersionKind { group, version, kind } = self.object.gvk();
        format!(
            "{}/{} {group}/{version}, Kind={kind}",
            self.namespace,
            self.object.name()
        )
    }
}

/// An object that was created, as the API server has it.
pub(super) struct Created {
    pub(super) placed: Placed,
    pub(super) answer: Value,
}

/// Reads the manifest of a hook.
pub(super) async fn read(cluster: &Cluster, manifest: &str, namespace: &str) -> Result<Vec<Placed>, Error> {
    let objects = manifest::read_objects(manifest, "hook")
        .map_err(|error| Error::new(ErrorKind::Build, error.to_string()))?;
    let mut placed = Vec::new();
    for mut object in objects {
        let resource = cluster.engine.mapper().resolve(&object.gvk()).await;
        let resource = resource.map_err(|error| Error::new(ErrorKind::Build, error.to_string()))?;
        if resource.namespaced && object.namespace().is_empty() {
            object.set_namespace(namespace);
        }
        let namespace = if resource.namespaced {
            object.namespace().to_owned()
        } else {
            String::new()
        };
        placed.push(Placed {
            object,
            resource,
            namespace,
        });
    }
    Ok(placed)
}

/// Creates objects: by server-side apply, where fields of others are left to them, or plainly.
pub(super) async fn create(
    cluster: &Cluster,
    objects: &[Placed],
    server_side: bool,
) -> Result<Vec<Created>, Error> {
    let mut created = Vec::new();
    for placed in objects {
        let answer = if server_side {
            apply(cluster, placed).await?
        } else {
            post(cluster, placed).await?
        };
        created.push(Created {
            placed: Placed {
                object: placed.object.clone(),
                resource: Arc::clone(&placed.resource),
                namespace: placed.namespace.clone(),
            },
            answer,
        });
    }
    Ok(created)
}

async fn apply(cluster: &Cluster, placed: &Placed) -> Result<Value, Error> {
    let params = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply(&cluster.field_manager)
    };
    let name = placed.object.name();
    let request = placed
        .collection()
        .patch(name, &params, &Patch::Apply(placed.object.value()));
    send(cluster, request).await.map_err(|refused| {
        let doing = if refused.is_conflict {
            "conflict occurred while applying object"
        } else {
            "server-side apply failed for object"
        };
        refused.error.within(format!("{doing} {}", placed.shown()))
    })
}

async fn post(cluster: &Cluster, placed: &Placed) -> Result<Value, Error> {
    let params = PostParams {
        field_manager: Some(cluster.field_manager.clone()),
        ..PostParams::default()
    };
    let body = serde_json::to_vec(placed.object.value()).map_err(kube::core::request::Error::SerializeBody);
    let request = body.and_then(|body| placed.collection().create(&params, body));
    send(cluster, request).await.map_err(|refused| refused.error)
}

/// Deletes objects in the background; returns those that are still there, on their way.
pub(super) async fn delete<'a>(cluster: &Cluster, objects: &'a [Placed]) -> Result<Vec<&'a Placed>, Error> {
    let (mut going, mut refused) = (Vec::new(), Vec::new());
    for placed in objects {
        let params = DeleteParams {
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let request = placed.collection().delete(placed.object.name(), &params);
        match send(cluster, request).await {
            // What is gone at once is answered by a Status, what is not by the object.
            Ok(answer) if answer.get("kind").and_then(Value::as_str) == Some("Status") => {}
            Ok(answer) if answer.pointer("/metadata/deletionTimestamp").is_none() => {}
            Ok(_) => going.push(placed),
            Err(error) if error.is_missing => {}
            Err(error) => refused.push(error.error.to_string()),
        }
    }
    if refused.is_empty() {
        return Ok(going);
    }
    Err(Error::new(ErrorKind::Hook, refused.join("; ")))
}

struct Refused {
    error: Error,
    is_missing: bool,
    is_conflict: bool,
}

async fn send(
    cluster: &Cluster,
    request: Result<HttpRequest<Vec<u8>>, kube::core::request::Error>,
) -> Result<Value, Refused> {
    let failed = |kind, text: String| Refused {
        error: Error::new(kind, text),
        is_missing: false,
        is_conflict: false,
    };
    let request = request.map_err(|error| failed(ErrorKind::Build, error.to_string()))?;
    let timeout = cluster.engine.settings().request_timeout;
    match tokio::time::timeout(timeout, cluster.client.request::<Value>(request)).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(Refused {
            is_missing: status.code == 404,
            is_conflict: status.reason == "Conflict",
            error: Error::new(ErrorKind::Apply, status.message),
        }),
        Ok(Err(error)) => Err(failed(ErrorKind::Cluster, error.to_string())),
        Err(_) => Err(failed(
            ErrorKind::Cluster,
            format!("the API server did not answer within {} s", timeout.as_secs()),
        )),
    }
}
