//! Commit status of an event.
//!
//! A commit is green only by an event that says that something succeeded, never by one that merely is no error: what
//! happens on the way (waiting for dependencies, drift, a rollback) leaves the status as it is, or makes it pending
//! where no one said anything yet. So it is not green before it is red.

use event::{Event, Severity};
use forge::check::{Check, State};

use super::revision;
use crate::error::Error;
use crate::notification::Notification;
use crate::said::cut;
use crate::words::name_and_description;

/// GitHub takes 140 characters; the others have at least as many.
pub(super) const MAX_DESCRIPTION: usize = 140;

/// The reason of a step on the way, whatever its severity.
const PROGRESSING: &str = "Progressing";
/// Reasons of events that are no errors, and no successes either: things are on the way.
const ON_THE_WAY: [&str; 4] = [PROGRESSING, "ProgressingWithRetry", "PendingRelease", "Promote"];
/// How other such reasons end: `DependencyNotReady`, `HealthCheckCanceled`, `ArtifactFailed`.
const NOT_THERE: [&str; 3] = ["NotReady", "Canceled", "Failed"];
/// Reasons of events that are no errors, yet say nothing good of the commit: what went wrong was undone.
const ASIDE: [&str; 6] = [
    "RollbackSucceeded",
    "UninstallSucceeded",
    "DriftDetected",
    "DriftCorrected",
    "Suspended",
    "GarbageCollectionSucceeded",
];

/// Status of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Status {
    /// Its hash.
    pub(super) commit: String,
    /// Id of the status, which distinguishes it from others.
    pub(super) id: String,
    /// The object in small letters: `kustomization/apps`.
    pub(super) object: String,
    /// How it is.
    pub(super) state: State,
    /// Why, in a line.
    pub(super) description: String,
}

impl Status {
    /// Builds the status for an event; None if the event is not about the commit.
    pub(super) fn from_notification(notification: &Notification) -> Result<Option<Self>, Error> {
        let event = &notification.event;
        let id = notification.commit_status.clone().filter(|id| !id.is_empty());
        let id = id.ok_or_else(|| Error::invalid("commit status cannot be empty"))?;
        let Some(state) = state(event)? else {
            return Ok(None);
        };
        let (object, reason) = name_and_description(event);
        let description = match &notification.text {
            Some(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
            None => reason,
        };
        Ok(Some(Self {
            commit: revision::commit(event)?,
            id,
            object,
            state,
            description: cut(&description, MAX_DESCRIPTION).into_owned(),
        }))
    }

    /// Returns whether the service must be told, if it has `standing` already.
    pub(super) fn is_news(&self, standing: Option<&Check>) -> bool {
        match standing {
            None => true,
            // What ended is not taken back by another attempt: its own end says how it went.
            Some(_) if self.state == State::Pending => false,
            Some(standing) => standing.state != self.state || standing.description != self.description,
        }
    }

    /// The status as forges take it.
    pub(super) fn as_forge(&self) -> forge::check::Status<'_> {
        forge::check::Status {
            commit: &self.commit,
            name: &self.id,
            state: self.state,
            description: &self.description,
            url: "",
        }
    }

    /// Explains why the commit is not found.
    pub(super) fn missing(&self, repository: &str) -> String {
        let commit = &self.commit;
        format!("there is no commit {commit} in repository {repository}, or the token may not see it")
    }

    /// The id for services whose keys have no more than 40 characters: as in Flux a SHA-1.
    pub(super) fn key(&self) -> String {
        let digest =
            aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA1_FOR_LEGACY_USE_ONLY, self.id.as_bytes());
        hex::encode(digest)
    }
}

fn state(event: &Event) -> Result<Option<State>, Error> {
    let reason = event.reason.as_str();
    match &event.severity {
        _ if reason == PROGRESSING => Ok(Some(State::Pending)),
        Severity::Error => Ok(Some(State::Failure)),
        Severity::Info if is_on_the_way(reason) => Ok(Some(State::Pending)),
        Severity::Info if ASIDE.contains(&reason) => Ok(None),
        Severity::Info => Ok(Some(State::Success)),
        other => {
            let quoted: String = other.as_str().chars().take(40).collect();
            Err(Error::invalid(format!(
                "can't convert severity '{quoted}' to the state of a commit: it must be info or error"
            )))
        }
    }
}

fn is_on_the_way(reason: &str) -> bool {
    ON_THE_WAY.contains(&reason) || NOT_THERE.iter().any(|end| reason.ends_with(end))
}
