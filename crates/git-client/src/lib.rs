//! Git repositories over http, https and ssh: one ls-refs to learn the revision, one shallow fetch to get the content; commits
//! over what was fetched, and their push.
//!
//! Of a fetch, in: a [`Request`] (remote, reference, the revision that is already stored). Out: the same revision again, or a
//! [`Checkout`] whose files can be read one after the other from a pack on disk. There is no work tree and no
//! repository: a depth-1 pack of exactly the wanted commit lies in a temporary directory until the checkout is
//! dropped. [`edit`] changes files of it, [`commit`] makes a commit of that, and [`push`](push::push) sends it. Not here: which files are ignored, how they are stored, submodules, signatures.

pub mod auth;
pub mod commit;
mod connection;
pub mod edit;
mod error;
mod history;
pub mod pack;
pub mod push;
pub mod reference;
mod request;
mod session;
pub mod sparse;
pub mod ssh;
pub mod submodules;

use std::path::Path;

pub use git_pack::Object;
pub use git_ssh::algorithms::Algorithms;
pub use gix::ObjectId;
use gix::protocol::handshake::Ref;
use transport::http;
use transport::received::Received;

use self::pack::Pack;
use self::reference::{Reference, Resolved};
use self::session::Session;
use self::sparse::Sparse;

pub use crate::error::Error;

pub use crate::request::{Remote, Request, Way};

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

/// Fetches on a blocking thread, which is stopped when the deadline passes or the caller stops waiting.
pub async fn fetch(request: Request) -> Result<Outcome, Error> {
    on_a_thread(request, fetch_blocking).await
}

/// Finds the commit at which a branch left another one: the newest that leads to both heads. None if they have nothing in common.
///
/// # Errors
/// When the server does not tell, or cannot leave out the content of commits.
pub async fn merge_base(request: Request, head: ObjectId, base: ObjectId) -> Result<Option<ObjectId>, Error> {
    on_a_thread(request, move |request| history::merge_base(request, head, base)).await
}

/// Works on a blocking thread, which is stopped when the deadline passes or the caller stops waiting.
async fn on_a_thread<T: Send + 'static>(
    request: Request,
    work: impl FnOnce(&Request) -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let (stop, deadline) = (request.stop.clone(), request.deadline);
    let waiting = stop.when_dropped();
    let mut working = {
        let received = Received::here();
        let work = move || work(&request);
        tokio::task::spawn_blocking(move || received.within(work))
    };
    let result = tokio::select! {
        result = &mut working => result,
        () = tokio::time::sleep_until(deadline) => {
            stop.now();
            working.await
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
    let pack = match receive_rest(&mut session, request, &resolved) {
        Some(Ok(pack)) => pack,
        tried => {
            // A conversation that was broken off cannot be gone on with.
            if let Some(Err(error)) = tried {
                tracing::debug!(%error, "what is new was not received; all is received instead");
                session = Session::open(request)?;
            }
            receive(&mut session, request, &resolved, directory.path())?
        }
    };
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

/// Receives what the commit has beside what was received before. None if that is not possible.
fn receive_rest(
    session: &mut Session,
    request: &Request,
    resolved: &Resolved,
) -> Option<Result<Pack, Error>> {
    let known = request.over.as_ref()?;
    if resolved.tag.is_some() || !session.is_version_2() {
        return None;
    }
    let known = known.clone().stopped_by(request.stop.clone());
    Some(receive_over(session, request, resolved, known))
}

fn receive_over(
    session: &mut Session,
    request: &Request,
    resolved: &Resolved,
    known: Pack,
) -> Result<Pack, Error> {
    let (commit, sparse) = (resolved.commit, part(session, request));
    let filter = sparse.map(|_| sparse::NO_BLOBS);
    let (directory, packs) = (&request.directory, &request.packs);
    let received = session.receive_over(resolved, &known, filter, directory, packs)?;
    let received = received.ok_or(Error::FindCommit { commit })?;
    let pack = known.over(received, commit, request.stop.clone())?;
    match sparse {
        Some(sparse) => complete(session, request, sparse, pack, directory),
        None => {
            pack.check_whole()?;
            Ok(pack)
        }
    }
}

/// The part that is wanted, if the server can leave out the rest.
fn part<'r>(session: &Session, request: &'r Request) -> Option<&'r Sparse> {
    let sparse = request.sparse.as_ref();
    sparse.filter(|sparse| !sparse.is_everything() && session.is_partial())
}

/// Receives the contents of files that are wanted and not here.
fn complete(
    session: &mut Session,
    request: &Request,
    sparse: &Sparse,
    mut pack: Pack,
    directory: &Path,
) -> Result<Pack, Error> {
    for blobs in sparse.blobs(&pack)?.chunks(sparse::BATCH) {
        if let Some(received) = session.receive_objects(blobs, directory, &request.packs)? {
            pack.add(received);
        }
    }
    Ok(pack)
}

/// Receives the commit, with all of its content or, where the server can leave out the rest, with what is wanted of it.
fn receive(
    session: &mut Session,
    request: &Request,
    resolved: &Resolved,
    directory: &Path,
) -> Result<Pack, Error> {
    let sparse = part(session, request);
    let filter = sparse.map(|_| sparse::NO_BLOBS);
    let received = session.receive_commit(resolved, filter, directory, &request.packs)?;
    let pack = Pack::open(received, resolved.commit, request.stop.clone())?;
    match sparse {
        Some(sparse) => complete(session, request, sparse, pack, directory),
        None => Ok(pack),
    }
}

#[cfg(test)]
mod tests;
