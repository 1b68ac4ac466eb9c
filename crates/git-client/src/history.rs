//! What leads to what: whether a branch leads to a commit that is pinned together with it, and where a branch left another one.
//!
//! Of the former, in: the commit, which the server is known to have, and the head of the branch. The server is asked for the commits that
//! lead to the head and not to the commit, without their content: the branch leads to the commit exactly if it is a parent
//! of one of these. Of the latter, the server is asked for the commits that lead to one head and not to the other: those that they
//! continue lead to both. A server that cannot leave content out is asked for the whole branch, as Flux asks all servers.

use std::collections::BTreeSet;
use std::path::Path;

use git_pack::Kind;
use gix::ObjectId;
use gix::objs::CommitRefIter;

use super::reference::Resolved;
use super::session::Session;
use crate::error::Error;
use crate::pack::{self, MAX_META_BYTES, SHA1};
use crate::request::Request;

/// Refuses a commit that the branch does not lead to.
pub(super) fn check(
    request: &Request,
    resolved: &Resolved,
    branch: &str,
    head: ObjectId,
) -> Result<(), Error> {
    let commit = resolved.commit;
    let directory = tempfile::Builder::new()
        .prefix("git-history-")
        .tempdir_in(&request.directory)
        .map_err(Error::MakeDirectory)?;
    // Servers of protocol 0 and 1 have hung up, and one that was shown as shallow what we have would count otherwise.
    let mut session = Session::open(request)?;
    let received = session.receive_history(head, commit, directory.path(), &request.packs)?;
    let leads_there = match received {
        Some(pack) => has_or_continues(&pack, commit).map_err(pack::Error::from)?,
        None => false,
    };
    if leads_there {
        Ok(())
    } else {
        Err(Error::NotOnBranch {
            commit,
            branch: branch.to_owned(),
        })
    }
}

/// Merges of one branch into the other make for several; more than these are not looked at.
const MAX_CANDIDATES: usize = 16;

/// Finds the newest commit that leads to both.
pub(super) fn merge_base(
    request: &Request,
    head: ObjectId,
    base: ObjectId,
) -> Result<Option<ObjectId>, Error> {
    if head == base {
        return Ok(Some(base));
    }
    let directory = tempfile::Builder::new()
        .prefix("git-history-")
        .tempdir_in(&request.directory)
        .map_err(Error::MakeDirectory)?;
    let Some(continued) = only_in(request, head, base, directory.path())? else {
        return Ok(Some(head)); // all of it is part of the other one
    };
    let mut candidates: Vec<ObjectId> = continued.into_iter().take(MAX_CANDIDATES).collect();
    let mut newest = candidates.pop();
    for candidate in candidates {
        let Some(known) = newest else { break };
        // One leads to the other, or they are of two branches: then either will do.
        if only_in(request, candidate, known, directory.path())?.is_some() {
            newest = Some(candidate);
        }
    }
    Ok(newest)
}

/// The commits that are continued by those which lead to one head and not to the other; None if there are none of these.
fn only_in(
    request: &Request,
    head: ObjectId,
    other: ObjectId,
    directory: &Path,
) -> Result<Option<BTreeSet<ObjectId>>, Error> {
    let mut session = Session::open(request)?;
    if !session.is_partial() {
        return Err(Error::Unfiltered);
    }
    let received = session.receive_history(head, other, directory, &request.packs)?;
    let Some(pack) = received else { return Ok(None) };
    let continued = continued(&pack).map_err(pack::Error::from)?;
    Ok(continued)
}

fn continued(pack: &git_pack::Pack) -> Result<Option<BTreeSet<ObjectId>>, git_pack::Error> {
    let (mut parents, mut is_empty) = (BTreeSet::new(), true);
    let mut buffer = Vec::new();
    for name in pack.names() {
        if pack.read(name, MAX_META_BYTES, &mut buffer)? != Some(Kind::Commit) {
            continue;
        }
        is_empty = false;
        parents.extend(CommitRefIter::from_bytes(&buffer, SHA1).parent_ids());
    }
    parents.retain(|parent| !pack.contains(parent));
    Ok((!is_empty).then_some(parents))
}

/// Returns whether the commit is among those received, or the parent of one.
fn has_or_continues(pack: &git_pack::Pack, commit: ObjectId) -> Result<bool, git_pack::Error> {
    if pack.contains(&commit) {
        return Ok(true);
    }
    let mut buffer = Vec::new();
    for name in pack.names() {
        let is_commit = pack.read(name, MAX_META_BYTES, &mut buffer)? == Some(Kind::Commit);
        let mut parents = CommitRefIter::from_bytes(&buffer, SHA1).parent_ids();
        if is_commit && parents.any(|id| id == commit) {
            return Ok(true);
        }
    }
    Ok(false)
}
