//! Git repositories over http and https: one ls-refs to learn the revision, one shallow fetch to get the content.
//!
//! In: a [`Request`] (remote, reference, the revision that is already stored). Out: the same revision again, or a
//! [`Checkout`] whose files can be read one after the other from a pack on disk. There is no work tree and no
//! repository: a depth-1 pack of exactly the wanted commit lies in a temporary directory until the checkout is
//! dropped. Not here: which files are ignored, how they are stored, submodules, ssh, signatures.

pub(crate) mod auth;
pub(crate) mod pack;
pub(crate) mod reference;
mod transport;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::protocol::fetch::{Arguments, Negotiate, Response, Shallow, Tags, negotiate};
use gix::protocol::handshake::Ref;
use gix::protocol::ls_refs::RefPrefixes;
use gix::protocol::transport::client::blocking_io::http::Transport;
use gix::protocol::transport::{Protocol, Service};
use gix::protocol::{Handshake, LsRefsCommand};
use gix::{ObjectId, progress};
use reqwest::header::HeaderValue;
use tokio::time::Instant;
use url::Url;

use self::pack::Pack;
use self::reference::{Reference, Resolved};
use super::http;
use super::semver;
use transport::{Connection, Failure};

/// Nothing larger is received: it guards the disk, not the memory, which does not grow with the pack.
const MAX_RECEIVED: u64 = 8 << 30;
const AGENT: &str = concat!("git/windlass-", env!("CARGO_PKG_VERSION"));

/// Why a repository could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The ref is not there.
    #[error("couldn't find remote ref '{name}'")]
    FindReference {
        /// Its full name.
        name: String,
    },
    /// The name given in `spec.ref.name` is not there.
    #[error("unable to resolve ref '{name}' to a specific commit")]
    ResolveName {
        /// The name as given.
        name: String,
    },
    /// No tag lies in the version range.
    #[error("no match found for semver: {range}")]
    MatchTag {
        /// The range as given.
        range: String,
    },
    /// The version range cannot be read.
    #[error("semver parse error")]
    ParseRange(#[from] semver::Error),
    /// What is given as commit is none.
    #[error("failed to parse commit '{id}'")]
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
    #[error("couldn't find commit '{commit}'")]
    FindCommit {
        /// The commit.
        commit: ObjectId,
    },
    /// The server cannot be talked to, or refuses.
    #[error("{}", refusal(.0.kind()))]
    Request(#[source] http::Error),
    /// The time of `spec.timeout` is over.
    #[error("failed to fetch within the time limit")]
    Wait,
    /// The conversation went wrong below HTTP.
    #[error("failed to talk Git's protocol: {0}")]
    Talk(String),
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
    /// Whether other credentials could help.
    pub(crate) fn is_unauthorized(&self) -> bool {
        matches!(self, Self::Request(error) if error.kind() == http::Kind::Unauthorized)
    }
}

fn refusal(kind: http::Kind) -> &'static str {
    match kind {
        http::Kind::Unauthorized => "authentication failed",
        http::Kind::NotFound => "repository not found",
        http::Kind::Timeout => "timed out",
        http::Kind::Unreachable => "repository is unreachable",
        http::Kind::Refused => "failed to talk to the server",
    }
}

/// A repository and how to reach it.
pub(crate) struct Remote {
    /// Without user and password.
    pub(crate) url: Url,
    /// Client with the object's TLS and proxy settings.
    pub(crate) client: reqwest::Client,
    /// Sent to the server of `url` only.
    pub(crate) authorization: Option<HeaderValue>,
}

/// One fetch.
pub(crate) struct Request {
    pub(crate) remote: Remote,
    pub(crate) reference: Reference,
    /// When the remote is at this revision, nothing but ls-refs is requested.
    pub(crate) unless_revision: Option<String>,
    /// Where temporary packs go.
    pub(crate) directory: PathBuf,
    /// All must be over by then.
    pub(crate) deadline: Instant,
}

/// What the remote has.
pub(crate) enum Outcome {
    /// The revision that the caller knows.
    Unchanged(Resolved),
    /// Another one, with its content.
    Fetched(Box<Checkout>),
}

/// A received commit.
pub(crate) struct Checkout {
    pub(crate) resolved: Resolved,
    /// First line of the commit message.
    pub(crate) subject: String,
    /// Its files.
    pub(crate) pack: Pack,
}

/// Fetches on a blocking thread. When the deadline passes, the thread is told to end and waited for.
pub(crate) async fn fetch(request: Request) -> Result<Outcome, Error> {
    let interrupt = Arc::new(AtomicBool::new(false));
    let deadline = request.deadline;
    let mut fetching = {
        let interrupt = interrupt.clone();
        tokio::task::spawn_blocking(move || fetch_blocking(&request, &interrupt))
    };
    let result = tokio::select! {
        result = &mut fetching => result,
        () = tokio::time::sleep_until(deadline) => {
            interrupt.store(true, Ordering::Relaxed);
            fetching.await
        }
    };
    match result.map_err(|_| Error::Abandoned)? {
        Err(_) if interrupt.load(Ordering::Relaxed) => Err(Error::Wait),
        result => result,
    }
}

fn fetch_blocking(request: &Request, interrupt: &AtomicBool) -> Result<Outcome, Error> {
    request.reference.check()?;
    let mut session = Session::open(request)?;
    let refs = session.list_refs(&request.reference)?;
    let resolved = request.reference.resolve(&refs)?;
    drop(refs);
    if request.unless_revision.as_ref() == Some(&resolved.revision) {
        return Ok(Outcome::Unchanged(resolved));
    }
    let pack = session.receive(&resolved, request, interrupt)?;
    let subject = pack.subject();
    Ok(Outcome::Fetched(Box::new(Checkout {
        resolved,
        subject,
        pack,
    })))
}

/// A conversation after its handshake.
struct Session {
    transport: Transport<Connection>,
    handshake: Handshake,
    failure: Failure,
}

impl Session {
    fn open(request: &Request) -> Result<Self, Error> {
        let Remote {
            url,
            client,
            authorization,
        } = &request.remote;
        let failure = Rc::new(RefCell::new(None));
        let connection = Connection::new(
            client.clone(),
            authorization.clone(),
            request.deadline,
            MAX_RECEIVED,
            failure.clone(),
        );
        let talk = |error: gix::Error| Error::Talk(chain(&error));
        let url = gix::url::parse(url.as_str()).map_err(talk)?;
        let mut transport = Transport::new_http(connection, url, Protocol::V2, false);
        let handshake = gix::protocol::handshake(
            &mut transport,
            Service::UploadPack,
            |_| Ok(None), // credentials are sent from the start or not at all
            Vec::new(),
            &mut progress::Discard,
        );
        match handshake {
            Ok(handshake) => Ok(Self {
                transport,
                handshake,
                failure,
            }),
            Err(error) => Err(explain(&failure, error)),
        }
    }

    /// Lists the refs that the reference needs. Servers of protocol 0 and 1 have listed all in the handshake.
    fn list_refs(&mut self, reference: &Reference) -> Result<Vec<Ref>, Error> {
        if let Some(refs) = self.handshake.refs.take() {
            return Ok(refs);
        }
        let mut prefixes = RefPrefixes::new();
        prefixes.extend(reference.prefixes().into_iter().map(Into::into));
        LsRefsCommand::new(Some(prefixes), &self.handshake.capabilities, agent())
            .invoke_blocking(&mut self.transport, &mut progress::Discard, false)
            .map_err(|error| explain(&self.failure, error))
    }

    /// Receives the commit without its history, and the tag that led to it.
    fn receive(
        &mut self,
        resolved: &Resolved,
        request: &Request,
        interrupt: &AtomicBool,
    ) -> Result<Pack, Error> {
        let commit = resolved.commit;
        let tag = resolved.tag.as_ref().and_then(|tag| tag.object);
        let directory = tempfile::Builder::new()
            .prefix("git-")
            .tempdir_in(&request.directory)
            .map_err(Error::MakeDirectory)?;
        let depth = std::num::NonZeroU32::MIN;
        let mut index = None;
        let received = gix::protocol::fetch(
            &mut Want(std::iter::once(commit).chain(tag).collect()),
            |bytes, progress, interrupt| {
                index = pack::write(bytes, directory.path(), progress, interrupt)?;
                Ok(true)
            },
            progress::Discard,
            interrupt,
            gix::protocol::fetch::Context {
                handshake: &mut self.handshake,
                transport: &mut self.transport,
                user_agent: agent(),
                trace_packetlines: false,
            },
            gix::protocol::fetch::Options {
                shallow_file: directory.path().join("shallow"),
                shallow: &Shallow::DepthAtRemote(depth),
                tags: Tags::None,
                reject_shallow_remote: false,
            },
        );
        if let Err(error) = received {
            return Err(match explain(&self.failure, error) {
                // upload-pack's words for an object that it does not have or does not give.
                Error::Talk(message) if message.contains("not our ref") => Error::FindCommit { commit },
                error => error,
            });
        }
        let index = index.ok_or(Error::FindCommit { commit })?;
        Ok(Pack::open(&index, commit, directory)?)
    }
}

/// Wants some objects and has nothing: there is nothing to negotiate.
struct Want(Vec<ObjectId>);

impl Negotiate for Want {
    fn mark_complete_and_common_ref(&mut self) -> gix::Result<negotiate::Action> {
        Ok(negotiate::Action::MustNegotiate {
            remote_ref_target_known: vec![false; self.0.len()],
        })
    }

    fn add_wants(&mut self, arguments: &mut Arguments, _known: &[bool]) -> bool {
        for object in &self.0 {
            arguments.want(object);
        }
        true
    }

    fn one_round(
        &mut self,
        _state: &mut negotiate::one_round::State,
        _arguments: &mut Arguments,
        _previous: Option<&Response>,
    ) -> gix::Result<(negotiate::Round, bool)> {
        let round = negotiate::Round {
            haves_sent: 0,
            in_vain: 0,
            haves_to_send: 0,
            previous_response_had_at_least_one_in_common: false,
        };
        Ok((round, true))
    }
}

fn agent() -> (&'static str, Option<String>) {
    ("agent", Some(AGENT.to_owned()))
}

/// The HTTP failure behind gix's error if there is one, else gix's own words.
fn explain(failure: &Failure, error: gix::Error) -> Error {
    match failure.borrow_mut().take() {
        Some(failure) => Error::Request(failure),
        None => Error::Talk(chain(&error)),
    }
}

/// The whole chain of an error on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let next = error.to_string();
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests;
