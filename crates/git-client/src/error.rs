//! Errors of a fetch.

use gix::ObjectId;
use transport::cause::Cause;
use transport::http;
use transport::nearest::Nearest;

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
    ParseRange(#[from] go_semver::Error),
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
    /// Where branches part is found out from their commits alone.
    #[error(
        "the server sends commits only together with their content: it must support Git's protocol 2 with filters"
    )]
    Unfiltered,
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
    ConstructAuth(#[from] crate::ssh::Error),
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
    ReadPack(#[from] crate::pack::Error),
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
                cause: Cause::from_error(&source),
            },
            git_ssh::Error::Wait { .. } => Self::Wait(http::TimedOut),
            error => Self::Ssh(error),
        }
    }
}

/// Words of go-git, where it has some.
pub(super) fn refusal(error: &http::Error) -> &'static str {
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
