//! Pushes: references of a remote moved to commits of ours, over http and ssh.
//!
//! In: a [`Request`] (remote, the moves with what the references are expected to be at, the objects that the server does not
//! have). Out: all moves are made, or none of them, or an [`Error`] that says which was refused and why. A reference that
//! is not where it is expected to be is never moved: the server compares as well, under its lock. An answer that
//! gets lost is looked for: the references are read again before it is said that nothing is known.
//!
//! gix has no push; this is its own conversation (gitprotocol-pack(5)) over the transports of the fetch.

mod advertisement;
mod conversation;
mod error;
mod packet_line;
mod report;

use git_pack::Object;
use gix::ObjectId;
use tokio::time::Instant;
use transport::received::Received;
use transport::stop::Stop;

use self::advertisement::Advertisement;
use self::conversation::Conversation;
pub use self::error::Error;
use self::report::Report;
use crate::request::Remote;
use crate::session::AGENT;

/// A reference to be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// Full name, such as `refs/heads/main`.
    pub reference: String,
    /// Where it must be; None: it must not be there.
    pub from: Option<ObjectId>,
    /// Where it goes; None deletes it.
    pub to: Option<ObjectId>,
}

/// One push.
pub struct Request {
    /// The repository.
    pub remote: Remote,
    /// References to be moved, all or none.
    pub moves: Vec<Move>,
    /// Objects that the server does not have.
    pub objects: Vec<Object>,
    /// Push options, as `key=value` or a word.
    pub options: Vec<String>,
    /// All must be over by then.
    pub deadline: Instant,
    /// Ends the push before that.
    pub stop: Stop,
}

/// Pushes on a blocking thread. Returns what the server printed for people, such as the link to a merge request.
///
/// # Errors
/// When a reference is elsewhere by now, the server refuses, or cannot be talked to. [`Error::is_moved`] says whether it
/// helps to fetch again.
pub async fn push(request: Request) -> Result<String, Error> {
    let (stop, deadline) = (request.stop.clone(), request.deadline);
    let waiting = stop.when_dropped();
    let mut pushing = {
        let received = Received::here();
        let push = move || push_blocking(&request);
        tokio::task::spawn_blocking(move || received.within(push))
    };
    let result = tokio::select! {
        result = &mut pushing => result,
        () = tokio::time::sleep_until(deadline) => {
            stop.now();
            pushing.await
        }
    };
    waiting.disarm();
    result.map_err(|_| crate::Error::Abandoned)?
}

fn push_blocking(request: &Request) -> Result<String, Error> {
    for step in &request.moves {
        let valid = gix::validate::reference::name(step.reference.as_str().into()).is_ok();
        if !valid || !step.reference.starts_with("refs/") {
            return Err(Error::InvalidReference(step.reference.clone()));
        }
    }
    let mut conversation = Conversation::open(&request.remote, request.deadline, &request.stop)?;
    let advertisement = advertised(&mut conversation, request)?;
    if let Some(step) = request
        .moves
        .iter()
        .find(|step| advertisement.at(&step.reference) != step.from)
    {
        return Err(Error::Moved {
            reference: step.reference.clone(),
            expected: At(step.from),
            found: At(advertisement.at(&step.reference)),
        });
    }
    let capabilities = capabilities(request, &advertisement)?;
    let sent = conversation.send(&body(request, &capabilities)?);
    let bands = advertisement.can(BANDS);
    let report = sent.and_then(|()| conversation.read(|reader| Report::read(reader, bands)));
    drop(conversation);
    match report {
        Ok(report) => judge(request, report),
        // A refusal of the request as a whole is an answer.
        Err(error @ crate::Error::Request(transport::http::Error::Status { .. })) => Err(error.into()),
        Err(error) if has_arrived(request) => {
            drop(error);
            Ok(String::new())
        }
        Err(error) => Err(Error::Unanswered(Box::new(error))),
    }
}

fn advertised(conversation: &mut Conversation, request: &Request) -> Result<Advertisement, crate::Error> {
    let names: Vec<_> = request.moves.iter().map(|step| step.reference.as_str()).collect();
    conversation.read(|reader| Advertisement::read(reader, &names))
}

/// Looks whether the moves were made although no answer came.
fn has_arrived(request: &Request) -> bool {
    let look = || -> Result<bool, crate::Error> {
        let mut conversation = Conversation::open(&request.remote, request.deadline, &request.stop)?;
        let advertisement = advertised(&mut conversation, request)?;
        let is_made = |step: &Move| advertisement.at(&step.reference) == step.to;
        Ok(request.moves.iter().all(is_made))
    };
    look().unwrap_or(false)
}

const BANDS: &str = "side-band-64k";

/// Capabilities of both, as they are asked for.
fn capabilities(request: &Request, advertisement: &Advertisement) -> Result<String, Error> {
    let mut asked = vec![format!("agent={AGENT}")];
    if !advertisement.is_sha1() {
        return Err(Error::Unsupported("repositories with SHA-256 are not supported"));
    }
    if !advertisement.can("report-status") {
        return Err(Error::Unsupported(
            "the server does not report what becomes of a push",
        ));
    }
    asked.push("report-status".to_owned());
    if advertisement.can(BANDS) {
        asked.push(BANDS.to_owned());
    }
    if request.moves.len() > 1 {
        if !advertisement.can("atomic") {
            return Err(Error::Unsupported(
                "the server cannot move several references at once",
            ));
        }
        asked.push("atomic".to_owned());
    }
    if !request.options.is_empty() {
        if !advertisement.can("push-options") {
            return Err(Error::Unsupported("the server does not take push options"));
        }
        asked.push("push-options".to_owned());
    }
    if request.moves.iter().any(|step| step.to.is_none()) {
        if !advertisement.can("delete-refs") {
            return Err(Error::Unsupported(
                "the server does not let references be deleted",
            ));
        }
        asked.push("delete-refs".to_owned());
    }
    Ok(asked.join(" "))
}

/// The moves, the options, and the pack.
fn body(request: &Request, capabilities: &str) -> Result<Vec<u8>, Error> {
    let zero = ObjectId::null(gix::hash::Kind::Sha1);
    let mut body = Vec::new();
    let mut capabilities = Some(capabilities);
    for step in &request.moves {
        let (from, to) = (step.from.unwrap_or(zero), step.to.unwrap_or(zero));
        let mut line = format!("{from} {to} {}", step.reference);
        if let Some(capabilities) = capabilities.take() {
            line.push('\0');
            line.push_str(capabilities);
        }
        packet_line::push(&mut body, line.as_bytes());
    }
    body.extend_from_slice(packet_line::FLUSH);
    if !request.options.is_empty() {
        for option in &request.options {
            if option.len() > packet_line::MAX_CONTENT || option.contains(['\n', '\0']) {
                return Err(Error::InvalidOption);
            }
            packet_line::push(&mut body, option.as_bytes());
        }
        body.extend_from_slice(packet_line::FLUSH);
    }
    // Nothing but deletions comes without a pack.
    if request.moves.iter().any(|step| step.to.is_some()) {
        body.extend_from_slice(&git_pack::write(&request.objects)?);
    }
    Ok(body)
}

fn judge(request: &Request, report: Report) -> Result<String, Error> {
    let Report { unpack, refs, said } = report;
    if let Some(reason) = unpack {
        return Err(Error::Unpack { reason, said });
    }
    for step in &request.moves {
        let reference = step.reference.clone();
        match refs.get(&reference) {
            Some(Ok(())) => {}
            Some(Err(reason)) => {
                let reason = reason.clone();
                return Err(Error::Rejected {
                    reference,
                    reason,
                    said,
                });
            }
            None => {
                let reason = "the server does not say what became of it".to_owned();
                return Err(Error::Rejected {
                    reference,
                    reason,
                    said,
                });
            }
        }
    }
    Ok(said)
}

/// Where a reference is, for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At(Option<ObjectId>);

impl At {
    /// The commit; None if the reference is not there.
    pub fn id(self) -> Option<ObjectId> {
        self.0
    }
}

impl std::fmt::Display for At {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(id) => id.fmt(f),
            None => f.write_str("nothing"),
        }
    }
}
