//! Metadata of an event: its own, the Alert's and the controller's, each over the one before (Flux's RFC 8).

use std::collections::BTreeMap;

use api::notification::AlertSpec;
use event::{Event, keys};

/// The reason and message of the Kubernetes Event about conflicts.
pub const CONFLICT: (&str, &str) = (
    "MetadataAppendFailed",
    "metadata key conflicts detected (please refer to the Alert API docs and Flux RFC 0008 for more information)",
);

/// Combines metadata, now without prefixes. Also returns the keys that several places set, and those places.
pub fn combine(event: &Event, spec: &AlertSpec) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let mut combined = BTreeMap::new();
    let mut places: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut set = |key: &str, value: &str, place: &'static str| {
        combined.insert(key.to_owned(), value.to_owned());
        places.entry(key.to_owned()).or_default().push(place);
    };
    for (key, value) in of_prefix(event, keys::GROUP) {
        set(key, value, "involved object annotations");
    }
    for (key, value) in &spec.event_metadata {
        set(key, value, "Alert object .spec.eventMetadata");
    }
    if let Some(summary) = &spec.summary {
        set(keys::SUMMARY, summary, "Alert object .spec.summary");
    }
    for (key, value) in of_prefix(event, event.group()) {
        set(key, value, "involved object controller metadata");
    }
    let conflicts = places.into_iter().filter(|(_, places)| places.len() > 1);
    let conflicts = conflicts.map(|(key, places)| (key, places.join(", "))).collect();
    (combined, conflicts)
}

fn of_prefix<'a>(event: &'a Event, group: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    event.metadata.iter().filter_map(move |(key, value)| {
        let key = key.strip_prefix(group)?.strip_prefix('/')?;
        Some((key, value.as_str()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_controllers_word_is_over_the_alerts_and_that_over_the_objects() {
        let event: Event = serde_json::from_value(json!({
            "involvedObject": {"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization"},
            "metadata": {
                "event.toolkit.fluxcd.io/team": "object",
                "event.toolkit.fluxcd.io/own": "object",
                "event.toolkit.fluxcd.io/summary": "object",
                "event.toolkit.fluxcd.io/revision": "object",
                "kustomize.toolkit.fluxcd.io/revision": "main@sha1:1",
            },
        }))
        .unwrap();
        let spec: AlertSpec = serde_json::from_value(json!({
            "providerRef": {"name": "p"}, "eventSources": [], "summary": "alert",
            "eventMetadata": {"team": "alert", "cluster": "prod"},
        }))
        .unwrap();
        let (combined, conflicts) = combine(&event, &spec);
        assert_eq!(
            json!(combined),
            json!({"cluster": "prod", "own": "object", "revision": "main@sha1:1", "summary": "alert", "team": "alert"})
        );
        assert_eq!(
            json!(conflicts),
            json!({
                "revision": "involved object annotations, involved object controller metadata",
                "summary": "involved object annotations, Alert object .spec.summary",
                "team": "involved object annotations, Alert object .spec.eventMetadata",
            })
        );
    }
}
