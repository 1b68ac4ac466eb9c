//! Brings a manifest into the form in which the API server stores it. Pure.
//!
//! Server-side apply compares fields before defaulting, so that a port without `protocol` or a Secret's `stringData`
//! would look changed, or lose its owner, at every apply. The rules are Flux's (`ssa/normalize`), without its detour over
//! Go types: that detour also drops fields that Kubernetes does not know, which a dry run should report instead.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use manifest::{GroupVersionKind, Object};
use serde_json::{Map, Value};

use crate::stage::is_crd;

/// Normalises one object in place.
pub(crate) fn normalize(object: &mut Object) {
    let gvk = object.gvk();
    let value = object.value_mut();
    strip_server_fields(value);
    if is_built_in(&gvk.group) && !is_role(&gvk) {
        strip_nulls(value);
    }
    match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Secret") => encode_string_data(value),
        ("", "Service") => default_protocol(value.get_mut("spec")),
        _ => {}
    }
    if let Some(pod) = pod_spec(&gvk, value) {
        default_container_protocols(pod);
    }
    if is_crd(&gvk) {
        drop_broken_ca_bundle(value);
    }
}

/// Fields that the server writes. Applying them fails (managedFields) or fights with the server (the rest).
const SERVER_METADATA: [&str; 6] = [
    "managedFields",
    "creationTimestamp",
    "resourceVersion",
    "uid",
    "generation",
    "selfLink",
];

fn strip_server_fields(value: &mut Map<String, Value>) {
    value.remove("status");
    if let Some(Value::Object(metadata)) = value.get_mut("metadata") {
        for field in SERVER_METADATA {
            metadata.remove(field);
        }
    }
}

/// Groups whose kinds are compiled into Kubernetes: a null there means an absent field, as Go's decoder has it.
const BUILT_IN_GROUPS: [&str; 21] = [
    "",
    "admissionregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

fn is_built_in(group: &str) -> bool {
    BUILT_IN_GROUPS.contains(&group)
}

/// Flux leaves (Cluster)Roles as they are (fluxcd/kustomize-controller#1041).
fn is_role(gvk: &GroupVersionKind) -> bool {
    gvk.group == "rbac.authorization.k8s.io" && matches!(gvk.kind.as_str(), "Role" | "ClusterRole")
}

/// Maps of strings, in which Go reads a null as an empty string and keeps the key.
const STRING_MAPS: [&str; 5] = ["labels", "annotations", "matchLabels", "data", "stringData"];

fn strip_nulls(map: &mut Map<String, Value>) {
    map.retain(|_, value| !value.is_null());
    for (key, value) in map.iter_mut() {
        match value {
            Value::Object(strings) if STRING_MAPS.contains(&key.as_str()) => empty_nulls(strings),
            Value::Object(inner) => strip_nulls(inner),
            Value::Array(items) => items
                .iter_mut()
                .filter_map(Value::as_object_mut)
                .for_each(strip_nulls),
            _ => {}
        }
    }
}

fn empty_nulls(strings: &mut Map<String, Value>) {
    strings
        .values_mut()
        .filter(|v| v.is_null())
        .for_each(|v| *v = Value::from(""));
}

/// Moves `stringData` into `data`, over it, as the API server does at a write (kubernetes/kubernetes#108008). Left alone
/// when a value is no string: the dry run says so better.
fn encode_string_data(value: &mut Map<String, Value>) {
    let Some(Value::Object(strings)) = value.get("stringData") else {
        return;
    };
    if !strings.values().all(Value::is_string) {
        return;
    }
    let encoded: Vec<_> = strings
        .iter()
        .map(|(key, text)| {
            (
                key.clone(),
                Value::from(STANDARD.encode(text.as_str().unwrap_or_default())),
            )
        })
        .collect();
    match value.entry("data").or_insert_with(|| Value::Object(Map::new())) {
        Value::Object(data) => data.extend(encoded),
        _ => return,
    }
    value.remove("stringData");
}

/// Borrows the pod spec of the kinds that Flux knows to have one.
fn pod_spec<'a>(gvk: &GroupVersionKind, value: &'a mut Map<String, Value>) -> Option<&'a mut Value> {
    let path: &[&str] = match (gvk.group.as_str(), gvk.kind.as_str()) {
        ("", "Pod") => &["spec"],
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
            &["spec", "template", "spec"]
        }
        ("batch", "CronJob") => &["spec", "jobTemplate", "spec", "template", "spec"],
        _ => return None,
    };
    let (first, rest) = path.split_first()?;
    rest.iter()
        .try_fold(value.get_mut(*first)?, |value, field| value.get_mut(*field))
}

/// The merge key of a port holds the protocol, whose default is not in the key that the client sends
/// (kubernetes-sigs/structured-merge-diff#130).
fn default_container_protocols(pod_spec: &mut Value) {
    for containers in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = pod_spec.get_mut(containers) else {
            continue;
        };
        containers
            .iter_mut()
            .for_each(|container| default_protocol(Some(container)));
    }
}

fn default_protocol(holder: Option<&mut Value>) {
    let Some(Value::Array(ports)) = holder.and_then(|h| h.get_mut("ports")) else {
        return;
    };
    for port in ports.iter_mut().filter_map(Value::as_object_mut) {
        if port
            .get("protocol")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .is_empty()
        {
            port.insert("protocol".to_owned(), Value::from("TCP"));
        }
    }
}

/// Kubernetes 1.31 and later refuses a CRD whose conversion webhook has a placeholder for its CA.
fn drop_broken_ca_bundle(value: &mut Map<String, Value>) {
    let client_config = ["spec", "conversion", "webhook", "clientConfig"];
    let (first, rest) = (client_config[0], &client_config[1..]);
    let config = value
        .get_mut(first)
        .and_then(|v| rest.iter().try_fold(v, |v, field| v.get_mut(*field)));
    let Some(Value::Object(config)) = config else {
        return;
    };
    if config
        .get("caBundle")
        .and_then(Value::as_str)
        .is_some_and(|bundle| !holds_a_certificate(bundle))
    {
        config.remove("caBundle");
    }
}

fn holds_a_certificate(bundle: &str) -> bool {
    if bundle.is_empty() {
        return true;
    }
    let Some(pem) = STANDARD
        .decode(bundle)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
    else {
        return false;
    };
    pem.split("-----BEGIN CERTIFICATE-----").skip(1).any(|rest| {
        let body: String = rest
            .split("-----END CERTIFICATE-----")
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        // DER of a certificate starts with a SEQUENCE.
        STANDARD.decode(body).is_ok_and(|der| der.first() == Some(&0x30))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(input: Value, expected: Value) {
        let Value::Object(map) = input else {
            panic!("no mapping")
        };
        let mut object = Object::new(map, None);
        normalize(&mut object);
        assert_eq!(object.into_value(), expected);
    }

    #[test]
    fn fields_of_the_server_are_dropped() {
        check(
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "status": {"a": 1}, "metadata": {
                "name": "w", "uid": "u", "resourceVersion": "1", "generation": 2, "creationTimestamp": null,
                "managedFields": [], "selfLink": "/x"}}),
            json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}),
        );
    }

    #[test]
    fn string_data_is_encoded_over_data() {
        check(
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eA==", "b": "eQ=="}, "stringData": {"a": "z", "c": null}}),
            json!({"apiVersion": "v1", "kind": "Secret", "data": {"a": "eg==", "b": "eQ==", "c": ""}}),
        );
    }

    #[test]
    fn string_data_with_a_number_is_left_for_the_dry_run() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"port": 8080}});
        check(secret.clone(), secret);
    }

    #[test]
    fn ports_get_their_default_protocol() {
        let ports = |extra: Value| json!([{"containerPort": 80, "protocol": extra}, {"containerPort": 53, "protocol": "UDP"}]);
        let cron = |ports: Value| {
            json!({"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": {
                "containers": [{"name": "a", "ports": ports}]}}}}}})
        };
        check(cron(ports(Value::Null)), cron(ports(json!("TCP"))));
        check(
            json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80}]}}),
            json!({"apiVersion": "v1", "kind": "Service", "spec": {"ports": [{"port": 80, "protocol": "TCP"}]}}),
        );
    }

    #[test]
    fn nulls_vanish_from_built_in_kinds_only() {
        let with_null = |api_version: &str| {
            json!({"apiVersion": api_version, "kind": "Deployment", "metadata": {"labels": {"a": null}},
                "spec": {"replicas": null, "list": [{"x": null}]}})
        };
        check(
            with_null("apps/v1"),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"labels": {"a": ""}}, "spec": {"list": [{}]}}),
        );
        check(with_null("example.com/v1"), with_null("example.com/v1"));
    }

    #[test]
    fn a_placeholder_for_a_ca_is_dropped_and_a_certificate_kept() {
        let crd = |config: Value| {
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "spec": {"conversion": {"webhook": {"clientConfig": config}}}})
        };
        check(crd(json!({"caBundle": "Cg=="})), crd(json!({})));
        let pem = "-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n";
        let good = crd(json!({"caBundle": STANDARD.encode(pem)}));
        check(good.clone(), good);
    }
}
