use serde_json::{Value, json};

use super::*;

fn rule(spec: Value) -> Rule {
    let alert = json!({"metadata": {"name": "a", "namespace": "apps"}, "spec": spec});
    Rule::from_alert(Arc::new(serde_json::from_value(alert).unwrap()))
}

fn event(kind: &str, namespace: &str, name: &str, severity: &str) -> Event {
    let object = json!({"kind": kind, "namespace": namespace, "name": name});
    serde_json::from_value(json!({"involvedObject": object, "severity": severity})).unwrap()
}

#[test]
fn an_alert_wants_the_events_of_its_sources() {
    let sources = json!([
        {"kind": "Kustomization", "name": "web"},
        {"kind": "HelmRelease", "name": "*", "namespace": "infra"},
    ]);
    let rule = rule(json!({"providerRef": {"name": "p"}, "eventSources": sources}));
    let cases = [
        (("Kustomization", "apps", "web"), true),
        (("Kustomization", "apps", "other"), false),
        (("Kustomization", "infra", "web"), false),
        (("GitRepository", "apps", "web"), false),
        (("HelmRelease", "infra", "any"), true),
        (("HelmRelease", "apps", "any"), false),
    ];
    for ((kind, namespace, name), wants) in cases {
        let interest = rule.interest(&event(kind, namespace, name, "info"));
        assert_eq!(interest == Interest::Yes, wants, "{kind}/{namespace}/{name}");
    }
}

#[test]
fn info_wants_all_severities_and_error_only_errors() {
    let wants = |alert: &str, severity: &str| {
        let sources = json!([{"kind": "Kustomization", "name": "*"}]);
        let rule =
            rule(json!({"providerRef": {"name": "p"}, "eventSeverity": alert, "eventSources": sources}));
        rule.interest(&event("Kustomization", "apps", "web", severity)) == Interest::Yes
    };
    assert!(wants("info", "info") && wants("info", "error") && wants("info", "fatal"));
    assert!(wants("error", "error") && !wants("error", "info") && !wants("error", "fatal"));
}

#[test]
fn a_suspended_alert_wants_nothing() {
    let sources = json!([{"kind": "Kustomization", "name": "*"}]);
    let rule = rule(json!({"providerRef": {"name": "p"}, "suspend": true, "eventSources": sources}));
    assert_eq!(
        rule.interest(&event("Kustomization", "apps", "web", "error")),
        Interest::No
    );
}

#[test]
fn labels_are_asked_for_unless_another_source_wants_the_object_anyway() {
    let labelled = json!({"kind": "Kustomization", "name": "*", "matchLabels": {"team": "a"}});
    let plain = json!({"kind": "Kustomization", "name": "web"});
    let interest = |sources: Value| {
        let rule = rule(json!({"providerRef": {"name": "p"}, "eventSources": sources}));
        rule.interest(&event("Kustomization", "apps", "web", "info"))
    };
    let team = BTreeMap::from([("team".to_owned(), "a".to_owned())]);
    assert_eq!(interest(json!([labelled])), Interest::IfLabelled(vec![team]));
    assert_eq!(interest(json!([labelled, plain])), Interest::Yes);
}

#[test]
fn lists_are_regular_expressions_of_go_and_bad_ones_are_told() {
    let through = |inclusion: Value, exclusion: Value, message: &str| {
        let rule = rule(json!({
            "providerRef": {"name": "p"}, "eventSources": [],
            "inclusionList": inclusion, "exclusionList": exclusion,
        }));
        rule.lets_through(message)
    };
    let yes = |(through, problems): (bool, Vec<Problem>)| through && problems.is_empty();
    assert!(yes(through(json!([]), json!([]), "x")));
    assert!(yes(through(json!([".*succeeded.*"]), json!([]), "it succeeded")));
    assert!(!yes(through(json!([".*succeeded.*"]), json!([]), "it failed")));
    assert!(!yes(through(
        json!([]),
        json!(["^waiting.*socket$"]),
        "waiting for a socket"
    )));
    assert!(!yes(through(json!(["a"]), json!(["b"]), "ab")));
    let (included, problems) = through(json!(["["]), json!([]), "x");
    assert!(!included);
    assert_eq!(problems[0].message, "failed to compile inclusion regex: [");
    let (through, problems) = through(json!([]), json!(["(?<n"]), "x");
    assert!(through);
    assert_eq!(problems[0].message, "failed to compile exclusion regex: (?<n");
    assert_eq!(problems[0].reason, "InvalidConfig");
}
