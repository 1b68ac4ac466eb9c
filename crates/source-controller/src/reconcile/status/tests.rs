//! Tables of status tests: the previous status and the result of an attempt go in, conditions come out.

use api::source::{GitRepository, OCIRepository};
use artifact::digest::Digest;
use serde_json::{Value, json};

use super::*;
use crate::error::{Error, GitError};
use crate::kind::Seen;

const NOW: &str = "2026-11-21T10:00:00Z";
const BEFORE: &str = "2026-11-20T10:00:00Z";
const OLD: &str = "main@sha1:1111111111111111111111111111111111111111";
const NEW: &str = "main@sha1:2222222222222222222222222222222222222222";

fn address() -> AdvertisedAddress {
    AdvertisedAddress::new("store:9090")
}

fn git_repository(overlay: &Value) -> GitRepository {
    let mut object = json!({
        "metadata": {"name": "app", "namespace": "apps", "generation": 2, "annotations": {}},
        "spec": {"url": "https://h/r", "interval": "1m", "ignore": "*.md"},
    });
    for (pointer, value) in overlay.as_object().unwrap() {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let parent = if parent.is_empty() {
            Some(&mut object)
        } else {
            object.pointer_mut(parent)
        };
        parent.unwrap()[key] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message,
           "observedGeneration": 2, "lastTransitionTime": BEFORE})
}

/// The status of an object that is ready with the old revision.
fn ready() -> Value {
    let message = format!("stored artifact for revision '{OLD}'");
    json!({
        "observedGeneration": 2,
        "observedIgnore": "*.md",
        "conditions": [
            condition("Ready", "True", "Succeeded", &message),
            condition("ArtifactInStorage", "True", "Succeeded", &message),
        ],
        "artifact": {"path": "gitrepository/apps/app/1.tar.gz", "url": "http://old/1.tar.gz", "revision": OLD,
                     "digest": Digest::from_content(b"old").to_string(), "lastUpdateTime": BEFORE, "size": 3},
    })
}

fn record(revision: &str, content: &[u8]) -> Record {
    Record {
        kind: "GitRepository".to_owned(),
        namespace: "apps".to_owned(),
        name: "app".to_owned(),
        revision: revision.to_owned(),
        digest: Digest::from_content(content),
        size: 7,
        tree: Digest::from_content(b""),
        path: "gitrepository/apps/app/2.tar.gz".to_owned(),
        last_update_time: NOW.parse().unwrap(),
        metadata: BTreeMap::new(),
    }
}

fn stored(revision: &str, content: &[u8]) -> Ending {
    Ending::Stored {
        record: record(revision, content),
        headline: Some("Subject".to_owned()),
        included: Vec::new(),
        build: None,
        verified: None,
        met: None,
    }
}

fn failed(error: Error, seen: Option<&str>) -> Ending {
    let seen = seen.map(|revision| Seen {
        revision: revision.to_owned(),
        message: format!("new upstream revision '{revision}'"),
    });
    Ending::Failed(Failure { error, seen })
}

fn absent_branch() -> Error {
    GitError::of_fetch(
        "https://h/r".to_owned(),
        git_client::Error::FindReference {
            name: "refs/heads/x".to_owned(),
            nearest: Default::default(),
        },
    )
}

const ABSENT_BRANCH: &str = "failed to checkout and determine revision: unable to clone 'https://h/r': couldn't find remote ref 'refs/heads/x'";

fn progress<K: Kind>(object: &K, artifact_is_stored: bool) -> Progress {
    let references = Err(Error::Abandoned);
    let observed = super::super::observe::Observed {
        object: std::sync::Arc::new(object.clone()),
        artifact_is_stored,
        references,
        inputs: Vec::new(),
        admission: Default::default(),
    };
    match super::super::decide::decide(observed) {
        super::super::decide::Decision::Fail(_, progress) => progress,
        super::super::decide::Decision::Fetch(plan) => plan.progress,
    }
}

/// One line for each condition: "Ready=True Succeeded: message", with a star when the transition is new.
fn lines(conditions: &[Condition]) -> Vec<String> {
    let line = |condition: &Condition| {
        let Condition {
            type_,
            status,
            reason,
            message,
            ..
        } = condition;
        let star = if condition.last_transition_time.0.to_string() == NOW {
            "*"
        } else {
            ""
        };
        format!("{type_}={status}{star} {reason}: {message}")
    };
    conditions.iter().map(line).collect()
}

fn conclude_git(overlay: &Value, stored: bool, ending: Ending) -> (GitRepository, Option<Event>, Next) {
    let mut object = git_repository(overlay);
    let progress = progress(&object, stored);
    let conclusion = conclude(&object, &progress, ending, &address(), NOW.parse().unwrap());
    object.status = Some(conclusion.status);
    (object, conclusion.events.into_iter().next(), conclusion.next)
}

fn check(
    name: &str,
    overlay: &Value,
    is_stored: bool,
    ending: Ending,
    expected: &[&str],
) -> (Option<Event>, Next) {
    let (object, event, next) = conclude_git(overlay, is_stored, ending);
    assert_eq!(
        lines(api::meta::StatusObject::conditions(&object)),
        expected,
        "{name}"
    );
    (event, next)
}

#[test]
fn the_first_artifact_makes_the_object_ready() {
    let message = format!("stored artifact for revision '{NEW}'");
    let (object, event, next) = conclude_git(&json!({}), false, stored(NEW, b"new"));
    let status = object.status.unwrap();
    assert_eq!(
        lines(&status.conditions),
        [
            format!("Ready=True* Succeeded: {message}"),
            format!("ArtifactInStorage=True* Succeeded: {message}")
        ]
    );
    assert_eq!(
        serde_json::to_value(&status).unwrap(),
        json!({
            "observedGeneration": 2,
            "observedIgnore": "*.md",
            "conditions": serde_json::to_value(&status.conditions).unwrap(),
            "artifact": {
                "path": "gitrepository/apps/app/2.tar.gz",
                "url": "http://store:9090/gitrepository/apps/app/2.tar.gz",
                "revision": NEW,
                "digest": Digest::from_content(b"new").to_string(),
                "lastUpdateTime": NOW,
                "size": 7,
            },
        })
    );
    assert_eq!(next, Next::AtInterval);
    let event = event.unwrap();
    assert_eq!(
        (event.reason.as_str(), event.severity),
        ("NewArtifact", Severity::Info)
    );
    assert_eq!(event.message, "stored artifact for commit 'Subject'");
    assert_eq!(event.annotations["source.toolkit.fluxcd.io/revision"], NEW);
    assert_eq!(
        event.annotations["source.toolkit.fluxcd.io/digest"],
        Digest::from_content(b"new").to_string()
    );
}

#[test]
fn an_unchanged_remote_changes_nothing_but_the_address() {
    let before = git_repository(&json!({"/status": ready()}));
    let unchanged = Ending::UpToDate {
        revision: OLD.to_owned(),
    };
    let (after, event, next) = conclude_git(&json!({"/status": ready()}), true, unchanged);
    let mut expected = before.status.unwrap();
    expected.artifact.as_mut().unwrap().url = "http://store:9090/gitrepository/apps/app/1.tar.gz".to_owned();
    assert_eq!(after.status, Some(expected));
    assert_eq!((event, next), (None, Next::AtInterval));
}

#[test]
fn a_new_generation_and_a_request_are_acknowledged_without_a_transition() {
    let overlay = json!({
        "/status": ready(),
        "/metadata/generation": 3,
        "/metadata/annotations": {"reconcile.fluxcd.io/requestedAt": "now"},
    });
    let (after, ..) = conclude_git(
        &overlay,
        true,
        Ending::UpToDate {
            revision: OLD.to_owned(),
        },
    );
    let status = after.status.unwrap();
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(status.last_handled_reconcile_at.as_deref(), Some("now"));
    assert!(
        status
            .conditions
            .iter()
            .all(|condition| condition.observed_generation == Some(3))
    );
    assert!(
        status
            .conditions
            .iter()
            .all(|condition| condition.last_transition_time.0.to_string() == BEFORE)
    );
}

#[test]
fn failures_are_told_as_flux_tells_them() {
    let message = format!("stored artifact for revision '{OLD}'");
    let in_storage = format!("ArtifactInStorage=True Succeeded: {message}");
    let failure = format!("GitOperationFailed: {ABSENT_BRANCH}");
    let (event, next) = check(
        "a fetch at rest",
        &json!({"/status": ready()}),
        true,
        failed(absent_branch(), None),
        &[
            "Reconciling=True* ProgressingWithRetry: reconciliation in progress",
            &format!("Ready=False* {failure}"),
            &in_storage,
            &format!("FetchFailed=True* {failure}"),
        ],
    );
    assert_eq!(next, Next::AfterBackoff);
    let event = event.unwrap();
    assert_eq!(
        (event.severity, event.reason.as_str()),
        (Severity::Error, "GitOperationFailed")
    );
    assert_eq!(event.message, ABSENT_BRANCH);
    check(
        "the first fetch",
        &json!({}),
        false,
        failed(absent_branch(), None),
        &[
            "Reconciling=True* ProgressingWithRetry: building artifact",
            &format!("Ready=False* {failure}"),
            &format!("FetchFailed=True* {failure}"),
        ],
    );
    check(
        "a fetch with a new spec",
        &json!({"/status": ready(), "/metadata/generation": 3}),
        true,
        failed(absent_branch(), None),
        &[
            "Reconciling=True* ProgressingWithRetry: processing object: new generation 2 -> 3",
            &format!("Ready=False* {failure}"),
            &format!("FetchFailed=True* {failure}"),
            &in_storage,
        ],
    );
    check(
        "a full disk, after a new revision was seen",
        &json!({"/status": ready()}),
        true,
        failed(Error::Abandoned, Some(NEW)),
        &[
            &format!(
                "Reconciling=True* ProgressingWithRetry: building artifact: new upstream revision '{NEW}'"
            ),
            "Ready=False* Failed: failed to finish the work on the artifact",
            &in_storage,
            &format!("ArtifactOutdated=True* NewRevision: new upstream revision '{NEW}'"),
            "StorageOperationFailed=True* Failed: failed to finish the work on the artifact",
        ],
    );
    let (_, next) = check(
        "something that only the user can change",
        &json!({"/status": ready()}),
        true,
        failed(
            Error::Unsupported {
                field: "spec.verify".to_owned(),
            },
            None,
        ),
        &[
            "Stalled=True* Unsupported: spec.verify is not supported by this controller yet",
            "Ready=False* Unsupported: spec.verify is not supported by this controller yet",
            &in_storage,
        ],
    );
    assert_eq!(next, Next::WhenChanged);
}

#[test]
fn a_failure_leaves_the_generation_to_be_observed_and_a_stalled_one_does_not() {
    let overlay = json!({"/status": ready(), "/metadata/generation": 3});
    let (object, ..) = conclude_git(&overlay, true, failed(absent_branch(), None));
    assert_eq!(object.status.unwrap().observed_generation, Some(2));
    let refused = Error::Unsupported {
        field: "spec.verify".to_owned(),
    };
    let (object, ..) = conclude_git(&overlay, true, failed(refused, None));
    assert_eq!(object.status.unwrap().observed_generation, Some(3));
}

#[test]
fn an_artifact_that_disappeared_is_not_reported_any_more() {
    let (object, ..) = conclude_git(&json!({"/status": ready()}), false, failed(absent_branch(), None));
    let status = object.status.unwrap();
    assert_eq!(status.artifact, None);
    let expected = [
        "Reconciling=True* ProgressingWithRetry: building artifact: disappeared from storage".to_owned(),
        format!("Ready=False* GitOperationFailed: {ABSENT_BRANCH}"),
        format!("FetchFailed=True* GitOperationFailed: {ABSENT_BRANCH}"),
    ];
    assert_eq!(lines(&status.conditions), expected);
}

#[test]
fn a_recovery_is_told_once() {
    let (object, ..) = conclude_git(&json!({"/status": ready()}), true, failed(absent_branch(), None));
    let broken = serde_json::to_value(object.status).unwrap();
    let unchanged = || Ending::UpToDate {
        revision: OLD.to_owned(),
    };
    let (object, event, _) = conclude_git(&json!({"/status": broken}), true, unchanged());
    let event = event.unwrap();
    assert_eq!(
        (event.severity, event.reason.as_str()),
        (Severity::Info, "Succeeded")
    );
    assert_eq!(event.message, format!("stored artifact for commit '{OLD}'"));
    let message = format!("stored artifact for revision '{OLD}'");
    let status = object.status.unwrap();
    assert_eq!(
        lines(&status.conditions),
        [
            format!("Ready=True* Succeeded: {message}"),
            format!("ArtifactInStorage=True Succeeded: {message}")
        ]
    );
    let healthy = serde_json::to_value(status).unwrap();
    let (_, event, _) = conclude_git(&json!({"/status": healthy}), true, unchanged());
    assert_eq!(event, None);
}

#[test]
fn the_same_content_under_a_new_revision_is_not_news() {
    let (object, event, _) = conclude_git(&json!({"/status": ready()}), true, stored(NEW, b"old"));
    assert_eq!(event, None);
    assert_eq!(object.status.unwrap().artifact.unwrap().revision, NEW);
}

#[test]
fn a_long_fetch_is_told_of_in_between() {
    let in_between = |overlay: &Value, stored: bool| {
        let object = git_repository(overlay);
        let progress = progress(&object, stored);
        lines(&in_progress(&object, &progress, &address(), NOW.parse().unwrap()).conditions)
    };
    let message = format!("stored artifact for revision '{OLD}'");
    assert_eq!(
        in_between(&json!({"/status": ready()}), true),
        [
            "Reconciling=True* Progressing: reconciliation in progress".to_owned(),
            format!("Ready=True Succeeded: {message}"),
            format!("ArtifactInStorage=True Succeeded: {message}"),
        ]
    );
    assert_eq!(
        in_between(&json!({}), false),
        [
            "Reconciling=True* Progressing: building artifact",
            "Ready=Unknown* Progressing: building artifact"
        ]
    );
}

#[test]
fn a_suspended_object_keeps_its_conditions() {
    let object =
        git_repository(&json!({"/status": ready(), "/metadata/generation": 3, "/spec/suspend": true}));
    let mut expected = object.status.clone().unwrap();
    expected.observed_generation = Some(3);
    assert_eq!(suspended(&object), expected);
    let new = git_repository(&json!({"/spec/suspend": true}));
    assert_eq!(
        suspended(&new),
        Default::default(),
        "there is nothing to say of it"
    );
}

#[test]
fn an_oci_repository_has_its_own_words_and_a_second_address() {
    let object: OCIRepository = serde_json::from_value(json!({
        "metadata": {"name": "app", "namespace": "apps", "generation": 1},
        "spec": {"url": "oci://h.io/r", "interval": "1m", "layerSelector": {"operation": "copy"}},
    }))
    .unwrap();
    let revision = "latest@sha256:1";
    let record = Record {
        path: "ocirepository/apps/app/sha256:1.tar.gz".to_owned(),
        ..record(revision, b"new")
    };
    let ending = Ending::Stored {
        record,
        headline: None,
        included: Vec::new(),
        build: None,
        verified: None,
        met: None,
    };
    let conclusion = conclude(
        &object,
        &progress(&object, false),
        ending,
        &address(),
        NOW.parse().unwrap(),
    );
    let status = conclusion.status;
    assert_eq!(
        lines(&status.conditions),
        [
            "Ready=True* Succeeded: stored artifact for digest 'latest@sha256:1'",
            "ArtifactInStorage=True* Succeeded: stored artifact for digest 'latest@sha256:1'",
        ]
    );
    assert_eq!(
        status.url.as_deref(),
        Some("http://store:9090/ocirepository/apps/app/latest.tar.gz")
    );
    assert_eq!(status.observed_layer_selector, object.spec.layer_selector);
    let [event] = conclusion.events.try_into().unwrap();
    assert_eq!(
        event.message,
        "stored artifact with revision 'latest@sha256:1' from 'oci://h.io/r'"
    );
}
