//! Tests of texts without a service: states, descriptions and comments.

use forge::check::{Check, State};

use super::service::{COMMIT, failed, notification, succeeded};
use crate::git::comment::{self, Comment};
use crate::git::status::Status;
use crate::notification::Notification;
use crate::target::ProviderRef;

fn state(severity: &str, reason: &str) -> Option<State> {
    let status = Status::from_notification(&notification(severity, reason, "")).unwrap();
    status.map(|status| status.state)
}

#[test]
fn only_an_event_of_success_makes_a_commit_green() {
    for (severity, reason, expected) in [
        ("info", "ReconciliationSucceeded", Some(State::Success)),
        ("info", "UpgradeSucceeded", Some(State::Success)),
        ("info", "NewArtifact", Some(State::Success)),
        ("error", "HealthCheckFailed", Some(State::Failure)),
        ("error", "DependencyNotReady", Some(State::Failure)),
        ("info", "DependencyNotReady", Some(State::Pending)),
        ("info", "HealthCheckCanceled", Some(State::Pending)),
        ("info", "Progressing", Some(State::Pending)),
        ("info", "PendingRelease", Some(State::Pending)),
        ("info", "ArtifactFailed", Some(State::Pending)),
        ("trace", "Progressing", Some(State::Pending)),
        ("info", "RollbackSucceeded", None),
        ("info", "DriftDetected", None),
    ] {
        assert_eq!(state(severity, reason), expected, "{severity} {reason}");
    }
    let error = Status::from_notification(&notification("fatal", "X", ""))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "can't convert severity 'fatal' to the state of a commit: it must be info or error"
    );
}

#[test]
fn a_status_has_the_words_of_flux() {
    let status = Status::from_notification(&failed()).unwrap().unwrap();
    assert_eq!(status.commit, COMMIT);
    assert_eq!(status.id, "kustomization/webapp/0c9c2e41");
    assert_eq!(status.object, "kustomization/webapp");
    assert_eq!(status.description, "health check failed");
    for (reason, words) in [
        ("ApplySucceeded", "apply succeeded"),
        ("OCIArtifactFailed", "oci artifact failed"),
        ("PDFLoader2X", "pdf loader 2 x"),
        ("build-failed", "build - failed"),
        ("Ünïcode", "ünïcode"),
        ("", ""),
    ] {
        let status = Status::from_notification(&notification("error", reason, ""))
            .unwrap()
            .unwrap();
        assert_eq!(status.description, words);
    }
}

#[test]
fn a_template_says_why_within_the_limit() {
    let mut notification = failed();
    notification.text = Some(format!("web:\n  {}", "é".repeat(300)));
    let status = Status::from_notification(&notification).unwrap().unwrap();
    assert_eq!(status.description.chars().count(), 140);
    assert!(status.description.starts_with("web: éé") && status.description.ends_with('…'));
}

#[test]
fn without_an_id_or_a_commit_there_is_no_status() {
    let mut notification = failed();
    notification.commit_status = None;
    let error = Status::from_notification(&notification).unwrap_err().to_string();
    assert_eq!(error, "commit status cannot be empty");
    let mut notification = failed();
    notification.event.metadata.clear();
    assert_eq!(
        Status::from_notification(&notification).unwrap_err().to_string(),
        "missing revision metadata"
    );
}

#[test]
fn what_stands_is_not_said_again_and_what_ended_is_not_taken_back() {
    let standing = |state, description: &str| Check {
        name: "kustomization/webapp/0c9c2e41".to_owned(),
        state,
        description: description.to_owned(),
    };
    let failure = Status::from_notification(&failed()).unwrap().unwrap();
    assert!(failure.is_news(None));
    assert!(!failure.is_news(Some(&standing(State::Failure, "health check failed"))));
    assert!(failure.is_news(Some(&standing(State::Failure, "build failed"))));
    assert!(failure.is_news(Some(&standing(State::Success, "health check failed"))));
    let pending = Status::from_notification(&notification("info", "Progressing", ""))
        .unwrap()
        .unwrap();
    assert!(pending.is_news(None));
    for state in [State::Success, State::Failure, State::Pending] {
        assert!(!pending.is_news(Some(&standing(state, "x"))));
    }
}

#[test]
fn a_key_is_the_sha_1_of_the_id() {
    let mut notification = failed();
    notification.commit_status = Some("kustomization/namespace-foo-and-service-bar".to_owned());
    let status = Status::from_notification(&notification).unwrap().unwrap();
    assert_eq!(status.key(), "12ea142172e98435e16336acbbed8919610922c3");
}

fn provider() -> ProviderRef {
    ProviderRef {
        uid: "uid".to_owned(),
        ..ProviderRef::default()
    }
}

#[test]
fn a_comment_is_that_of_flux() {
    let comment = Comment::new(&failed(), &provider(), comment::PULL_REQUEST).unwrap();
    assert_eq!(comment.number, 7);
    assert_eq!(
        comment.body,
        format!(
            "<!-- flux-pr-comment-key:uid/Kustomization/apps/webapp -->\n\n## Flux Status\n\n⚠️ Kustomization/apps/webapp\n\n\
             timeout waiting for: Deployment/apps/web\n\nMetadata:\n* `revision`: main@sha1:{COMMIT}\n"
        )
    );
    let mut worded = succeeded();
    worded.text = Some("all is well".to_owned());
    let comment = Comment::new(&worded, &provider(), comment::MERGE_REQUEST).unwrap();
    assert_eq!(
        comment.body,
        "<!-- flux-mr-comment-key:uid/Kustomization/apps/webapp -->\n\n## Flux Status\n\nℹ️ Kustomization/apps/webapp\n\nall is well\n"
    );
}

#[test]
fn a_comment_needs_a_provider_and_a_number_and_has_a_limit() {
    let problem = |notification: &Notification, provider: &ProviderRef| {
        Comment::new(notification, provider, comment::PULL_REQUEST)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        problem(&failed(), &ProviderRef::default()),
        "provider UID cannot be empty"
    );
    let mut without = failed();
    without.event.metadata.remove("change_request");
    assert_eq!(
        problem(&without, &provider()),
        r#"missing "change_request" metadata key"#
    );
    for number in ["x", "-1", "", "7/../8"] {
        without
            .event
            .metadata
            .insert("change_request".to_owned(), number.to_owned());
        assert!(problem(&without, &provider()).starts_with(r#"invalid "change_request" metadata value"#));
    }
    let long = notification("error", "X", &"é".repeat(100_000));
    let comment = Comment::new(&long, &provider(), comment::PULL_REQUEST).unwrap();
    assert!((60_000..61_000).contains(&comment.body.chars().count()));
}
