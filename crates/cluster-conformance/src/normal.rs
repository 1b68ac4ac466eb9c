//! Objects without what differs from run to run: times, identifiers, ports, what other programs write.

use std::io::Read as _;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::settle::TRIED;

/// Field managers of programs that run beside every contestant.
const BYSTANDERS: [&str; 5] = [
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "cluster-conformance",
];

/// Values by JSON pointer that the API server draws, for kinds that have them.
const DRAWN: [(&str, &str); 6] = [
    ("Service", "/spec/clusterIP"),
    ("Service", "/spec/clusterIPs"),
    ("Service", "/spec/healthCheckNodePort"),
    ("Job", "/spec/selector"),
    ("Job", "/spec/template/metadata/labels"),
    ("PersistentVolumeClaim", "/spec/volumeName"),
];

/// Texts that differ from run to run, and what stands for them.
static VARYING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (
            r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( ?(Z|UTC|[+-]\d\d:?\d\d))*",
            "TIME",
        ),
        (
            r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
            "UID",
        ),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        // Commits are made anew for each run, at another time; the tag says which it is.
        (r"@sha1:[0-9a-f]{40}", "@sha1:COMMIT"),
        (
            r"\b(finished in|passed in|timed out after|completed in) [0-9][0-9a-zµ.]*[a-z]",
            "$1 TIME",
        ),
    ];
    let compiled = patterns.map(|(pattern, stand_in)| (Regex::new(pattern), stand_in));
    let all = compiled
        .into_iter()
        .filter_map(|(pattern, stand_in)| Some((pattern.ok()?, stand_in)));
    all.collect()
});

/// An object as it is compared.
pub fn object(mut object: Value, kind: &str, is_of_flux: bool) -> Value {
    metadata(&mut object);
    if !is_of_flux && let Some(fields) = object.as_object_mut() {
        // Other programs say there how the object fares.
        fields.remove("status");
    }
    for (of, pointer) in DRAWN {
        if of == kind
            && let Some(value) = object.pointer_mut(pointer)
        {
            *value = json!("DRAWN");
        }
    }
    if let Some(ports) = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut) {
        for port in ports.iter_mut().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    for label in ["createdAt", "modifiedAt"] {
        if kind == "Secret"
            && let Some(time) = object.pointer_mut(&format!("/metadata/labels/{label}"))
        {
            *time = json!("TIME");
        }
    }
    if let Some(record) = object.pointer_mut("/data/release")
        && let Some(read) = record.as_str().and_then(release)
    {
        *record = read;
    }
    if is_of_flux {
        status(&mut object);
    }
    mask(&mut object);
    object
}

/// A text as it is compared.
pub fn text(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, stand_in) in VARYING.iter() {
        text = pattern.replace_all(&text, *stand_in).into_owned();
    }
    text
}

fn metadata(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    for drawn in ["uid", "resourceVersion", "creationTimestamp", "selfLink"] {
        metadata.remove(drawn);
    }
    if let Some(Value::Array(entries)) = metadata.remove("managedFields") {
        let mut managers = Map::new();
        for entry in entries {
            let text = |name: &str| entry[name].as_str().unwrap_or_default();
            if BYSTANDERS.contains(&text("manager")) {
                continue;
            }
            let name = format!(
                "{} {} {}",
                text("manager"),
                text("operation"),
                text("subresource")
            );
            managers.insert(name.trim_end().to_owned(), entry["fieldsV1"].clone());
        }
        metadata.insert("managers".to_owned(), Value::Object(managers));
    }
}

/// Conditions by their type, and values that are measured.
fn status(object: &mut Value) {
    let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else {
        return;
    };
    if let Some(Value::Array(conditions)) = status.remove("conditions") {
        let by_type = conditions.into_iter().map(|mut condition| {
            let name = condition["type"].as_str().unwrap_or_default().to_owned();
            if let Some(fields) = condition.as_object_mut() {
                fields.remove("type");
            }
            (name, condition)
        });
        let by_type: Map<_, _> = by_type.collect();
        status.insert("conditions".to_owned(), Value::Object(by_type));
    }
    let history = status.get_mut("history").and_then(Value::as_array_mut);
    let entries = history.into_iter().flatten().filter_map(Value::as_object_mut);
    for entry in entries {
        for measured in ["lastReconciledDuration", "digest"] {
            // The digest of a release is that of its times, too; a Kustomization's is that of what was built.
            if entry.contains_key(measured) && (measured != "digest" || entry.contains_key("chartName")) {
                entry.insert(measured.to_owned(), json!("MEASURED"));
            }
        }
    }
    if status
        .get("failures")
        .and_then(Value::as_u64)
        .is_some_and(|failures| failures >= TRIED)
    {
        status.insert("failures".to_owned(), json!("MANY"));
    }
    if status.contains_key("lastAttemptedReleaseActionDuration") {
        status.insert("lastAttemptedReleaseActionDuration".to_owned(), json!("MEASURED"));
    }
}

fn mask(value: &mut Value) {
    match value {
        Value::String(content) => {
            let masked = text(content);
            if masked != *content {
                *content = masked;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(fields) => fields.values_mut().for_each(mask),
        _ => {}
    }
}

/// The content of a release record: JSON, packed, in base64, as the value of a Secret.
fn release(value: &str) -> Option<Value> {
    let helms = STANDARD.decode(value).ok()?;
    let packed = STANDARD.decode(helms).ok()?;
    let mut read = Vec::new();
    GzDecoder::new(&packed[..]).read_to_end(&mut read).ok()?;
    serde_json::from_slice(&read).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_differs_from_run_to_run_is_masked_and_nothing_else() {
        let read = "Reconciliation finished in 1.2s, next run in 1h0m0s";
        assert_eq!(text(read), "Reconciliation finished in TIME, next run in 1h0m0s");
        assert_eq!(
            text("http://127.0.0.1:40123/a?at=2026-01-02T03:04:05Z"),
            "http://127.0.0.1:PORT/a?at=TIME"
        );
        assert_eq!(text("v1@sha1:0123456789"), "v1@sha1:0123456789");
    }

    #[test]
    fn field_managers_are_named_by_what_they_did_and_bystanders_left_out() {
        let made = object(
            json!({"metadata": {"name": "a", "uid": "1", "managedFields": [
                {"manager": "helm", "operation": "Apply", "time": "2026-01-02T03:04:05Z", "fieldsV1": {"f:data": {}}},
                {"manager": "kwok", "operation": "Update", "fieldsV1": {}},
            ]}, "status": {"phase": "Active"}}),
            "Namespace",
            false,
        );
        let expected = json!({"metadata": {"name": "a", "managers": {"helm Apply": {"f:data": {}}}}});
        assert_eq!(made, expected);
    }
}
