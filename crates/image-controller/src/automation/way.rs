//! How the changes of an automation go into Git: as its ChangePolicy says, by a commit without one.

use api::delivery::{CHANGE_POLICY, ChangeKind, ChangePolicy, PullRequestSpec};
use api::image::ImageUpdateAutomation;
use change_window::window::{self, Gate};
use jiff::Timestamp;
use remote_access::error::ReadError;

use crate::context::Context;

/// Why it is not known how.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The ChangePolicy cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It cannot be carried out.
    #[error("ChangePolicy '{name}': {problem}")]
    Invalid {
        /// Its name.
        name: String,
        /// What is wrong.
        problem: String,
    },
}

/// How changes go in.
pub(super) enum Way {
    /// By a commit on the branch.
    Commit,
    /// By a pull request.
    PullRequest(Box<PullRequestSpec>),
    /// Not before then.
    Wait(Timestamp),
}

/// Reads how the changes of an automation go in.
pub(super) async fn way(object: &ImageUpdateAutomation, context: &Context) -> Result<Way, Error> {
    let annotations = object.metadata.annotations.as_ref();
    let Some(name) = annotations.and_then(|annotations| annotations.get(CHANGE_POLICY)) else {
        return Ok(Way::Commit);
    };
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let policy: ChangePolicy = context.reader(namespace).object(name).await?;
    let invalid = |problem: String| Error::Invalid {
        name: name.clone(),
        problem,
    };
    let gate = window::gate(&policy.spec.windows, Timestamp::now());
    if let Gate::Opens(time) = gate.map_err(|error| invalid(error.to_string()))? {
        return Ok(Way::Wait(time));
    }
    match (policy.spec.kind, policy.spec.pull_request) {
        (ChangeKind::Commit, _) => Ok(Way::Commit),
        (ChangeKind::PullRequest, Some(spec)) => Ok(Way::PullRequest(Box::new(spec))),
        (ChangeKind::Event, _) => Err(invalid(
            "spec.type Event is for pipelines; nothing is changed by it".to_owned(),
        )),
        (ChangeKind::PullRequest, None) => Err(invalid("spec.pullRequest is missing".to_owned())),
    }
}
