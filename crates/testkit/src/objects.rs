//! Builders for the objects that cluster tests and the demo apply, as plain JSON, and readers of their status.
//!
//! JSON and [`DynamicObject`] on purpose: a test of the wire format must not go through the types that it tests.

use anyhow::{Context as _, Result};
use kube::api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

/// The annotation that asks for a reconcile now.
pub const REQUESTED_AT: &str = "reconcile.fluxcd.io/requestedAt";

/// A GitRepository of `branch` that is looked at once an hour unless poked.
pub fn git_repository(namespace: &str, name: &str, url: &str, branch: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "GitRepository",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"url": url, "ref": {"branch": branch}, "interval": "1h", "timeout": "20s"},
    })
}

/// An OCIRepository of `tag` in a registry without TLS.
pub fn oci_repository(namespace: &str, name: &str, url: &str, tag: &str) -> Value {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1",
        "kind": "OCIRepository",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"url": url, "ref": {"tag": tag}, "interval": "1h", "timeout": "20s", "insecure": true},
    })
}

/// A Kustomization of `path` in the source (`kind`, `source_name`) that prunes and waits for health.
pub fn kustomization(namespace: &str, name: &str, source: (&str, &str), path: &str) -> Value {
    let (kind, source_name) = source;
    json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "sourceRef": {"kind": kind, "name": source_name},
            "path": path,
            "prune": true,
            "wait": true,
            "interval": "1h",
            "timeout": "1m",
        },
    })
}

/// Sets fields of `spec`, replacing what is there: `with_spec(kustomization(…), json!({"suspend": true}))`.
pub fn with_spec(mut object: Value, fields: Value) -> Value {
    if let (Some(spec), Value::Object(fields)) =
        (object.get_mut("spec").and_then(Value::as_object_mut), fields)
    {
        spec.extend(fields);
    }
    object
}

/// A namespaced API of any kind: `api(client, "source.toolkit.fluxcd.io/v1", "GitRepository", namespace)`.
pub fn api(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), namespace, &resource(api_version, kind))
}

fn resource(api_version: &str, kind: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    // Repositories, Kustomizations, Deployments: the regular plural is right for every kind that tests use.
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

/// The API of the kind and namespace that `object` has, and its name.
pub fn api_of(client: &Client, object: &Value) -> Result<(Api<DynamicObject>, String)> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let api_version = text("/apiVersion").context("an object has no apiVersion")?;
    let kind = text("/kind").context("an object has no kind")?;
    let name = text("/metadata/name").context("an object has no name")?;
    let api = match text("/metadata/namespace") {
        Some(namespace) => api(client, api_version, kind, namespace),
        None => Api::all_with(client.clone(), &resource(api_version, kind)),
    };
    Ok((api, name.to_owned()))
}

/// Applies `object` as field manager `testkit` and returns it as the API server has it.
pub async fn apply(client: &Client, object: &Value) -> Result<DynamicObject> {
    let (api, name) = api_of(client, object)?;
    let parameters = PatchParams::apply("testkit").force();
    let applied = api.patch(&name, &parameters, &Patch::Apply(object)).await;
    applied.with_context(|| format!("failed to apply {name} ({})", api.resource_url()))
}

/// Asks for a reconcile as `flux reconcile` does, and returns the token that `status.lastHandledReconcileAt` will show.
pub async fn poke(api: &Api<DynamicObject>, name: &str) -> Result<String> {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    let token = now.as_nanos().to_string();
    let patch = json!({"metadata": {"annotations": {REQUESTED_AT: token}}});
    let patched = api
        .patch_metadata(name, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.with_context(|| format!("failed to poke {name} ({})", api.resource_url()))?;
    Ok(token)
}

/// Suspends all objects of a kind in a namespace: a story that is over must not keep asking servers that others use.
pub async fn suspend_all(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Result<()> {
    let api = api(client, api_version, kind, namespace);
    let found = match api.list_metadata(&ListParams::default()).await {
        // The kind is not installed.
        Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
        found => found.with_context(|| format!("failed to list {kind}"))?,
    };
    let patch = Patch::Merge(json!({"spec": {"suspend": true}}));
    for object in found.items {
        let name = object.name_any();
        match api.patch(&name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            patched => {
                patched.with_context(|| format!("failed to suspend {kind} {name}"))?;
            }
        }
    }
    Ok(())
}

/// A value of the object by JSON pointer, such as `/status/artifact/revision`.
pub fn field<'a>(object: &'a DynamicObject, pointer: &str) -> Option<&'a Value> {
    object.data.pointer(pointer)
}

/// A string of the object by JSON pointer; empty when there is none.
pub fn text<'a>(object: &'a DynamicObject, pointer: &str) -> &'a str {
    field(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A condition as (status, reason, message); None when the object has none of this type.
pub fn condition<'a>(object: &'a DynamicObject, condition_type: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let conditions = field(object, "/status/conditions")?.as_array()?;
    let found = conditions
        .iter()
        .find(|condition| condition["type"] == condition_type)?;
    let text = |name: &str| found.get(name).and_then(Value::as_str).unwrap_or_default();
    Some((text("status"), text("reason"), text("message")))
}

/// Returns whether the controller has seen the latest generation and says Ready=True.
pub fn is_ready(object: &DynamicObject) -> bool {
    has_seen_latest(object) && condition(object, "Ready").is_some_and(|(status, ..)| status == "True")
}

/// Returns whether the controller has seen the latest generation and says Ready=False with this reason.
pub fn is_not_ready_because(object: &DynamicObject, reason: &str) -> bool {
    let ready = condition(object, "Ready");
    has_seen_latest(object) && ready.is_some_and(|(status, given, _)| status == "False" && given == reason)
}

/// ArtifactGenerators and ExternalArtifacts have no generation in their status, but in their conditions.
fn has_seen_latest(object: &DynamicObject) -> bool {
    let of_ready = || {
        let conditions = field(object, "/status/conditions")?.as_array()?;
        let ready = conditions.iter().find(|condition| condition["type"] == "Ready")?;
        ready.get("observedGeneration")
    };
    let seen = field(object, "/status/observedGeneration").or_else(of_ready);
    seen.and_then(Value::as_i64) == object.metadata.generation
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(generation: i64, observed: i64, status: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "a/v1", "kind": "B", "metadata": {"name": "c", "generation": generation},
            "status": {"observedGeneration": observed, "conditions": [
                {"type": "Ready", "status": status, "reason": "R", "message": "M"},
            ]},
        }))
        .unwrap()
    }

    #[test]
    fn ready_of_an_older_generation_is_not_ready() {
        assert!(is_ready(&object(2, 2, "True")));
        assert!(!is_ready(&object(2, 1, "True")));
        assert!(!is_ready(&object(2, 2, "Unknown")));
        assert!(is_not_ready_because(&object(2, 2, "False"), "R"));
        assert!(!is_not_ready_because(&object(2, 1, "False"), "R"));
    }

    #[test]
    fn spec_fields_are_added_and_replaced() {
        let object = with_spec(
            kustomization("n", "k", ("GitRepository", "g"), "./a"),
            json!({"path": "b", "x": 1}),
        );
        assert_eq!(object["spec"]["path"], "b");
        assert_eq!(object["spec"]["x"], 1);
        assert_eq!(object["spec"]["prune"], true);
    }

    #[test]
    fn plurals_are_those_that_the_api_server_serves() {
        for (api_version, kind, plural) in [
            ("source.toolkit.fluxcd.io/v1", "GitRepository", "gitrepositories"),
            ("source.toolkit.fluxcd.io/v1", "OCIRepository", "ocirepositories"),
            (
                "kustomize.toolkit.fluxcd.io/v1",
                "Kustomization",
                "kustomizations",
            ),
            ("v1", "ConfigMap", "configmaps"),
            ("apps/v1", "Deployment", "deployments"),
        ] {
            assert_eq!(resource(api_version, kind).plural, plural);
        }
    }
}
