//! What of an event's metadata is for alerts, and what two events must share to be the same. Pure.

use event::{Event, keys};
use sha2::{Digest as _, Sha256};

/// Keeps the metadata that is for alerts: keys with the prefix of events or of the object's group, but no digests.
pub fn clean(event: &mut Event) {
    let group = format!("{}/", event.group());
    let events = format!("{}/", keys::GROUP);
    let excluded = [keys::CHECKSUM, keys::DIGEST].map(|key| format!("{group}{key}"));
    event.metadata.retain(|key, _| {
        !excluded.iter().any(|other| other.eq_ignore_ascii_case(key))
            && (key.starts_with(&events) || key.starts_with(&group))
    });
}

/// Drops what only tells events apart.
pub fn drop_token(event: &mut Event) {
    let token = format!("{}/{}", event.group(), keys::TOKEN);
    event.metadata.remove(&token);
}

/// The identity of an event that was cleaned: object, message, revisions and token, as in Flux.
pub fn identity(event: &Event) -> u64 {
    let object = &event.involved_object;
    let mut digest = Sha256::new();
    let mut part = |name: &str, value: &str| {
        // The length keeps two neighbours apart, whatever they hold.
        digest.update(format!("{name}={}:{value}", value.len()));
    };
    part("name", &object.name);
    part("namespace", &object.namespace);
    part("kind", &object.kind);
    part("message", &event.message);
    for key in [keys::ORIGIN_REVISION, keys::REVISION, keys::TOKEN] {
        if let Some(value) = event.of_group(key) {
            part(key, value);
        }
    }
    let digest = digest.finalize();
    digest
        .iter()
        .take(8)
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use event::InvolvedObject;

    use super::*;

    fn event(metadata: &[(&str, &str)]) -> Event {
        Event {
            involved_object: InvolvedObject {
                kind: "Kustomization".to_owned(),
                namespace: "apps".to_owned(),
                name: "web".to_owned(),
                api_version: "kustomize.toolkit.fluxcd.io/v1".to_owned(),
                ..InvolvedObject::default()
            },
            message: "failed".to_owned(),
            metadata: metadata
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect::<BTreeMap<_, _>>(),
            ..Event::default()
        }
    }

    #[test]
    fn only_metadata_for_alerts_stays() {
        let mut event = event(&[
            ("kustomize.toolkit.fluxcd.io/revision", "main@sha1:1"),
            ("kustomize.toolkit.fluxcd.io/checksum", "x"),
            ("kustomize.toolkit.fluxcd.io/Digest", "x"),
            ("kustomize.toolkit.fluxcd.io/token", "t"),
            ("event.toolkit.fluxcd.io/team", "a"),
            ("source.toolkit.fluxcd.io/revision", "x"),
            ("unrelated", "x"),
        ]);
        clean(&mut event);
        drop_token(&mut event);
        let keys: Vec<_> = event.metadata.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "event.toolkit.fluxcd.io/team",
                "kustomize.toolkit.fluxcd.io/revision"
            ]
        );
    }

    #[test]
    fn events_differ_by_object_message_revision_and_token_and_by_nothing_else() {
        let revision = "kustomize.toolkit.fluxcd.io/revision";
        let first = event(&[(revision, "1")]);
        let mut same = first.clone();
        same.reason = "Other".to_owned();
        same.involved_object.uid = "1".to_owned();
        same.metadata
            .insert("event.toolkit.fluxcd.io/team".to_owned(), "a".to_owned());
        assert_eq!(identity(&first), identity(&same));
        let mut message = first.clone();
        message.message = "failed again".to_owned();
        let mut object = first.clone();
        object.involved_object.name = "other".to_owned();
        let token = event(&[(revision, "1"), ("kustomize.toolkit.fluxcd.io/token", "1")]);
        for other in [event(&[]), event(&[(revision, "2")]), token, message, object] {
            assert_ne!(identity(&first), identity(&other), "{other:?}");
        }
    }
}
