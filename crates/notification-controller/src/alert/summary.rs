//! Many messages as one: the texts of groups and digests. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use event::{Event, Severity};

/// Objects that are named; the others are counted.
const MOST_LINES: usize = 30;
/// Bytes of each message in the summary.
const MOST_LINE_BYTES: usize = 300;

/// One event that tells of several, and of `more` that were not kept.
pub fn group(events: &[Event], more: usize) -> Event {
    let Some(first) = events.first() else {
        return Event::default();
    };
    let objects: BTreeSet<String> = events
        .iter()
        .map(|event| event.involved_object.to_string())
        .collect();
    let number = events.len() + more;
    let mut text = format!("{number} events of {} objects", objects.len());
    for event in events.iter().take(MOST_LINES) {
        let _ = write!(text, "\n{}: {}", event.involved_object, line(&event.message));
    }
    append_rest(&mut text, number, MOST_LINES.min(events.len()));
    Event {
        severity: worst(events),
        message: text,
        reason: "Group".to_owned(),
        metadata: shared(events),
        ..first.clone()
    }
}

/// Line of a digest about one object.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    /// The newest event.
    pub last: &'a Event,
    /// How many there were.
    pub number: u64,
    /// How many of them were errors.
    pub errors: u64,
}

/// One event that tells what happened in a period, objects that fail first.
pub fn digest(lines: &[Line<'_>], more: u64, period: &str) -> Event {
    let Some(first) = lines.first() else {
        return Event::default();
    };
    let mut sorted: Vec<_> = lines.iter().collect();
    sorted.sort_by_key(|line| !line.last.is_error());
    let failing = lines.iter().filter(|line| line.last.is_error()).count();
    let number: u64 = lines.iter().map(|line| line.number).sum::<u64>() + more;
    let mut text = format!(
        "{number} events of {} objects in {period}, {failing} objects fail",
        lines.len()
    );
    for line in sorted.iter().take(MOST_LINES) {
        let _ = write!(
            text,
            "\n{}: {} events, {} errors; last: {}",
            line.last.involved_object,
            line.number,
            line.errors,
            self::line(&line.last.message)
        );
    }
    append_rest(&mut text, lines.len(), MOST_LINES.min(lines.len()));
    let events: Vec<_> = lines.iter().map(|line| line.last.clone()).collect();
    Event {
        severity: worst(&events),
        message: text,
        reason: "Digest".to_owned(),
        metadata: shared(&events),
        ..first.last.clone()
    }
}

fn append_rest(text: &mut String, number: usize, told: usize) {
    if number > told {
        let _ = write!(text, "\nand {} more", number - told);
    }
}

fn worst(events: &[Event]) -> Severity {
    if events.iter().any(Event::is_error) {
        Severity::Error
    } else {
        Severity::Info
    }
}

/// Returns the metadata that all events share.
fn shared(events: &[Event]) -> BTreeMap<String, String> {
    let Some((first, others)) = events.split_first() else {
        return BTreeMap::new();
    };
    let in_all =
        |key: &String, value: &String| others.iter().all(|event| event.metadata.get(key) == Some(value));
    first
        .metadata
        .iter()
        .filter(|(key, value)| in_all(key, value))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// A message on one line.
fn line(message: &str) -> String {
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if message.len() <= MOST_LINE_BYTES {
        return message;
    }
    format!("{}…", &message[..message.floor_char_boundary(MOST_LINE_BYTES)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(name: &str, severity: &str, message: &str) -> Event {
        serde_json::from_value(json!({
            "involvedObject": {"kind": "Kustomization", "namespace": "apps", "name": name},
            "severity": severity, "message": message, "metadata": {"cluster": "prod", "revision": name},
        }))
        .unwrap()
    }

    #[test]
    fn a_group_names_its_objects() {
        let events = [
            event("a", "info", "applied"),
            event("b", "error", "failed:\n  badly"),
        ];
        let group = group(&events, 3);
        assert_eq!(
            group.message,
            "5 events of 2 objects\nKustomization/apps/a: applied\nKustomization/apps/b: failed: badly\nand 3 more"
        );
        assert!(group.is_error());
        assert_eq!(json!(group.metadata), json!({"cluster": "prod"}));
    }

    #[test]
    fn a_digest_tells_of_failing_objects_first() {
        let (a, b) = (event("a", "info", "applied"), event("b", "error", "failed"));
        let lines = [
            Line {
                last: &a,
                number: 4,
                errors: 1,
            },
            Line {
                last: &b,
                number: 60,
                errors: 60,
            },
        ];
        assert_eq!(
            digest(&lines, 0, "1h").message,
            "64 events of 2 objects in 1h, 1 objects fail\n\
             Kustomization/apps/b: 60 events, 60 errors; last: failed\n\
             Kustomization/apps/a: 4 events, 1 errors; last: applied"
        );
    }

    #[test]
    fn summaries_are_bounded() {
        let events: Vec<_> = (0..200)
            .map(|number| event(&number.to_string(), "error", &"ä".repeat(9000)))
            .collect();
        let group = group(&events, 1_000_000);
        assert!(group.message.len() < MOST_LINES * (MOST_LINE_BYTES + 100));
        assert!(group.message.ends_with("and 1000170 more"));
    }
}
