//! `spec.dependsOn` as a graph: objects that wait for each other. Pure.

use std::collections::{HashSet, VecDeque};

use serde_json::{Value, json};

use crate::ObjectKey;

/// At most so many objects are looked at: a cycle that people make by mistake is short.
const LOOKED_AT: usize = 256;

/// Finds the shortest way from `start` over one of its dependencies back to itself, both ends included. `of` gives the
/// dependencies of an object.
pub fn cycle(
    start: &ObjectKey,
    first: &ObjectKey,
    of: impl Fn(&ObjectKey) -> Vec<ObjectKey>,
) -> Option<Vec<ObjectKey>> {
    let mut ways = VecDeque::from([vec![start.clone(), first.clone()]]);
    let mut seen = HashSet::from([first.clone()]);
    while let Some(way) = ways.pop_front() {
        let last = way.last()?;
        if last == start {
            return Some(way);
        }
        for next in of(last) {
            if seen.len() < LOOKED_AT && seen.insert(next.clone()) {
                ways.push_back([way.as_slice(), &[next]].concat());
            }
        }
    }
    None
}

/// Says that objects wait for each other. Those of namespaces that the first one does not name itself are not named.
pub fn told(way: &[ObjectKey]) -> String {
    let named = |index: usize, key: &ObjectKey| {
        let is_known = index < 2 || way.first().is_some_and(|start| start.namespace == key.namespace);
        if is_known {
            key.to_string()
        } else {
            "(one in another namespace)".to_owned()
        }
    };
    let names: Vec<String> = way
        .iter()
        .enumerate()
        .map(|(index, key)| named(index, key))
        .collect();
    format!("they wait for each other: {}", names.join(" → "))
}

/// What an expression may see of an object in another namespace where references between namespaces are locked: who it is and
/// how it is, nothing of what it is made of.
pub fn glimpse(object: &Value) -> Value {
    let part = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let conditions: Vec<Value> = conditions
        .into_iter()
        .flatten()
        .map(|condition| {
            // Messages quote what others wrote.
            let mut condition = condition.clone();
            condition.as_object_mut().map(|fields| fields.remove("message"));
            condition
        })
        .collect();
    json!({
        "apiVersion": part("/apiVersion"), "kind": part("/kind"),
        "metadata": {
            "name": part("/metadata/name"), "namespace": part("/metadata/namespace"),
            "generation": part("/metadata/generation"),
        },
        "status": {"observedGeneration": part("/status/observedGeneration"), "conditions": conditions},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_object_elsewhere_only_its_name_and_state_are_seen() {
        let object = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "namespace": "b", "generation": 2,
            "annotations": {"secret": "1"}}, "spec": {"secret": "2"}, "status": {"observedGeneration": 2, "inventory": "3",
            "conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "4"}]}});
        let expected = json!({"apiVersion": "v1", "kind": "K", "metadata": {"name": "a", "namespace": "b", "generation": 2},
            "status": {"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "reason": "R"}]}});
        assert_eq!(glimpse(&object), expected);
    }

    fn key(name: &str) -> ObjectKey {
        let (namespace, name) = name.split_once('/').unwrap_or(("ns", name));
        ObjectKey::new(namespace, name)
    }

    fn found(start: &str, first: &str) -> Option<String> {
        let of = |object: &ObjectKey| match (object.namespace.as_str(), object.name.as_str()) {
            ("ns", "a") => vec![key("b"), key("x/y")],
            ("ns", "b") => vec![key("c")],
            ("ns", "c") => vec![key("d"), key("a")],
            ("ns", "self") => vec![key("self")],
            ("x", "y") => vec![key("z/z")],
            ("z", "z") => vec![key("a")],
            _ => vec![],
        };
        cycle(&key(start), &key(first), of).map(|way| told(&way))
    }

    #[test]
    fn a_cycle_is_found_and_others_are_not_named() {
        assert_eq!(
            found("a", "b").unwrap(),
            "they wait for each other: ns/a → ns/b → ns/c → ns/a"
        );
        assert_eq!(
            found("self", "self").unwrap(),
            "they wait for each other: ns/self → ns/self"
        );
        assert_eq!(
            found("a", "x/y").unwrap(),
            "they wait for each other: ns/a → x/y → (one in another namespace) → ns/a"
        );
        assert_eq!(found("c", "d"), None);
    }
}
