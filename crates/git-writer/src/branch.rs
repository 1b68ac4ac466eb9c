//! The two ways over the network: a fetch of what is edited, and the push of what was made of it.

use std::path::PathBuf;
use std::time::Duration;

use git_client::pack::Pack;
use git_client::push::{self, Move};
use git_client::reference::Reference;
use git_client::sparse::Sparse;
use git_client::{Object, Outcome};
use remote_access::git::Remotes;
use tokio::time::Instant;
use transport::stop::Stop;

/// Where fetched objects go, for the whole process.
#[derive(Debug, Clone)]
pub struct Workshop {
    /// Folder of temporary files.
    pub folder: PathBuf,
    /// The memory for large objects.
    pub packs: git_pack::Memory,
}

/// What is fetched.
pub struct Wanted {
    /// The branch, tag or commit.
    pub reference: Reference,
    /// Which files of it; all without.
    pub sparse: Option<Sparse>,
    /// Nothing is fetched if the reference still is at this revision.
    pub unless_revision: Option<String>,
    /// A commit that is there already.
    pub over: Option<Pack>,
}

/// Fetches what is edited. The token ends what reads it.
///
/// # Errors
/// When the repository cannot be reached in time, or does not have the reference.
pub async fn fetch(
    remotes: &Remotes,
    timeout: Duration,
    wanted: Wanted,
    workshop: &Workshop,
) -> Result<(Outcome, Stop), Error> {
    let (request, stop) = request(remotes, timeout, wanted, workshop)?;
    Ok((git_client::fetch(request).await?, stop))
}

fn request(
    remotes: &Remotes,
    timeout: Duration,
    wanted: Wanted,
    workshop: &Workshop,
) -> Result<(git_client::Request, Stop), Error> {
    let stop = Stop::default();
    let request = git_client::Request {
        remote: remotes.main()?,
        reference: wanted.reference,
        sparse: wanted.sparse,
        unless_revision: wanted.unless_revision,
        over: wanted.over,
        directory: workshop.folder.clone(),
        packs: git_pack::Settings {
            limits: git_pack::Limits::default(),
            memory: workshop.packs.clone(),
            cancelled: stop.flag().clone(),
        },
        deadline: Instant::now() + timeout,
        stop: stop.clone(),
    };
    Ok((request, stop))
}

/// Finds the commit at which a branch left another one; None if they have nothing in common.
///
/// # Errors
/// When the repository cannot be reached in time, or cannot leave out the content of commits.
pub async fn merge_base(
    remotes: &Remotes,
    timeout: Duration,
    (head, base): (git_client::ObjectId, git_client::ObjectId),
    workshop: &Workshop,
) -> Result<Option<git_client::ObjectId>, Error> {
    let reference = Reference::Commit {
        id: head.to_string(),
        known_as: None,
    };
    let wanted = Wanted {
        reference,
        sparse: None,
        unless_revision: None,
        over: None,
    };
    let (request, _) = request(remotes, timeout, wanted, workshop)?;
    Ok(git_client::merge_base(request, head, base).await?)
}

/// Why nothing was fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The way to the repository.
    #[error(transparent)]
    Reach(#[from] remote_access::git::Error),
    /// The fetch.
    #[error(transparent)]
    Fetch(#[from] git_client::Error),
}

/// Pushes objects and moves one reference.
///
/// # Errors
/// When the reference is not where the move begins ([`push::Error::is_moved`]), or the server refuses it.
pub async fn push(
    remotes: &Remotes,
    timeout: Duration,
    step: Move,
    objects: Vec<Object>,
    options: &[String],
) -> Result<(), push::Error> {
    let request = push::Request {
        remote: remotes.main().map_err(|_| git_client::Error::Abandoned)?,
        moves: vec![step],
        objects,
        options: options.to_vec(),
        deadline: Instant::now() + timeout,
        stop: Stop::default(),
    };
    push::push(request).await.map(drop)
}
