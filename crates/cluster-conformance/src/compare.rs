//! Two recordings, value by value.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::life::{Recording, Step};
use crate::snapshot::Left;

/// Something that differs.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// After which step.
    pub step: Step,
    /// In which case, by its id.
    pub case: String,
    /// `Kind.group namespace/name`.
    pub object: String,
    /// Where in the object, from its root; empty for the whole object. Positions in lists are `[]`.
    pub path: Vec<String>,
    /// What the peer has; None if nothing.
    pub peer: Option<Value>,
    /// What ours have; None if nothing.
    pub ours: Option<Value>,
    /// Whether what delivers the case is not Ready, or was not.
    pub has_failed: bool,
}

/// What the comparison found.
#[derive(Debug, Clone, Default)]
pub struct Comparison {
    /// Objects that either has, by step.
    pub objects: Vec<(Step, usize)>,
    /// Sequences of events that either has, by step.
    pub events: Vec<(Step, usize)>,
    /// All that differs, in the order of steps and cases.
    pub differences: Vec<Difference>,
}

/// The path of events, which are no part of an object.
pub const EVENTS: &str = "events";

/// Compares what the peer's controllers left with what ours left.
pub fn compare(peer: &Recording, ours: &Recording) -> Comparison {
    let mut comparison = Comparison::default();
    for ((step, peers), (_, ours)) in peer.steps.iter().zip(&ours.steps) {
        let (mut all_objects, mut all_events) = (0, 0);
        let cases: BTreeSet<_> = peers.keys().chain(ours.keys()).collect();
        for case in cases {
            let (empty_peer, empty_ours) = Default::default();
            let peers = peers.get(case).unwrap_or(&empty_peer);
            let ours = ours.get(case).unwrap_or(&empty_ours);
            let has_failed = [peers, ours].iter().any(|left| !is_ready(left));
            let mut add = |object: &str, path: Vec<String>, peer: Option<&Value>, ours: Option<&Value>| {
                comparison.differences.push(Difference {
                    step: *step,
                    case: case.clone(),
                    object: object.to_owned(),
                    path,
                    peer: peer.cloned(),
                    ours: ours.cloned(),
                    has_failed,
                });
            };
            let objects: BTreeSet<_> = peers.objects.keys().chain(ours.objects.keys()).collect();
            all_objects += objects.len();
            for object in objects {
                let (peer, ours) = (peers.objects.get(object), ours.objects.get(object));
                differing(peer, ours, &mut Vec::new(), &mut |path, peer, ours| {
                    add(object, path, peer, ours);
                });
            }
            let about: BTreeSet<_> = peers.events.keys().chain(ours.events.keys()).collect();
            all_events += about.len();
            for object in about {
                let value = |events: Option<&Vec<String>>| events.map(|lines| Value::from(lines.clone()));
                let (peer, ours) = (value(peers.events.get(object)), value(ours.events.get(object)));
                if peer != ours {
                    add(object, vec![EVENTS.to_owned()], peer.as_ref(), ours.as_ref());
                }
            }
        }
        comparison.objects.push((*step, all_objects));
        comparison.events.push((*step, all_events));
    }
    comparison
}

/// Returns whether what delivers a case was Ready, or is gone.
fn is_ready(left: &Left) -> bool {
    let deliveries = left
        .objects
        .iter()
        .filter(|(name, _)| name.starts_with("Kustomization.") || name.starts_with("HelmRelease."));
    let mut ready = deliveries.map(|(_, object)| &object["status"]["conditions"]["Ready"]["status"]);
    ready.all(|status| status == "True")
}

fn differing(
    peer: Option<&Value>,
    ours: Option<&Value>,
    path: &mut Vec<String>,
    found: &mut impl FnMut(Vec<String>, Option<&Value>, Option<&Value>),
) {
    match (peer, ours) {
        (peer, ours) if peer == ours => {}
        (Some(Value::Object(peer)), Some(Value::Object(ours))) => {
            let names: BTreeSet<_> = peer.keys().chain(ours.keys()).collect();
            for name in names {
                path.push(name.clone());
                differing(peer.get(name), ours.get(name), path, found);
                path.pop();
            }
        }
        (Some(Value::Array(peer)), Some(Value::Array(ours))) if peer.len() == ours.len() => {
            path.push("[]".to_owned());
            for (peer, ours) in peer.iter().zip(ours) {
                differing(Some(peer), Some(ours), path, found);
            }
            path.pop();
        }
        (peer, ours) => found(path.clone(), peer, ours),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(peer: &Value, ours: &Value) -> Vec<String> {
        let mut all = Vec::new();
        differing(Some(peer), Some(ours), &mut Vec::new(), &mut |path, _, _| {
            all.push(path.join("."));
        });
        all
    }

    #[test]
    fn differences_are_found_where_they_are() {
        let peer = json!({"a": {"b": 1, "c": [1, {"d": 2}]}, "e": 1});
        assert_eq!(found(&peer, &peer), Vec::<String>::new());
        let ours = json!({"a": {"b": 2, "c": [1, {"d": 3}]}, "f": 1});
        assert_eq!(found(&peer, &ours), ["a.b", "a.c.[].d", "e", "f"]);
        assert_eq!(found(&json!({"a": [1]}), &json!({"a": [1, 2]})), ["a"]);
    }
}
