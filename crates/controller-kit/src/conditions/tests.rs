//! Tables of Flux's rules for conditions.

use super::*;

const GENERATION: i64 = 7;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn listed(conditions: &[Condition]) -> Vec<(&str, &str, &str)> {
    conditions
        .iter()
        .map(|c| (c.type_.as_str(), c.status.as_str(), c.reason.as_str()))
        .collect()
}

fn transition(conditions: &[Condition], type_: &str) -> i64 {
    get(conditions, type_)
        .expect("it was set")
        .last_transition_time
        .0
        .as_second()
}

#[test]
fn the_transition_time_moves_with_status_reason_or_message_only() {
    let cases = [
        ("nothing changed", Fact::holds("Ready", "Succeeded", "ok"), 100),
        ("status", Fact::does_not_hold("Ready", "Succeeded", "ok"), 200),
        ("unknown", Fact::is_unknown("Ready", "Succeeded", "ok"), 200),
        ("reason", Fact::holds("Ready", "Other", "ok"), 200),
        ("message", Fact::holds("Ready", "Succeeded", "fine"), 200),
    ];
    for (name, fact, expected) in cases {
        let mut conditions = Vec::new();
        mark_true(&mut conditions, "Ready", "Succeeded", "ok", GENERATION, at(100));
        set(&mut conditions, fact.clone(), GENERATION + 1, at(200));
        assert_eq!(transition(&conditions, "Ready"), expected, "{name}");
        let condition = get(&conditions, "Ready").expect("it was set");
        assert_eq!(condition.observed_generation, Some(GENERATION + 1), "{name}");
        assert_eq!(
            (condition.status.as_str(), &condition.message),
            (fact.status, &fact.message),
            "{name}"
        );
        assert_eq!(conditions.len(), 1, "{name}");
    }
}

#[test]
fn transition_times_are_whole_seconds() {
    let mut conditions = Vec::new();
    let now = "2026-11-21T10:00:00.987654321Z".parse().expect("a time");
    mark_true(&mut conditions, "Ready", "Succeeded", "ok", GENERATION, now);
    let text = serde_json::to_value(&conditions[0]).expect("it serializes")["lastTransitionTime"].clone();
    assert_eq!(text, "2026-11-21T10:00:00Z");
}

#[test]
fn stalled_reconciling_and_ready_stand_first() {
    let mut conditions = Vec::new();
    for type_ in ["Healthy", "Ready", "ArtifactInStorage", "Reconciling", "Stalled"] {
        mark_true(&mut conditions, type_, "Reason", "", GENERATION, at(1));
    }
    let types: Vec<&str> = conditions
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(
        types,
        ["Stalled", "Reconciling", "Ready", "ArtifactInStorage", "Healthy"]
    );
    mark_true(&mut conditions, "Healthy", "Reason", "", GENERATION + 1, at(1));
    assert_eq!(
        conditions[3].type_, "Healthy",
        "a newer generation stands before older ones"
    );
}

#[test]
fn reconciling_and_stalled_exclude_each_other() {
    let mut conditions = Vec::new();
    stalled(&mut conditions, "InvalidPath", "bad", GENERATION, at(1));
    assert!(is_stalled(&conditions) && !is_reconciling(&conditions));
    reconciling(&mut conditions, "NewGeneration", "again", GENERATION, at(2));
    assert_eq!(listed(&conditions), [("Reconciling", "True", "NewGeneration")]);
    stalled(&mut conditions, "InvalidPath", "bad", GENERATION, at(3));
    assert_eq!(listed(&conditions), [("Stalled", "True", "InvalidPath")]);
}

#[test]
fn ready_needs_that_nothing_is_reconciling_or_stalled() {
    let mut conditions = Vec::new();
    assert!(!is_ready(&conditions) && is_unknown(&conditions, "Ready"));
    mark_true(&mut conditions, "Ready", "Succeeded", "", GENERATION, at(1));
    assert!(is_ready(&conditions) && is_true(&conditions, "Ready") && !is_false(&conditions, "Ready"));
    reconciling(&mut conditions, "Progressing", "", GENERATION, at(1));
    assert!(!is_ready(&conditions) && is_true(&conditions, "Ready"));
    remove(&mut conditions, "Reconciling");
    assert!(is_ready(&conditions));
    mark_false(&mut conditions, "Ready", "Failed", "", GENERATION, at(1));
    assert!(!is_ready(&conditions) && is_false(&conditions, "Ready"));
    mark_unknown(&mut conditions, "Ready", "Progressing", "", GENERATION, at(1));
    assert!(is_unknown(&conditions, "Ready"));
}

#[test]
fn long_messages_are_cut_between_characters() {
    let cases = [
        ("x".repeat(MAX_MESSAGE_LENGTH), MAX_MESSAGE_LENGTH, false),
        ("x".repeat(MAX_MESSAGE_LENGTH + 1), MAX_MESSAGE_LENGTH, true),
        ("é".repeat(MAX_MESSAGE_LENGTH), MAX_MESSAGE_LENGTH - 1, true),
    ];
    for (message, length, cut) in cases {
        let mut conditions = Vec::new();
        mark_true(&mut conditions, "Ready", "Reason", message, GENERATION, at(1));
        let message = &conditions[0].message;
        assert_eq!(message.len(), length);
        assert_eq!(message.ends_with("..."), cut);
    }
}

#[test]
fn setting_the_same_long_message_again_is_no_transition() {
    let mut conditions = Vec::new();
    for second in [1, 2] {
        mark_true(
            &mut conditions,
            "Ready",
            "Reason",
            "x".repeat(MAX_MESSAGE_LENGTH * 2),
            GENERATION,
            at(second),
        );
    }
    assert_eq!(transition(&conditions, "Ready"), 1);
}
