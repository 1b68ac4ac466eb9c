//! Objects as another tool left them, recorded from its own cluster (tests/cases), made again here with the same managers of fields.

use anyhow::{Context as _, Result};
use kube::Client;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::objects;

/// Makes a recorded object with its managers. What only the recorded server knew is left out.
pub async fn replay(client: &Client, recorded: &Value) -> Result<DynamicObject> {
    let mut object = recorded.clone();
    let managers = object["metadata"]["managedFields"].take();
    let metadata = object["metadata"].as_object_mut().context("no metadata")?;
    for field in [
        "managedFields",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
    ] {
        metadata.remove(field);
    }
    object.as_object_mut().context("no object")?.remove("status");
    if object["kind"] == "Service" {
        for address in ["clusterIP", "clusterIPs"] {
            object["spec"].as_object_mut().context("no spec")?.remove(address);
        }
    }
    let (api, name) = objects::api_of(client, recorded)?;
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    let patch = json!([{"op": "replace", "path": "/metadata/managedFields", "value": managers}]);
    let patch = Patch::<()>::Json(serde_json::from_value(patch)?);
    Ok(api.patch(&name, &PatchParams::default(), &patch).await?)
}
