//! Takes over the fields of tools that wrote an object before us. Pure: metadata in, JSON patch out.
//!
//! A field that both kubectl and we own stays when it leaves Git, because kubectl still owns it. Flux therefore makes
//! kubectl's entries in `metadata.managedFields` its own before it applies, so that the apply removes what Git does not
//! have (`ssa.PatchReplaceFieldsManagers`, kustomize-controller's `ApplyCleanupOptions`). The patch carries the version
//! that it was made from, so that it cannot undo what someone does meanwhile.

pub(crate) mod dropped;

use serde_json::{Map, Value, json};

use crate::settings::Settings;

/// Returns whether an entry of `managedFields` is made ours. Subresources (status, scale) keep their managers.
pub(crate) fn is_taken_over(manager: &str, operation: &str, subresource: &str, settings: &Settings) -> bool {
    let starts_with = |prefix: &str| manager.starts_with(prefix);
    let disallowed = settings.disallowed_field_managers.iter().any(|m| starts_with(m));
    let of_kubectl = settings.undoes_kubectl && starts_with("kubectl");
    subresource.is_empty()
        && match operation {
            "Apply" => of_kubectl || (disallowed && manager != settings.field_manager),
            "Update" => {
                of_kubectl
                    || (settings.undoes_kubectl && starts_with("before-first-apply"))
                    || starts_with(&settings.field_manager)
                    || disallowed
            }
            _ => false,
        }
}

/// Annotations that kubectl and old releases of Flux left.
const STALE_ANNOTATIONS: [&str; 3] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "kustomize.toolkit.fluxcd.io/checksum",
    "fluxcd.io/sync-checksum",
];

/// Labels that old releases of Flux left.
const STALE_LABELS: [&str; 1] = ["fluxcd.io/sync-gc-mark"];

/// Returns whether there are labels or annotations to remove.
pub(crate) fn has_stale_metadata(
    labels: &Map<String, Value>,
    annotations: &Map<String, Value>,
    settings: &Settings,
) -> bool {
    let has_annotations = STALE_ANNOTATIONS.iter().any(|key| annotations.contains_key(*key));
    settings.undoes_kubectl && (has_annotations || STALE_LABELS.iter().any(|key| labels.contains_key(*key)))
}

/// Makes the JSON patch that takes an object over, from its whole live metadata; None when there is nothing to do.
pub(crate) fn patch(metadata: &Value, settings: &Settings) -> Option<Value> {
    let mut operations = Vec::new();
    if settings.undoes_kubectl {
        remove_keys(metadata, "annotations", &STALE_ANNOTATIONS, &mut operations);
        remove_keys(metadata, "labels", &STALE_LABELS, &mut operations);
    }
    let entries = metadata
        .get("managedFields")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let is_leftover = |manager: &str, operation: &str, subresource: &str| {
        is_taken_over(manager, operation, subresource, settings)
    };
    if let Some(merged) = merge_managers(entries, &is_leftover, settings) {
        operations.push(json!({"op": "replace", "path": "/metadata/managedFields", "value": merged}));
    }
    locked(operations, metadata)
}

/// Makes the JSON patch that makes ours what the named managers have, and what we had by writing otherwise; None when
/// there is nothing to do.
pub(crate) fn patch_of(metadata: &Value, managers: &[&str], settings: &Settings) -> Option<Value> {
    let ours = settings.field_manager.as_str();
    let is_leftover = |manager: &str, operation: &str, subresource: &str| {
        let is_named = managers.contains(&manager) && manager != ours;
        subresource.is_empty() && (is_named || (manager == ours && operation == "Update"))
    };
    let entries = metadata.get("managedFields").and_then(Value::as_array)?;
    let merged = merge_managers(entries, &is_leftover, settings)?;
    let operation = json!({"op": "replace", "path": "/metadata/managedFields", "value": merged});
    locked(vec![operation], metadata)
}

/// A patch that cannot undo what someone does meanwhile.
fn locked(mut operations: Vec<Value>, metadata: &Value) -> Option<Value> {
    if operations.is_empty() {
        return None;
    }
    if let Some(version) = metadata.get("resourceVersion") {
        operations.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
    }
    Some(Value::Array(operations))
}

fn remove_keys(metadata: &Value, field: &str, keys: &[&str], operations: &mut Vec<Value>) {
    for key in keys
        .iter()
        .filter(|key| metadata.get(field).is_some_and(|map| map.get(**key).is_some()))
    {
        let path = format!("/metadata/{field}/{}", key.replace('~', "~0").replace('/', "~1"));
        operations.push(json!({"op": "remove", "path": path}));
    }
}

/// Returns the entries with those of other tools merged into ours; None when there are none.
fn merge_managers(
    entries: &[Value],
    takes: &dyn Fn(&str, &str, &str) -> bool,
    settings: &Settings,
) -> Option<Vec<Value>> {
    let text = |entry: &Value, field: &str| {
        entry
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let is_ours = |entry: &&Value| {
        text(entry, "manager") == settings.field_manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    };
    let is_leftover = |entry: &&Value| {
        let [manager, operation, subresource] =
            ["manager", "operation", "subresource"].map(|f| text(entry, f));
        takes(&manager, &operation, &subresource)
    };
    let leftovers: Vec<_> = entries.iter().filter(is_leftover).collect();
    let mut ours = entries
        .iter()
        .find(is_ours)
        .or_else(|| leftovers.first().copied())?
        .clone();
    if leftovers.is_empty() {
        return None;
    }
    ours["manager"] = Value::from(settings.field_manager.as_str());
    ours["operation"] = Value::from("Apply");
    for leftover in leftovers {
        let fields = union(fields_of(&ours), fields_of(leftover));
        ours["fieldsV1"] = fields;
    }
    let mut kept: Vec<_> = entries
        .iter()
        .filter(|e| !is_ours(e) && !is_leftover(e))
        .cloned()
        .collect();
    kept.push(ours);
    Some(kept)
}

/// Returns the entry's field set; None when it holds nothing.
fn fields_of(entry: &Value) -> Option<&Value> {
    entry
        .get("fieldsV1")
        .filter(|fields| fields.as_object().is_some_and(|map| !map.is_empty()))
}

/// Unites two field sets. A leaf is a member; a node with children is one only when it has a `.`.
fn union(a: Option<&Value>, b: Option<&Value>) -> Value {
    match (a.and_then(Value::as_object), b.and_then(Value::as_object)) {
        (Some(a), Some(b)) => Value::Object(union_of_nodes(a, b)),
        (Some(only), None) | (None, Some(only)) => Value::Object(only.clone()),
        (None, None) => json!({}),
    }
}

fn union_of_nodes(a: &Map<String, Value>, b: &Map<String, Value>) -> Map<String, Value> {
    let mut united = a.clone();
    for (key, theirs) in b {
        let merged = match a.get(key) {
            Some(ours) => union(Some(ours), Some(theirs)),
            None => theirs.clone(),
        };
        united.insert(key.clone(), merged);
    }
    if a.is_empty() != b.is_empty() {
        united.insert(".".to_owned(), json!({}));
    }
    united
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields})
    }

    #[test]
    fn named_managers_are_taken_over_and_others_stay() {
        let settings = Settings {
            field_manager: "helm-controller".into(),
            ..Settings::default()
        };
        let metadata = json!({"resourceVersion": "7", "managedFields": [
            entry("helm", "Update", json!({"f:data": {"f:a": {}}})),
            entry("helm-controller", "Apply", json!({"f:data": {"f:b": {}}})),
            entry("helm-controller", "Update", json!({"f:data": {"f:c": {}}})),
            entry("kubectl-edit", "Update", json!({"f:data": {"f:d": {}}})),
        ]});
        let patch = patch_of(&metadata, &["helm"], &settings).unwrap();
        let entries = patch[0]["value"].as_array().unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0]["manager"], "kubectl-edit");
        assert_eq!(entries[1]["manager"], "helm-controller");
        assert_eq!(
            entries[1]["fieldsV1"],
            json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}})
        );
        assert_eq!(patch[1]["value"], "7");
        let metadata = json!({"managedFields": entries});
        assert_eq!(patch_of(&metadata, &["helm"], &settings), None);
    }

    #[test]
    fn managers_are_told_apart_as_flux_does() {
        let settings = Settings {
            disallowed_field_managers: vec!["bad".into()],
            ..Settings::default()
        };
        for (manager, operation, subresource, expected) in [
            ("kubectl", "Apply", "", true),
            ("kubectl-client-side-apply", "Update", "", true),
            ("kubectl-edit", "Update", "", true),
            ("before-first-apply", "Update", "", true),
            ("before-first-apply", "Apply", "", false),
            ("kustomize-controller", "Update", "", true),
            ("kustomize-controller", "Apply", "", false),
            ("kubectl", "Update", "scale", false),
            ("bad-operator", "Apply", "", true),
            ("bad-operator", "Update", "", true),
            ("flux-client-side-apply", "Update", "", false),
            ("helm", "Update", "", false),
        ] {
            assert_eq!(
                is_taken_over(manager, operation, subresource, &settings),
                expected,
                "{manager} {operation}"
            );
        }
    }

    #[test]
    fn what_kubectl_wrote_stays_where_settings_say_so() {
        let settings = Settings {
            undoes_kubectl: false,
            disallowed_field_managers: vec!["kubectl-edit".into()],
            ..Settings::default()
        };
        let taken = |manager| is_taken_over(manager, "Update", "", &settings);
        assert_eq!(
            [
                "kubectl-rollout",
                "before-first-apply",
                "kubectl-edit",
                "kustomize-controller"
            ]
            .map(taken),
            [false, false, true, true]
        );
        let metadata = json!({
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            "managedFields": [entry("kubectl-rollout", "Update", json!({"f:spec": {}}))],
        });
        assert_eq!(patch(&metadata, &settings), None);
        let annotations = metadata["annotations"].as_object().cloned().unwrap_or_default();
        assert!(!has_stale_metadata(&Map::new(), &annotations, &settings));
    }

    #[test]
    fn leftovers_are_merged_into_our_entry_and_stale_annotations_removed() {
        let metadata = json!({
        "resourceVersion": "7",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "keep": "x"},
        "managedFields": [
            entry("kustomize-controller", "Apply", json!({"f:data": {"f:a": {}}})),
            entry("kubectl-client-side-apply", "Update", json!({"f:data": {"f:b": {}}})),
            entry("hpa", "Update", json!({"f:spec": {}})),
        ]});
        let expected = json!([
            {"op": "remove", "path": "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"},
            {"op": "replace", "path": "/metadata/managedFields", "value": [
                entry("hpa", "Update", json!({"f:spec": {}})),
                entry("kustomize-controller", "Apply", json!({"f:data": {"f:a": {}, "f:b": {}}})),
            ]},
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
        ]);
        assert_eq!(patch(&metadata, &Settings::default()), Some(expected));
    }

    #[test]
    fn without_an_entry_of_ours_the_first_leftover_becomes_it() {
        let entries = [entry("kubectl-edit", "Update", json!({"f:data": {}}))];
        let settings = Settings::default();
        let takes = |m: &str, o: &str, s: &str| is_taken_over(m, o, s, &settings);
        let merged = merge_managers(&entries, &takes, &settings).unwrap();
        assert_eq!(
            merged,
            [entry("kustomize-controller", "Apply", json!({"f:data": {}}))]
        );
    }

    #[test]
    fn an_object_of_ours_alone_needs_no_patch() {
        let metadata = json!({"resourceVersion": "7", "managedFields": [entry("kustomize-controller", "Apply", json!({}))]});
        assert_eq!(patch(&metadata, &Settings::default()), None);
        assert_eq!(patch(&json!({}), &Settings::default()), None);
    }

    #[test]
    fn an_empty_field_set_adds_no_member() {
        let entries = [
            entry("kubectl", "Update", json!({})),
            entry("kustomize-controller", "Apply", json!({"f:data": {}})),
        ];
        let settings = Settings::default();
        let takes = |m: &str, o: &str, s: &str| is_taken_over(m, o, s, &settings);
        let merged = merge_managers(&entries, &takes, &settings).unwrap();
        assert_eq!(
            merged,
            [entry("kustomize-controller", "Apply", json!({"f:data": {}}))]
        );
    }

    #[test]
    fn a_member_that_gets_children_stays_a_member() {
        let united = union(
            Some(&json!({"f:a": {}, "f:c": {".": {}}})),
            Some(&json!({"f:a": {"f:b": {}}, "f:c": {"f:d": {}}})),
        );
        assert_eq!(
            united,
            json!({"f:a": {".": {}, "f:b": {}}, "f:c": {".": {}, "f:d": {}}})
        );
    }
}
