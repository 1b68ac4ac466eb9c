//! One conversation with a remote, over http or ssh: handshake, refs, objects.
//!
//! gix speaks the protocol; this says what is asked for, bounds what is received, and finds the words of the transport
//! behind an error of gix.

use std::cell::{Cell, RefCell};
use std::io;
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::rc::Rc;

use error_chain::chain;
use git_pack::{Pack, Settings};
use git_ssh::Bounds;
use gix::protocol::fetch::{Arguments, Negotiate, Response, Shallow, Tags, negotiate};
use gix::protocol::handshake::Ref;
use gix::protocol::ls_refs::RefPrefixes;
use gix::protocol::transport::client::blocking_io;
use gix::protocol::transport::client::blocking_io::http::Transport as HttpTransport;
use gix::protocol::transport::{Protocol, Service};
use gix::protocol::{Handshake, LsRefsCommand};
use gix::{ObjectId, progress};

use super::connection::{Connection, Failure};
use super::reference::{Reference, Resolved};
use super::{pack, ssh};
use crate::error::Error;
use crate::request::{Request, Way};

/// Nothing larger is received: it guards the disk, not the memory, which does not grow with the pack. What becomes an
/// artifact has half of it at most; the rest may be left out of it.
const MAX_RECEIVED: u64 = 2 << 30;
/// Refs are held in memory: about a million of them.
pub(super) const MAX_REFS_BYTES: u64 = 128 << 20;
/// Trees and blobs are left out.
const NO_CONTENT: &str = "tree:0";
/// The file that lists the commits without their history, within the directory.
const SHALLOW: &str = "shallow";
/// How often what is wanted is said. Once is enough for every server that means well.
const MAX_ROUNDS: u8 = 3;
pub(super) const AGENT: &str = concat!("git/windlass-", env!("CARGO_PKG_VERSION"));

/// A conversation after its handshake.
pub(super) struct Session {
    transport: Box<dyn blocking_io::Transport>,
    handshake: Handshake,
    trouble: Trouble,
}

/// Where the transport leaves what gix's errors have no place for, and is told how much it may receive.
enum Trouble {
    Http { failure: Failure, limit: Rc<Cell<u64>> },
    Ssh(git_ssh::Outcome),
}

impl Session {
    pub(super) fn open(request: &Request) -> Result<Self, Error> {
        let (transport, trouble) = match &request.remote.way {
            Way::Http {
                client,
                authorization,
            } => {
                let failure = Rc::new(RefCell::new(None));
                let limit = Rc::new(Cell::new(MAX_REFS_BYTES));
                let connection = Connection::new(
                    client.clone(),
                    authorization.clone(),
                    request.deadline,
                    limit.clone(),
                    failure.clone(),
                );
                let talk = |error: gix::Error| Error::Talk(chain(&error));
                let url = gix::url::parse(request.remote.url.as_str()).map_err(talk)?;
                let transport = HttpTransport::new_http(connection, url, Protocol::V2, false);
                let transport: Box<dyn blocking_io::Transport> = Box::new(transport);
                (transport, Trouble::Http { failure, limit })
            }
            Way::Ssh(settings) => {
                let bounds = Bounds {
                    deadline: request.deadline,
                    received: MAX_REFS_BYTES,
                    cancel: request.stop.token().clone(),
                };
                let access = settings.access()?;
                let (connection, outcome) = ssh::open_for_fetch(&request.remote.url, &access, &bounds)?;
                let transport: Box<dyn blocking_io::Transport> = Box::new(connection);
                (transport, Trouble::Ssh(outcome))
            }
        };
        Self::greet(transport, trouble)
    }

    fn greet(mut transport: Box<dyn blocking_io::Transport>, trouble: Trouble) -> Result<Self, Error> {
        let greet = || {
            gix::protocol::handshake(
                &mut transport,
                Service::UploadPack,
                |_| Ok(None), // credentials are sent from the start or not at all
                Vec::new(),
                &mut progress::Discard,
            )
        };
        match sane(
            "the server's list of references contradicts what it announces",
            greet,
        )? {
            Ok(handshake) => Ok(Self {
                transport,
                handshake,
                trouble,
            }),
            Err(error) => Err(trouble.explain(error)),
        }
    }

    /// Lists the refs that the reference needs. Servers of protocol 0 and 1 have listed all in the handshake.
    pub(super) fn list_refs(&mut self, reference: &Reference) -> Result<Vec<Ref>, Error> {
        if let Some(refs) = self.handshake.refs.take() {
            let is_empty = refs.is_empty() && matches!(reference, Reference::Branch(_));
            return if is_empty {
                Err(Error::EmptyRepository)
            } else {
                Ok(refs)
            };
        }
        let mut prefixes = RefPrefixes::new();
        prefixes.extend(reference.prefixes().into_iter().map(Into::into));
        let listed = sane(NO_LIST, || {
            LsRefsCommand::new(Some(prefixes), &self.handshake.capabilities, agent()).invoke_blocking(
                &mut self.transport,
                &mut progress::Discard,
                false,
            )
        });
        listed?.map_err(|error| self.trouble.explain(error))
    }

    /// Lists the refs that could have been meant when one is not there; none if the remote does not say.
    pub(super) fn list_siblings(&mut self, reference: &Reference) -> Vec<Ref> {
        let Some(prefix) = reference.siblings().filter(|_| self.is_version_2()) else {
            return Vec::new();
        };
        let mut prefixes = RefPrefixes::new();
        prefixes.extend([prefix.into()]);
        let listed = sane(NO_LIST, || {
            LsRefsCommand::new(Some(prefixes), &self.handshake.capabilities, agent()).invoke_blocking(
                &mut self.transport,
                &mut progress::Discard,
                false,
            )
        });
        listed.ok().and_then(Result::ok).unwrap_or_default()
    }

    /// Returns whether the server leaves out what it is not asked for, and gives it later.
    pub(super) fn is_partial(&self) -> bool {
        let fetch = self.handshake.capabilities.capability("fetch");
        self.is_version_2() && fetch.is_some_and(|fetch| fetch.supports("filter").unwrap_or_default())
    }

    pub(super) fn is_version_2(&self) -> bool {
        self.handshake.server_protocol_version == Protocol::V2
    }

    /// Receives single objects. None if there are none.
    pub(super) fn receive_objects(
        &mut self,
        objects: &[ObjectId],
        directory: &Path,
        packs: &Settings,
    ) -> Result<Option<Pack>, Error> {
        let want = Want {
            objects: objects.to_vec(),
            ..Want::default()
        };
        self.receive(want, &Shallow::NoChange, directory, packs, None)
    }

    /// Receives the commits that lead to one, without their content if the server can leave that out: those that do not
    /// lead to another commit as well, or all of them if the server cannot.
    pub(super) fn receive_history(
        &mut self,
        head: ObjectId,
        until: ObjectId,
        directory: &Path,
        packs: &Settings,
    ) -> Result<Option<Pack>, Error> {
        let filters = self.is_partial();
        let want = Want {
            objects: vec![head],
            have: Some(until).filter(|_| filters),
            filter: Some(NO_CONTENT).filter(|_| filters),
            rounds: 0,
        };
        self.receive(want, &Shallow::NoChange, directory, packs, None)
    }

    /// Receives what a commit has that another one, which was received before, has not.
    pub(super) fn receive_over(
        &mut self,
        resolved: &Resolved,
        known: &pack::Pack,
        filter: Option<&'static str>,
        directory: &Path,
        packs: &Settings,
    ) -> Result<Option<Pack>, Error> {
        let want = Want {
            objects: vec![resolved.commit],
            have: Some(known.id()),
            filter,
            ..Want::default()
        };
        let made = tempfile::Builder::new().prefix("git-").tempdir_in(directory);
        let directory = made.map_err(Error::MakeDirectory)?;
        // The server must not think that what led to the known commit is here.
        let shallow = format!("{}\n", known.id());
        std::fs::write(directory.path().join(SHALLOW), shallow).map_err(Error::MakeDirectory)?;
        let depth = Shallow::DepthAtRemote(std::num::NonZeroU32::MIN);
        self.receive(want, &depth, directory.path(), packs, Some(known))
    }

    /// Receives the commit without its history, and the tag that led to it.
    pub(super) fn receive_commit(
        &mut self,
        resolved: &Resolved,
        filter: Option<&'static str>,
        directory: &Path,
        packs: &Settings,
    ) -> Result<Pack, Error> {
        let commit = resolved.commit;
        let tag = resolved.tag.as_ref().and_then(|tag| tag.object);
        let want = Want {
            objects: std::iter::once(commit).chain(tag).collect(),
            filter,
            ..Want::default()
        };
        let depth = Shallow::DepthAtRemote(std::num::NonZeroU32::MIN);
        let index = self.receive(want, &depth, directory, packs, None);
        index
            .map_err(|error| match error {
                // upload-pack's words for an object that it does not have or does not give.
                Error::Talk(message) if message.contains("not our ref") => Error::FindCommit { commit },
                error => error,
            })?
            .ok_or(Error::FindCommit { commit })
    }

    fn receive(
        &mut self,
        mut want: Want,
        shallow: &Shallow,
        directory: &Path,
        packs: &Settings,
        known: Option<&pack::Pack>,
    ) -> Result<Option<Pack>, Error> {
        self.trouble.allow(MAX_RECEIVED);
        let mut outcome = None;
        let fetch = || {
            gix::protocol::fetch(
                &mut want,
                |bytes, _progress, _interrupt| {
                    let received = write(bytes, directory, packs, known);
                    let is_received = received.is_ok();
                    outcome = Some(received);
                    // The reason is in the outcome: gix's errors have no place for it.
                    let refused = || gix::Error::from_error(io::Error::other("the pack is refused"));
                    is_received.then_some(true).ok_or_else(refused)
                },
                progress::Discard,
                &packs.cancelled,
                gix::protocol::fetch::Context {
                    handshake: &mut self.handshake,
                    transport: &mut self.transport,
                    user_agent: agent(),
                    trace_packetlines: false,
                },
                gix::protocol::fetch::Options {
                    shallow_file: directory.join(SHALLOW),
                    shallow,
                    tags: Tags::None,
                    reject_shallow_remote: false,
                },
            )
        };
        let received = sane("the server's answer makes no sense", fetch)?;
        match (received, outcome) {
            (Ok(_), Some(Ok(pack))) => Ok(Some(pack).filter(|pack| !pack.is_empty())),
            (Ok(_), None) => Ok(None),
            (_, Some(Err(git_pack::Error::TooLarge { what, limit }))) => Err(Error::TooLarge { what, limit }),
            // What broke the stream is known to the transport.
            (Err(error), None | Some(Ok(_) | Err(git_pack::Error::Receive(_)))) => {
                Err(self.trouble.explain(error))
            }
            (_, Some(Err(error))) => Err(Error::ReadPack(error.into())),
        }
    }
}

/// Message for a list of references that cannot be read.
const NO_LIST: &str = "the server's list of references makes no sense";

/// Has gix talk. gix-protocol 0.68 panics on some answers that contradict themselves: on a list of protocol 0 or 1 whose
/// symbolic refs are not what was announced, and on lines where it expects the end of a section.
fn sane<T>(nonsense: &str, talk: impl FnOnce() -> T) -> Result<T, Error> {
    let talked = std::panic::catch_unwind(AssertUnwindSafe(talk));
    talked.map_err(|_| Error::Talk(nonsense.to_owned()))
}

/// Receives a pack into a file that no one else can find, and that is gone with the pack.
fn write(
    bytes: &mut dyn io::BufRead,
    directory: &Path,
    packs: &Settings,
    known: Option<&pack::Pack>,
) -> Result<Pack, git_pack::Error> {
    let file = tempfile::tempfile_in(directory).map_err(git_pack::Error::Write)?;
    match known {
        None => Pack::receive(bytes, file, packs),
        Some(known) => Pack::receive_over(bytes, file, packs, &mut |id, limit| known.find(id, limit)),
    }
}

impl Trouble {
    /// The transport's failure behind gix's error if there is one, else gix's own words.
    fn explain(&self, error: gix::Error) -> Error {
        let found = match self {
            Self::Http { failure, .. } => failure.borrow_mut().take().map(Error::Request),
            Self::Ssh(outcome) => outcome.failure().map(Error::from),
        };
        found.unwrap_or_else(|| Error::Talk(chain(&error)))
    }

    fn allow(&self, bytes: u64) {
        match self {
            Self::Http { limit, .. } => limit.set(bytes),
            Self::Ssh(outcome) => outcome.allow(bytes),
        }
    }
}

/// Wants some objects and has one or none: there is nothing to negotiate.
#[derive(Default)]
struct Want {
    objects: Vec<ObjectId>,
    have: Option<ObjectId>,
    filter: Option<&'static str>,
    rounds: u8,
}

impl Negotiate for Want {
    fn mark_complete_and_common_ref(&mut self) -> gix::Result<negotiate::Action> {
        Ok(negotiate::Action::MustNegotiate {
            remote_ref_target_known: vec![false; self.objects.len()],
        })
    }

    fn add_wants(&mut self, arguments: &mut Arguments, _known: &[bool]) -> bool {
        if let Some(filter) = self.filter.filter(|_| arguments.can_use_filter()) {
            arguments.filter(filter);
        }
        for object in &self.objects {
            arguments.want(object);
        }
        true
    }

    fn one_round(
        &mut self,
        _state: &mut negotiate::one_round::State,
        arguments: &mut Arguments,
        _previous: Option<&Response>,
    ) -> gix::Result<(negotiate::Round, bool)> {
        // It was told that this is all: a server that goes on without a pack would go on for ever.
        self.rounds += 1;
        if self.rounds > MAX_ROUNDS {
            let silent = io::Error::other("the server sends no pack");
            return Err(gix::Error::from_error(silent));
        }
        if let Some(have) = &self.have {
            arguments.have(have);
        }
        let round = negotiate::Round {
            haves_sent: usize::from(self.have.is_some()),
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

#[cfg(test)]
mod tests;
