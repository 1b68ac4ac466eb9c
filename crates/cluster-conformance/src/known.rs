//! Differences that docs/compatibility explains.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::compare::{Difference, EVENTS};
use crate::life::Step;

/// Why two clusters differ: a row of docs/compatibility.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// In a few words.
    pub what: &'static str,
    /// The heading under which the page has it.
    pub section: &'static str,
}

const KUSTOMIZATIONS: &str = "Kustomizations";
const RELEASES: &str = "HelmReleases";
const SOURCES: &str = "Sources";

const OWNERSHIP: Row = row("field ownership of built-in kinds", KUSTOMIZATIONS);
const STAGES: Row = row("a manifest that is refused", KUSTOMIZATIONS);
const WORDS: Row = row("words of failures", KUSTOMIZATIONS);
const HISTORY: Row = row("what the history says more", KUSTOMIZATIONS);
const RUNS: Row = row("Kustomization, interval", KUSTOMIZATIONS);
const SUSPENDED: Row = row("a suspended object that failed", KUSTOMIZATIONS);
const KUBECTL: Row = row("drift is undone at once", KUSTOMIZATIONS);
const EVENTS_OF_RUNS: Row = row("events of runs", KUSTOMIZATIONS);
const ACTION: Row = row("the action in the history", RELEASES);
const ORDER: Row = row("the history while an upgrade is tried again", RELEASES);
const FAILED: Row = row("a revision that failed", RELEASES);
const RECORDS: Row = row("times of a chart's files in records", RELEASES);
const HELM_WORDS: Row = row("words of failures", RELEASES);
const CORRECTED: Row = row("how drift is corrected", RELEASES);
const RENDERERS: Row = row("post-renderers that fail", RELEASES);
const HOLDER: Row = row("a namespace or definition that someone deletes", KUSTOMIZATIONS);
const UNSOURCED: Row = row("a source that is deleted under HelmCharts", SOURCES);
const HELM_EVENTS: Row = row("events of runs", RELEASES);
const NO_OP: Row = row("events of what did nothing", SOURCES);

const fn row(what: &'static str, section: &'static str) -> Row {
    Row { what, section }
}

/// The row that explains a difference; None if there is none.
pub fn row_of(difference: &Difference) -> Option<Row> {
    let kind = difference.object.split(['.', ' ']).next().unwrap_or_default();
    let path: Vec<&str> = difference.path.iter().map(String::as_str).collect();
    match (kind, &path[..]) {
        ("HelmChart" | "HelmRepository" | "GitRepository", [EVENTS]) => Some(NO_OP),
        ("HelmChart", ["status", "conditions", ..]) if difference.step == Step::Unsourced => Some(UNSOURCED),
        ("Kustomization", ["status", "history"]) if difference.step >= Step::Emptied => Some(HOLDER),
        ("Kustomization", [EVENTS]) if was_too_early(difference) => Some(HOLDER),
        ("Kustomization", [EVENTS]) => same_reasons(difference).then_some(EVENTS_OF_RUNS),
        ("HelmRelease", [EVENTS]) => same_reasons(difference).then_some(HELM_EVENTS),
        ("Kustomization", ["status", "history", .., name]) if name.starts_with("windlass.dev/") => {
            Some(HISTORY)
        }
        ("Kustomization", ["status", "history", .., "totalReconciliations"]) => Some(RUNS),
        ("Kustomization", ["status", "conditions", _, "message"]) if difference.has_failed => Some(WORDS),
        ("Kustomization", ["status", "conditions", "Reconciling", "observedGeneration"]) => Some(SUSPENDED),
        ("HelmRelease", ["status", "history", _, "action"]) => Some(ACTION),
        ("HelmRelease", ["status", "history"]) if difference.has_failed => Some(ORDER),
        ("HelmRelease", ["status", "history", _, "status"])
            if difference.ours.as_ref().is_some_and(|ours| ours == "failed") =>
        {
            Some(FAILED)
        }
        ("HelmRelease", ["status", "conditions", "Ready" | "Released", "message"])
            if difference.has_failed =>
        {
            Some(HELM_WORDS)
        }
        ("Secret", ["data", "release", "info", "description"]) => Some(HELM_WORDS),
        ("HelmRelease", [.., name]) if DIGESTS.iter().any(|digest| name.ends_with(digest)) => Some(RENDERERS),
        ("Secret", ["data", "release", "chart", .., "modtime" | "schemamodtime"]) => Some(RECORDS),
        (_, ["metadata", "managers", manager, ..]) => ownership(manager),
        (_, []) if difference.has_failed && difference.ours.is_none() => {
            is_applied_first(kind).then_some(STAGES)
        }
        // It was there before.
        ("Namespace", ["metadata", ..]) if difference.has_failed => Some(STAGES),
        _ => None,
    }
}

/// What post-renderers and common metadata were, as HelmReleases note it.
const DIGESTS: [&str; 2] = ["observedPostRenderersDigest", "observedCommonMetadataDigest"];

/// Returns whether Flux applies a kind before it asks about the rest.
fn is_applied_first(kind: &str) -> bool {
    ["ClusterRole", "CustomResourceDefinition", "Namespace"].contains(&kind) || kind.ends_with("Class")
}

fn ownership(manager: &str) -> Option<Row> {
    // Which fields of a status are there is no matter of ownership.
    if manager.ends_with(" status") {
        return None;
    }
    match manager.split(' ').next().unwrap_or_default() {
        "kustomize-controller" => Some(OWNERSHIP),
        "helm-controller" => Some(CORRECTED),
        "kubectl-edit" => Some(KUBECTL),
        _ => None,
    }
}

/// Returns whether ours tried to make a namespace again, which an overlay names itself, while it was still going.
fn was_too_early(difference: &Difference) -> bool {
    let ours = difference
        .ours
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let mut lines = ours.filter_map(Value::as_str);
    difference.step == Step::Emptied && lines.any(|line| line.contains("is being terminated"))
}

/// Events of waits that a slow machine makes longer than the second for which nothing is said.
const OF_WAITS: [&str; 3] = ["ArtifactFailed", "NoSourceArtifact", "SourceNotReady"];

/// Returns whether the events have the same types and reasons, so that only their words differ, and how often they come: drift is
/// found and corrected at once, and not when someone asks.
fn same_reasons(difference: &Difference) -> bool {
    let reasons = |events: &Option<Value>| -> BTreeSet<String> {
        let lines = events.as_ref().and_then(Value::as_array).into_iter().flatten();
        let reasons = lines.filter_map(|line| Some(line.as_str()?.split(':').next()?.to_owned()));
        let is_of_wait = |reason: &String| OF_WAITS.iter().any(|wait| reason.ends_with(wait));
        reasons.filter(|reason| !is_of_wait(reason)).collect()
    };
    reasons(&difference.peer) == reasons(&difference.ours)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ROWS: [Row; 19] = [
        OWNERSHIP,
        STAGES,
        WORDS,
        HISTORY,
        RUNS,
        SUSPENDED,
        KUBECTL,
        EVENTS_OF_RUNS,
        ACTION,
        ORDER,
        FAILED,
        RECORDS,
        HELM_WORDS,
        CORRECTED,
        RENDERERS,
        HELM_EVENTS,
        HOLDER,
        UNSOURCED,
        NO_OP,
    ];

    fn difference(object: &str, path: &[&str], peer: Option<Value>, ours: Option<Value>) -> Difference {
        Difference {
            step: Step::Created,
            case: "case".to_owned(),
            object: object.to_owned(),
            path: path.iter().map(|step| (*step).to_owned()).collect(),
            peer,
            ours,
            has_failed: false,
        }
    }

    #[test]
    fn each_row_is_in_the_page() {
        let page = include_str!("../../../docs/compatibility/flux.md");
        for Row { what, section } in ROWS {
            let (_, rows) = page.split_once(&format!("\n## {section}\n")).unwrap();
            let rows = rows.split("\n## ").next().unwrap();
            let mut cells = rows.lines().filter_map(|line| line.split('|').nth(1));
            assert!(cells.any(|cell| cell.contains(what)), "{section}: {what}");
        }
    }

    #[test]
    fn what_was_delivered_may_not_differ() {
        let deployment = |path: &[&str]| {
            row_of(&difference(
                "Deployment.apps a/b",
                path,
                Some(json!(1)),
                Some(json!(2)),
            ))
        };
        assert_eq!(deployment(&["spec", "replicas"]), None);
        assert_eq!(deployment(&["metadata", "labels", "app"]), None);
        assert_eq!(
            deployment(&["metadata", "managers", "kustomize-controller Apply", "f:spec"]),
            Some(OWNERSHIP)
        );
        let missing = |object: &str, has_failed| {
            let difference = difference(object, &[], Some(json!({})), None);
            row_of(&Difference {
                has_failed,
                ..difference
            })
        };
        assert_eq!(
            missing("ClusterRole.rbac.authorization.k8s.io /b", true),
            Some(STAGES)
        );
        assert_eq!(missing("ClusterRole.rbac.authorization.k8s.io /b", false), None);
        assert_eq!(missing("Deployment.apps a/b", true), None);
        let status = deployment(&[
            "metadata",
            "managers",
            "helm-controller Update status",
            "f:status",
        ]);
        assert_eq!(status, None);
    }

    #[test]
    fn words_of_conditions_may_differ_where_something_failed() {
        let path = ["status", "conditions", "Ready", "message"];
        let said = difference(
            "Kustomization.kustomize a/b",
            &path,
            Some(json!("a")),
            Some(json!("b")),
        );
        assert_eq!(row_of(&said), None);
        assert_eq!(
            row_of(&Difference {
                has_failed: true,
                ..said
            }),
            Some(WORDS)
        );
    }

    #[test]
    fn events_may_differ_in_words_and_not_in_reasons() {
        let told = |peer: Value, ours: Value| {
            row_of(&difference("Kustomization b", &[EVENTS], Some(peer), Some(ours)))
        };
        let peer = json!(["Normal Progressing: a created"]);
        assert_eq!(
            told(peer.clone(), json!(["Normal Progressing: a created\n\na: 1"])),
            Some(EVENTS_OF_RUNS)
        );
        assert_eq!(
            told(peer.clone(), json!(["Warning Progressing: a created"])),
            None
        );
        let waited = json!(["Normal ArtifactFailed: not yet", "Normal Progressing: a created"]);
        assert_eq!(told(peer, waited), Some(EVENTS_OF_RUNS));
    }
}
