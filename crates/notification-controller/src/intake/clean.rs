//! Cleans incoming events: keeps the fields that alerts use, and builds the key of equal events. Pure.

use std::collections::BTreeMap;

use event::{Event, InvolvedObject, Severity, keys};
use sha2::{Digest as _, Sha256};

use super::limit::Keys;

/// Bytes kept of a message: the largest documented limit of any service.
const MOST_MESSAGE_BYTES: usize = 64 << 10;
/// Bytes kept of every other text. Longer than any valid name, so that a cut name equals no other.
const MOST_FIELD_BYTES: usize = 1 << 10;
/// End of a text that was cut.
const CUT: &str = "…";
/// Pairs of metadata that are kept.
const MOST_PAIRS: usize = 200;
/// A longer pair of metadata is dropped.
const MOST_PAIR_BYTES: usize = 16 << 10;
/// Bytes of all metadata together.
const MOST_METADATA_BYTES: usize = 64 << 10;

/// Keeps the metadata that is for alerts: keys with the prefix of events or of the object's group, but no digests. Cuts what is
/// longer than anything that Flux's controllers post, since anybody may post and all of it is kept for a while.
pub fn clean(event: &mut Event) {
    bound_fields(event);
    let group = format!("{}/", event.group());
    let events = format!("{}/", keys::GROUP);
    let excluded = [keys::CHECKSUM, keys::DIGEST].map(|key| format!("{group}{key}"));
    event.metadata.retain(|key, value| {
        !excluded.iter().any(|other| other.eq_ignore_ascii_case(key))
            && (key.starts_with(&events) || key.starts_with(&group))
            && key.len() + value.len() <= MOST_PAIR_BYTES
    });
    bound_metadata(event, &group);
}

fn bound_fields(event: &mut Event) {
    let Event {
        involved_object:
            InvolvedObject {
                kind,
                namespace,
                name,
                uid,
                api_version,
                resource_version,
                field_path,
            },
        severity,
        timestamp: _,
        message,
        reason,
        metadata: _,
        reporting_controller,
        reporting_instance,
    } = event;
    let object = [
        kind,
        namespace,
        name,
        uid,
        api_version,
        resource_version,
        field_path,
    ];
    let fields = object
        .into_iter()
        .chain([reason, reporting_controller, reporting_instance]);
    fields.for_each(|field| cut(field, MOST_FIELD_BYTES));
    if let Severity::Other(severity) = severity {
        cut(severity, MOST_FIELD_BYTES);
    }
    cut(message, MOST_MESSAGE_BYTES);
}

/// Drops what does not fit, last what the object's own controller says.
fn bound_metadata(event: &mut Event, group: &str) {
    let (mut number, mut bytes) = (0, 0);
    let (own, others): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut event.metadata)
        .into_iter()
        .partition(|(key, _)| key.starts_with(group));
    let fitting = own.into_iter().chain(others).filter(|(key, value)| {
        number += 1;
        bytes += key.len() + value.len();
        number <= MOST_PAIRS && bytes <= MOST_METADATA_BYTES
    });
    event.metadata = fitting.collect();
}

fn cut(text: &mut String, most: usize) {
    if text.len() > most {
        text.truncate(text.floor_char_boundary(most.saturating_sub(CUT.len())));
        text.push_str(CUT);
        // What was cut would take its room as long as the rest is kept.
        text.shrink_to_fit();
    }
}

/// Drops what only tells events apart.
pub fn drop_token(event: &mut Event) {
    let token = format!("{}/{}", event.group(), keys::TOKEN);
    event.metadata.remove(&token);
}

/// By what an event that was cleaned is known: object, message, revisions and token, as in Flux; and, without the latter, what
/// is right of a Kubernetes Event that counts several.
pub fn keys(event: &Event) -> Keys {
    let revisions = [keys::ORIGIN_REVISION, keys::REVISION, keys::TOKEN];
    let told_apart = revisions
        .into_iter()
        .filter_map(|key| Some((key, event.of_group(key)?)));
    Keys {
        identity: digest(event, told_apart),
        likeness: digest(event, std::iter::once(("like", ""))),
    }
}

fn digest<'a>(event: &'a Event, more: impl Iterator<Item = (&'a str, &'a str)>) -> u64 {
    let object = &event.involved_object;
    let parts = [
        ("name", object.name.as_str()),
        ("namespace", &object.namespace),
        ("kind", &object.kind),
        ("message", &event.message),
    ];
    let mut digest = Sha256::new();
    for (name, value) in parts.into_iter().chain(more) {
        // The length keeps two neighbours apart, whatever they hold.
        digest.update(format!("{name}={}:{value}", value.len()));
    }
    let digest = digest.finalize();
    digest
        .iter()
        .take(8)
        .fold(0, |number, byte| (number << 8) | u64::from(*byte))
}

/// Corrects what an event that counts several says of its revision: its annotations are those of the first. What is known of
/// the object now is told instead, or nothing.
pub fn correct_revision(event: &mut Event, current: Option<&str>) {
    let group = event.group().to_owned();
    let key = |name: &str| format!("{group}/{name}");
    event.metadata.remove(&key(keys::TOKEN));
    let Some(counted) = event.metadata.get(&key(keys::REVISION)) else {
        return;
    };
    if Some(counted.as_str()) == current {
        return;
    }
    for name in [
        key(keys::REVISION),
        key(keys::ORIGIN_REVISION),
        format!("{}/{}", keys::GROUP, keys::COMMIT),
    ] {
        event.metadata.remove(&name);
    }
    if let Some(current) = current {
        event.metadata.insert(key(keys::REVISION), current.to_owned());
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(keys(&first), keys(&same));
        let mut message = first.clone();
        message.message = "failed again".to_owned();
        let mut object = first.clone();
        object.involved_object.name = "other".to_owned();
        let token = event(&[(revision, "1"), ("kustomize.toolkit.fluxcd.io/token", "1")]);
        for other in [event(&[]), event(&[(revision, "2")]), token, message, object] {
            assert_ne!(keys(&first).identity, keys(&other).identity, "{other:?}");
            let is_alike = other.message == first.message && other.involved_object == first.involved_object;
            assert_eq!(
                keys(&first).likeness == keys(&other).likeness,
                is_alike,
                "{other:?}"
            );
        }
    }

    #[test]
    fn an_event_that_counts_several_tells_the_revision_that_is_known_or_none() {
        let annotated = event(&[
            ("kustomize.toolkit.fluxcd.io/revision", "1"),
            ("kustomize.toolkit.fluxcd.io/originRevision", "a"),
            ("kustomize.toolkit.fluxcd.io/token", "t"),
            ("event.toolkit.fluxcd.io/commit", "a"),
            ("event.toolkit.fluxcd.io/team", "b"),
        ]);
        let corrected = |current| {
            let mut event = annotated.clone();
            correct_revision(&mut event, current);
            let short = |(key, value): (&String, &String)| {
                let key = key.rsplit('/').next().unwrap_or_default();
                format!("{key}={value}")
            };
            event.metadata.iter().map(short).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(
            corrected(Some("1")),
            "commit=a team=b originRevision=a revision=1"
        );
        assert_eq!(corrected(Some("2")), "team=b revision=2");
        assert_eq!(corrected(None), "team=b");
        let mut without = event(&[]);
        correct_revision(&mut without, Some("2"));
        assert_eq!(without.metadata.len(), 0);
    }

    #[test]
    fn whatever_is_posted_what_is_kept_is_bounded() {
        let long = "ä".repeat(1 << 20);
        let mut event = event(&[
            ("kustomize.toolkit.fluxcd.io/revision", "main@sha1:1"),
            ("event.toolkit.fluxcd.io/long", &long),
        ]);
        for number in 0..10_000 {
            let key = format!("event.toolkit.fluxcd.io/{number:05}");
            event.metadata.insert(key, "x".repeat(500));
        }
        let object = &mut event.involved_object;
        for field in [
            &mut object.uid,
            &mut object.name,
            &mut object.namespace,
            &mut object.resource_version,
            &mut object.field_path,
            &mut event.message,
            &mut event.reason,
            &mut event.reporting_controller,
            &mut event.reporting_instance,
        ] {
            field.clone_from(&long);
        }
        event.severity = Severity::Other(long.clone());
        clean(&mut event);
        let written = serde_json::to_vec(&event).unwrap();
        assert!(written.len() < 160 << 10, "{}", written.len());
        assert!(event.message.ends_with("ä…") && event.message.capacity() < 70_000);
        assert!(event.metadata.len() > 100 && event.metadata.len() <= MOST_PAIRS);
        assert_eq!(event.of_group("revision"), Some("main@sha1:1"));
        assert!(!event.metadata.contains_key("event.toolkit.fluxcd.io/long"));
    }
}
