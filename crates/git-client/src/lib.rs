//! Git repositories over http, https and ssh: one ls-refs to learn the revision, one shallow fetch to get the content.
//!
//! In: a [`Request`] (remote, reference, the revision that is already stored). Out: the same revision again, or a
//! [`Checkout`] whose files can be read one after the other from a pack on disk. There is no work tree and no
//! repository: a depth-1 pack of exactly the wanted commit lies in a temporary directory until the checkout is
//! dropped. Not here: which files are ignored, how they are stored, submodules, signatures.

pub mod auth;
mod connection;
mod history;
pub mod pack;
pub mod reference;
mod session;
pub mod sparse;
pub mod ssh;
pub mod submodules;

use std::path::{Path, PathBuf};

pub use git_ssh::algorithms::Algorithms;
pub use gix::ObjectId;
use gix::protocol::handshake::Ref;
use reqwest::header::HeaderValue;
use tokio::time::Instant;
use transport::cause::Cause;
use transport::nearest::Nearest;
use transport::received::Received;
use transport::stop::Stop;
use transport::{http, semver};
use url::Url;

use self::pack::Pack;
use self::reference::{Reference, Resolved};
use self::session::Session;
use self::sparse::Sparse;

/// Why a repository could not be fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The ref is not there.
    #[error("couldn't find remote ref '{name}'{nearest}")]
    FindReference {
        /// Its full name.
        name: String,
        /// References that the remote has instead.
        nearest: Nearest,
    },
    /// The name given in `spec.ref.name` is not there.
    #[error("unable to resolve ref '{name}' to a specific commit{nearest}")]
    ResolveName {
        /// The name as given.
        name: String,
        /// References that the remote has instead.
        nearest: Nearest,
    },
    /// No tag lies in the version range.
    #[error("no match found for semver: {range} ({nearest})")]
    MatchTag {
        /// The range as given.
        range: String,
        /// References that the remote has instead.
        nearest: String,
    },
    /// The version range cannot be read.
    #[error("semver parse error")]
    ParseRange(#[from] semver::Error),
    /// The given commit is not a commit id.
    #[error("failed to parse commit '{id}': a commit is named by all of its 40 hexadecimal digits")]
    ParseCommit {
        /// The text as given.
        id: String,
    },
    /// No ref can have this name.
    #[error("ref '{name}' is invalid")]
    InvalidReference {
        /// The name as given.
        name: String,
    },
    /// The repository has no commit at all.
    #[error("git repository is empty")]
    EmptyRepository,
    /// The server does not have, or does not give, the commit.
    #[error(
        "couldn't find commit '{commit}': the server does not have it, or does not hand out what no branch or tag leads to"
    )]
    FindCommit {
        /// The commit.
        commit: ObjectId,
    },
    /// The commit is there, and the branch does not lead to it.
    #[error(
        "unable to resolve commit object for '{commit}': object not found: it is not on branch '{branch}'; name the branch \
         that it is on, or none"
    )]
    NotOnBranch {
        /// The commit.
        commit: ObjectId,
        /// The branch.
        branch: String,
    },
    /// The server cannot be talked to, or refuses.
    #[error("{}", refusal(.0))]
    Request(#[source] http::Error),
    /// There is no connection to a server of ssh.
    #[error("repository is unreachable: failed to reach '{address}': {cause}")]
    Reach {
        /// `host:port`.
        address: String,
        /// Why not.
        cause: Cause,
    },
    /// The same over ssh.
    #[error(transparent)]
    Ssh(git_ssh::Error),
    /// The private key or the host keys cannot be used.
    #[error("unable to construct auth method with options")]
    ConstructAuth(#[from] ssh::Error),
    /// The time of `spec.timeout` is over.
    #[error("timed out: failed to fetch the commit in time")]
    Wait(#[source] http::TimedOut),
    /// The conversation went wrong above the transport.
    #[error("failed to talk Git's protocol: {0}")]
    Talk(String),
    /// More than is taken of anybody.
    #[error("failed to receive the commit: {what} more than {limit}")]
    TooLarge {
        /// The missing part, with its verb.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The received content cannot be read.
    #[error("failed to read the received commit")]
    ReadPack(#[from] pack::Error),
    /// There is no room, or no permission, for the pack.
    #[error("failed to make a directory for the received commit")]
    MakeDirectory(#[source] std::io::Error),
    /// The fetch was torn down with the process.
    #[error("failed to finish the fetch")]
    Abandoned,
}

#[cfg(test)]
impl Error {
    /// Returns whether other credentials could help.
    pub fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Request(error) if error.kind() == http::Kind::Unauthorized)
    }
}

impl From<git_ssh::Error> for Error {
    fn from(error: git_ssh::Error) -> Self {
        match error {
            git_ssh::Error::Dial { address, source } => Self::Reach {
                address,
                cause: Cause::of(&source),
            },
            git_ssh::Error::Wait { .. } => Self::Wait(http::TimedOut),
            error => Self::Ssh(error),
        }
    }
}

/// Words of go-git, where it has some.
fn refusal(error: &http::Error) -> &'static str {
    match error {
        http::Error::Status { status, .. } if status.as_u16() == 401 => "authentication required",
        http::Error::Status { status, .. } if status.as_u16() == 403 => "authorization failed",
        error => match error.kind() {
            http::Kind::Unauthorized => "authentication required",
            http::Kind::NotFound => "repository not found",
            http::Kind::Timeout => "timed out",
            http::Kind::Unreachable => "repository is unreachable",
            http::Kind::Refused => "failed to talk to the server",
        },
    }
}

/// A repository and how to reach it.
pub struct Remote {
    /// Without a password; with a user only for ssh.
    pub url: Url,
    /// Over which protocol, and as whom.
    pub way: Way,
}

/// How a remote is reached.
pub enum Way {
    /// Over http or https.
    Http {
        /// Client with the object's TLS and proxy settings.
        client: reqwest::Client,
        /// Sent to the server of the URL only.
        authorization: Option<HeaderValue>,
    },
    /// Over ssh.
    Ssh(Box<ssh::Settings>),
}

/// One fetch.
pub struct Request {
    /// The repository.
    pub remote: Remote,
    /// The reference to fetch.
    pub reference: Reference,
    /// The folders that are wanted; all without.
    pub sparse: Option<Sparse>,
    /// When the remote is at this revision, nothing but ls-refs is requested.
    pub unless_revision: Option<String>,
    /// Where temporary packs go.
    pub directory: PathBuf,
    /// How packs are received.
    pub packs: git_pack::Settings,
    /// All must be over by then.
    pub deadline: Instant,
    /// Ends the fetch before that.
    pub stop: Stop,
}

/// Result of a fetch.
pub enum Outcome {
    /// The revision that the caller knows.
    Unchanged(Resolved),
    /// Another one, with its content.
    Fetched(Box<Checkout>),
}

/// A received commit.
pub struct Checkout {
    /// Which commit, and by which name.
    pub resolved: Resolved,
    /// First line of the commit message.
    pub subject: String,
    /// Its files.
    pub pack: Pack,
}

/// Fetches on a blocking thread. When the deadline passes, or nobody waits any more, the thread is told to end.
pub async fn fetch(request: Request) -> Result<Outcome, Error> {
    let (stop, deadline) = (request.stop.clone(), request.deadline);
    let waiting = stop.when_dropped();
    let mut fetching = {
        let received = Received::here();
        let fetch = move || fetch_blocking(&request);
        tokio::task::spawn_blocking(move || received.within(fetch))
    };
    let result = tokio::select! {
        result = &mut fetching => result,
        () = tokio::time::sleep_until(deadline) => {
            stop.now();
            fetching.await
        }
    };
    waiting.disarm();
    match result.map_err(|_| Error::Abandoned)? {
        // The transport knows what was waited for; whatever else fails when it is told to end says nothing.
        Err(error @ Error::Request(http::Error::Wait { .. })) => Err(error),
        Err(_) if stop.check().is_err() => Err(Error::Wait(http::TimedOut)),
        result => result,
    }
}

fn fetch_blocking(request: &Request) -> Result<Outcome, Error> {
    request.reference.check()?;
    let mut session = Session::open(request)?;
    let refs = session.list_refs(&request.reference)?;
    let resolved = resolve(&mut session, &request.reference, &refs)?;
    let branch = request.reference.branch_of_commit(&refs);
    drop(refs);
    if request.unless_revision.as_ref() == Some(&resolved.revision) {
        return Ok(Outcome::Unchanged(resolved));
    }
    let directory = tempfile::Builder::new()
        .prefix("git-")
        .tempdir_in(&request.directory)
        .map_err(Error::MakeDirectory)?;
    let pack = receive(&mut session, request, &resolved, directory.path())?;
    drop(session);
    if let Some((branch, head)) = branch.filter(|(_, head)| *head != resolved.commit) {
        history::check(request, &resolved, &branch, head)?;
    }
    let subject = pack.subject().to_owned();
    Ok(Outcome::Fetched(Box::new(Checkout {
        resolved,
        subject,
        pack,
    })))
}

/// Finds the commit. If it is not among the refs that were asked for, the others are looked at, for the message.
fn resolve(session: &mut Session, reference: &Reference, refs: &[Ref]) -> Result<Resolved, Error> {
    let error = match reference.resolve(refs) {
        Err(error @ (Error::FindReference { .. } | Error::ResolveName { .. })) => error,
        result => return result,
    };
    let siblings = session.list_siblings(reference);
    if siblings.is_empty() {
        return Err(error);
    }
    // Found now means that it was made a moment ago. The next fetch has it.
    reference.resolve(&siblings).and(Err(error))
}

/// Receives the commit, with all of its content or, where the server can leave out the rest, with what is wanted of it.
fn receive(
    session: &mut Session,
    request: &Request,
    resolved: &Resolved,
    directory: &Path,
) -> Result<Pack, Error> {
    let sparse = request
        .sparse
        .as_ref()
        .filter(|sparse| !sparse.is_everything() && session.is_partial());
    let filter = sparse.map(|_| sparse::NO_BLOBS);
    let received = session.receive_commit(resolved, filter, directory, &request.packs)?;
    let mut pack = Pack::open(received, resolved.commit, request.stop.clone())?;
    if let Some(sparse) = sparse {
        for blobs in sparse.blobs(&pack)?.chunks(sparse::BATCH) {
            if let Some(received) = session.receive_objects(blobs, directory, &request.packs)? {
                pack.add(received);
            }
        }
    }
    Ok(pack)
}

#[cfg(test)]
mod tests;
