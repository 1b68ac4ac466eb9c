//! Makes Helm's what other tools own in objects that the release takes over: what Flux's manifest has and the chart has not
//! (limits, variables, annotations) would stay otherwise, because its owner still wants it.

use kube::api::{DynamicObject, Patch, PatchParams};
use manifest::ObjectId;
use serde_json::{Map, Value, json};

use super::helm::{FIELD_MANAGER, Platform};
use super::objects;
use crate::cluster::Failure;

/// Field managers that apply Flux: its command, its own Kustomization, its operator, Helm, kubectl.
const APPLIERS: [&str; 7] = [
    "flux",
    "kustomize-controller",
    "helm-controller",
    "flux-operator",
    "kubectl",
    "helm",
    "Helm",
];

/// Does it for those of the objects that are named.
pub(crate) async fn make_ours(
    platform: &Platform,
    manifest: &str,
    named: &[ObjectId],
) -> Result<(), Failure> {
    let wanted = objects::of_manifest(manifest)?;
    for object in wanted.into_iter().filter(|object| named.contains(&object.id())) {
        let mapper = platform.engine.mapper();
        let located = objects::locate(&platform.client, mapper, object, &platform.namespace).await?;
        drop_rolling_update(&located).await?;
        // Someone may write in between: then it is looked at again.
        for attempt in 0.. {
            let Some(live) = located.live().await? else { break };
            let Some(patch) = patch(&live) else { break };
            let operations =
                serde_json::from_value(patch).map_err(|error| Failure::Write(error.to_string()))?;
            let patch = Patch::<()>::Json(operations);
            let name = located.object.name();
            match located.api.patch(name, &PatchParams::default(), &patch).await {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < 3 => {}
                Err(error) => return Err(Failure::request(format!("take over {}", located.id()), error)),
            }
        }
    }
    Ok(())
}

/// A Deployment that was updated in another way has parameters of it by default, which are no one's and forbidden with ours.
pub(crate) async fn drop_rolling_update(located: &objects::Located) -> Result<(), Failure> {
    let wanted = located.object.value().get("spec");
    let is_recreated = wanted.and_then(|spec| spec.pointer("/strategy/type")) == Some(&json!("Recreate"));
    if !is_recreated {
        return Ok(());
    }
    let live = located.live().await?;
    let has_parameters = live.is_some_and(|live| !live.data["spec"]["strategy"]["rollingUpdate"].is_null());
    if !has_parameters {
        return Ok(());
    }
    let patch = Patch::Merge(json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": null}}}));
    let parameters = PatchParams {
        field_manager: Some(FIELD_MANAGER.to_owned()),
        ..PatchParams::default()
    };
    let patched = located
        .api
        .patch(located.object.name(), &parameters, &patch)
        .await;
    patched
        .map(drop)
        .map_err(|error| Failure::request(format!("change the strategy of {}", located.id()), error))
}

/// The JSON patch that does it, which cannot undo what someone does meanwhile; None when there is nothing to do.
fn patch(live: &DynamicObject) -> Option<Value> {
    // What was read as JSON can be written as JSON.
    let metadata = serde_json::to_value(&live.metadata).ok()?;
    let entries = metadata.get("managedFields")?.as_array()?;
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let is_applied = |entry: &&Value| {
        let manager = text(entry, "manager");
        text(entry, "subresource").is_empty()
            && (APPLIERS.contains(&manager.as_str()) || manager.starts_with("kubectl-"))
    };
    let (applied, others): (Vec<&Value>, Vec<&Value>) = entries.iter().partition(is_applied);
    let mut ours = (*applied.first()?).clone();
    let is_done =
        applied.len() == 1 && text(&ours, "manager") == FIELD_MANAGER && text(&ours, "operation") == "Apply";
    if is_done {
        return None;
    }
    let mut fields = Map::new();
    applied
        .iter()
        .for_each(|entry| merge(&mut fields, &entry["fieldsV1"]));
    ours["manager"] = FIELD_MANAGER.into();
    ours["operation"] = "Apply".into();
    ours["fieldsV1"] = Value::Object(fields);
    let mut all: Vec<Value> = others.into_iter().cloned().collect();
    all.push(ours);
    Some(json!([
        {"op": "replace", "path": "/metadata/managedFields", "value": all},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.metadata.resource_version},
    ]))
}

/// Lays one set of fields over another. Sets are nested objects; what is in neither is in no field.
fn merge(into: &mut Map<String, Value>, more: &Value) {
    for (field, below) in more.as_object().into_iter().flatten() {
        let known = into.entry(field.clone()).or_insert_with(|| json!({}));
        if let Some(known) = known.as_object_mut() {
            merge(known, below);
        }
    }
}

/// Under whose name an object was applied: under that it is put back.
pub(crate) fn applier(live: &DynamicObject) -> String {
    let entries = live.metadata.managed_fields.iter().flatten();
    let applied = entries.filter(|entry| entry.subresource.as_deref().unwrap_or_default().is_empty());
    let mut known = applied
        .filter_map(|entry| entry.manager.clone())
        .filter(|manager| APPLIERS.contains(&manager.as_str()));
    known.next().unwrap_or_else(|| "flux".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(managers: Value) -> DynamicObject {
        let object = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "resourceVersion": "7", "managedFields": managers}});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn fields_of_all_who_apply_become_helms_and_those_of_controllers_stay() {
        let fields = |name: &str| json!({"f:spec": {name: {}}});
        let object = live(json!([
            {"manager": "kustomize-controller", "operation": "Apply", "fieldsV1": fields("f:a")},
            {"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields("f:b")},
            {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status", "fieldsV1": fields("f:c")},
        ]));
        let patch = patch(&object).unwrap();
        let entries = patch[0]["value"].as_array().unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0]["manager"], "kube-controller-manager");
        assert_eq!(entries[1]["manager"], "helm");
        assert_eq!(entries[1]["operation"], "Apply");
        assert_eq!(entries[1]["fieldsV1"], json!({"f:spec": {"f:a": {}, "f:b": {}}}));
        assert_eq!(patch[1]["value"], "7");
        assert_eq!(applier(&object), "kustomize-controller");
    }

    #[test]
    fn what_is_helms_alone_needs_no_patch() {
        let helms = live(json!([{"manager": "helm", "operation": "Apply", "fieldsV1": {}}]));
        assert_eq!(patch(&helms), None);
        assert_eq!(patch(&live(json!([]))), None);
    }
}
