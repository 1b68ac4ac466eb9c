//! The patch that the client makes of three states: what was declared, what is declared, what is there. Pure.
//!
//! Objects of Kubernetes' own kinds get a strategic merge patch, in which lists are merged by the keys that Kubernetes
//! gives them; others a JSON merge patch of what was declared and what is, as Helm does. A patch that would change nothing
//! is none.

mod json_merge;
mod schema;
mod strategic;

use kube_apply::MadePatch;
use manifest::GroupVersionKind;
use serde_json::{Map, Value};

/// Makes the patch for an object that was declared before.
pub(crate) fn make(
    gvk: &GroupVersionKind,
    declared: &Map<String, Value>,
    wanted: &Map<String, Value>,
    live: &Value,
) -> Result<Option<MadePatch>, String> {
    match schema::schema_of(gvk) {
        Some(schema) => Ok(strategic(declared, wanted, live, schema)),
        None => Ok(some(json_merge::two_way(declared, wanted)).map(MadePatch::Merge)),
    }
}

/// Makes the patch for an object that was not declared by us before: what it has besides stays.
pub(crate) fn adopt(
    gvk: &GroupVersionKind,
    wanted: &Map<String, Value>,
    live: &Value,
) -> Result<Option<MadePatch>, String> {
    match schema::schema_of(gvk) {
        Some(schema) => Ok(strategic(wanted, wanted, live, schema)),
        None => {
            let live = live.as_object().ok_or("the live object is none")?;
            Ok(some(json_merge::additions(live, wanted)).map(MadePatch::Merge))
        }
    }
}

fn strategic(
    declared: &Map<String, Value>,
    wanted: &Map<String, Value>,
    live: &Value,
    schema: schema::Schema,
) -> Option<MadePatch> {
    let nothing = Map::new();
    let live = live.as_object().unwrap_or(&nothing);
    some(strategic::three_way(declared, wanted, live, Some(schema))).map(MadePatch::Strategic)
}

fn some(patch: Map<String, Value>) -> Option<Value> {
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Made by hack/oracle/helm-patch with Kubernetes' own library, v0.36.2.
    const CASES: &str = include_str!("patch/cases.json");

    fn map(value: &Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap_or_default()
    }

    fn strategic_of(made: Option<MadePatch>) -> Value {
        match made {
            None => json!({}),
            Some(MadePatch::Strategic(patch)) => patch,
            Some(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn patches_are_those_of_helm() {
        let cases: Vec<Value> = serde_json::from_str(CASES).unwrap();
        assert!(cases.len() >= 10);
        for case in cases {
            let text = |key: &str| case[key].as_str().unwrap();
            let gvk = GroupVersionKind::new(text("apiVersion"), text("kind"));
            let made = make(
                &gvk,
                &map(&case["original"]),
                &map(&case["modified"]),
                &case["live"],
            )
            .unwrap();
            assert_eq!(strategic_of(made), case["patch"], "{}", text("name"));
        }
    }

    #[test]
    fn a_list_that_cannot_be_merged_is_replaced() {
        let ports = |list: Value| {
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "m", "ports": list}]}})
        };
        let before = ports(json!([{"containerPort": 53}]));
        let both = ports(
            json!([{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]),
        );
        let gvk = GroupVersionKind::new("v1", "Pod");
        let made = make(&gvk, &map(&before), &map(&both), &before).unwrap();
        let patch = strategic_of(made);
        assert_eq!(
            patch["spec"]["containers"][0]["ports"],
            json!([{"$patch": "replace"}, {"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}])
        );
        assert_eq!(make(&gvk, &map(&both), &map(&both), &both).unwrap(), None);
    }

    #[test]
    fn what_others_added_needs_no_patch() {
        let with = |list: Value| json!({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": list}});
        let ours = with(json!([{"name": "m"}, {"name": "n"}]));
        let live =
            with(json!([{"name": "first"}, {"name": "m", "image": "i"}, {"name": "n"}, {"name": "last"}]));
        let gvk = GroupVersionKind::new("v1", "Pod");
        assert_eq!(make(&gvk, &map(&ours), &map(&ours), &live).unwrap(), None);
        let turned = with(json!([{"name": "n"}, {"name": "m"}]));
        let patch = strategic_of(make(&gvk, &map(&ours), &map(&turned), &live).unwrap());
        assert_eq!(
            patch,
            json!({"spec": {"$setElementOrder/containers": [{"name": "n"}, {"name": "m"}]}})
        );
    }

    #[test]
    fn kinds_of_others_get_a_merge_patch() {
        let gvk = GroupVersionKind::new("example.com/v1", "Thing");
        let (before, after) = (json!({"spec": {"a": 1, "b": 1}}), json!({"spec": {"a": 2}}));
        let live = json!({"spec": {"a": 1, "b": 1, "c": "user"}});
        assert_eq!(
            make(&gvk, &map(&before), &map(&after), &live).unwrap(),
            Some(MadePatch::Merge(json!({"spec": {"a": 2, "b": null}})))
        );
        assert_eq!(
            adopt(&gvk, &map(&after), &live).unwrap(),
            Some(MadePatch::Merge(json!({"spec": {"a": 2}})))
        );
    }
}
