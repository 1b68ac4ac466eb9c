//! Results at the forge: a comment on the pull request, and a status of its commit.

use std::time::Duration;

use api::delivery::{Preview, PreviewState, PreviewedRequest};
use forge::annotation::{Annotated, Annotation};
use forge::check::{State, Status};
use forge::comment::Comment;
use forge::incoming::Incoming;
use forge::{Forge, Retry};
use kube::ResourceExt as _;
use merge_preview::Told;
use sha2::{Digest as _, Sha256};

use super::comparison::Found;
use super::repositories::Group;

/// Characters of a status: GitHub takes 140.
const MAX_DESCRIPTION: usize = 140;
/// Characters of a key, where names may have 40 only.
const KEY: usize = 32;
/// Pauses between attempts, where a forge does not answer or fails: otherwise a finished comparison waits for minutes.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// The texts about a pull request. The marker is the Preview's own.
pub(super) struct Text {
    comment: String,
    marker: String,
    line: String,
    is_success: bool,
    beside: Option<Beside>,
}

/// What stands beside the lines.
struct Beside {
    line: String,
    state: State,
    annotations: Vec<Annotation>,
}

impl Text {
    pub(super) fn is_success(&self) -> bool {
        self.is_success
    }

    pub(super) fn line(&self) -> String {
        self.line.clone()
    }
}

/// Puts the results into words.
pub(super) fn told(object: &Preview, group: &Group, one: &Incoming, found: &Found) -> Text {
    let marker = format!("<!-- windlass-preview:{} -->", object.uid().unwrap_or_default());
    let (head, base) = (found.head.to_string(), found.base.to_string());
    let told = Told {
        marker: &marker,
        head: &head,
        branch: &group.branch,
        base: &base,
        conflicts: &found.conflicts,
        changed: &found.changed,
        checks: found.checks.as_ref(),
        clusters: &found.clusters,
        shows_values: !one.is_fork,
    };
    let wanted = object
        .spec
        .checks
        .as_ref()
        .is_some_and(|checks| checks.annotations);
    let beside = found.checks.as_ref().filter(|_| wanted).map(|checks| Beside {
        line: match checks.line() {
            line if line.is_empty() => "nothing new is wrong in the files".to_owned(),
            line => line,
        },
        state: match checks.is_success() {
            true => State::Success,
            false => State::Failure,
        },
        annotations: checks.annotations(told.shows_values),
    });
    Text {
        beside,
        comment: told.comment(),
        line: told.line(),
        is_success: told.is_success(),
        marker,
    }
}

/// Publishes them. The comment is found by its author and its marker each time: a number in a status could be that of another user's comment.
pub(super) async fn say(
    object: &Preview,
    forge: &Forge<'_>,
    text: &Text,
    entry: &PreviewedRequest,
) -> Result<(), forge::Error> {
    let mut attempts = 0;
    loop {
        let said = attempt(object, forge, text, entry).await;
        let Some(pause) = said.as_ref().err().and_then(|error| pause(error, attempts)) else {
            return said;
        };
        tokio::time::sleep(pause).await;
        attempts += 1;
    }
}

/// How long to wait before another attempt, where the forge may do it then. A longer wait is left to the next pass.
fn pause(error: &forge::Error, attempts: usize) -> Option<Duration> {
    let pause = PAUSES.get(attempts).copied();
    pause.filter(|_| error.retry == Retry::Backoff)
}

async fn attempt(
    object: &Preview,
    forge: &Forge<'_>,
    text: &Text,
    entry: &PreviewedRequest,
) -> Result<(), forge::Error> {
    if object.spec.comment.unwrap_or(true) {
        let comment = Comment {
            marker: &text.marker,
            body: &text.comment,
        };
        forge.keep_comment(entry.number, comment).await?;
    }
    if let Some(beside) = &text.beside {
        let check = Annotated {
            commit: &entry.head,
            name: &name_of(object, "checks"),
            state: beside.state,
            title: &beside.line,
            annotations: &beside.annotations,
        };
        forge.annotate(check).await?;
    }
    let state = match entry.state {
        PreviewState::Pending => State::Pending,
        PreviewState::Succeeded => State::Success,
        PreviewState::Failed => State::Failure,
    };
    status(object, forge, (&entry.head, state, &entry.message)).await
}

/// Says that a commit waits for its turn.
pub(super) async fn pending(object: &Preview, forge: &Forge<'_>, commit: &str) -> Result<(), forge::Error> {
    status(object, forge, (commit, State::Pending, "waits for its turn")).await
}

async fn status(
    object: &Preview,
    forge: &Forge<'_>,
    (commit, state, line): (&str, State, &str),
) -> Result<(), forge::Error> {
    if !object.spec.commit_status.unwrap_or(true) {
        return Ok(());
    }
    let name = name_of(object, "preview");
    let description: String = line.chars().take(MAX_DESCRIPTION).collect();
    let key = hex::encode(Sha256::digest(name.as_bytes()));
    let status = Status {
        commit,
        name: &name,
        state,
        description: &description,
        url: "",
    };
    forge.set_status(status, &key[..KEY]).await
}

/// The name of a status or check of the Preview.
fn name_of(object: &Preview, what: &str) -> String {
    let namespace = object.namespace().unwrap_or_default();
    format!("windlass/{what}/{namespace}/{}", object.name_any())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forge_that_fails_is_asked_again_soon_and_not_for_long() {
        let passing = forge::Error::passing("answered 500");
        let pauses: Vec<_> = (0..).map_while(|attempts| pause(&passing, attempts)).collect();
        assert_eq!(pauses, PAUSES);
        let limited = forge::Error::new("answered 429", Retry::After(Duration::from_secs(60)));
        assert_eq!(pause(&limited, 0), None);
        assert_eq!(pause(&forge::Error::invalid("answered 403"), 0), None);
    }
}
