//! Why a run pushed nothing.

use git_client::push;

use super::races::MAX_TRIES;
use super::{chosen, message, scope, settled, target, update, way, way_back};

/// Why nothing was pushed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// `spec.policySelector`.
    #[error("failed to parse policy selector: {0}")]
    Selector(String),
    /// Policies of other namespaces.
    #[error(transparent)]
    Namespaces(#[from] chosen::Namespaces),
    /// The repository.
    #[error("failed configuring source manager")]
    Target(#[from] target::Error),
    /// The key that signs.
    #[error("failed configuring source manager")]
    Signing(#[from] git_writer::signing::Error),
    /// The fetch.
    #[error("failed to checkout source")]
    Checkout(#[source] git_client::Error),
    /// The files.
    #[error("failed to apply policies")]
    Update(#[from] update::Error),
    /// The commit.
    #[error("failed to update source")]
    Edit(#[from] git_client::edit::Error),
    /// The message of the commit.
    #[error("failed to update source")]
    Message(#[from] message::Error),
    /// The push.
    #[error("failed to update source")]
    Push(#[source] push::Error),
    /// How changes go in.
    #[error("failed to read how changes go into Git")]
    Way(#[from] way::Error),
    /// Signing in at the forge.
    #[error("failed to sign in at the Git service")]
    SignIn(#[from] remote_access::forge::Error),
    /// The forge.
    #[error(transparent)]
    Forge(#[from] forge::Error),
    /// Where values are set.
    #[error(transparent)]
    Scope(#[from] scope::Error),
    /// Choices that are held back.
    #[error(transparent)]
    WayBack(#[from] way_back::Error),
    #[error(transparent)]
    Report(#[from] crate::delivery::Invalid),
    #[error(transparent)]
    NotRecorded(#[from] settled::NotRecorded),
    /// Someone else was faster each time.
    #[error(
        "failed to update source: branch '{0}' was changed by others each of {MAX_TRIES} times that a commit was made for it"
    )]
    Races(String),
    /// A blocking step was torn down.
    #[error("failed to finish the update")]
    Abandoned,
}
