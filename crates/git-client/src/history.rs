//! Finds out whether a branch leads to a commit, for a commit that is pinned together with a branch.
//!
//! In: the commit, which the server is known to have, and the head of the branch. The server is asked for the commits that
//! lead to the head and not to the commit, without their content: the branch leads to the commit exactly if it is a parent
//! of one of these. A server that cannot leave content out is asked for the whole branch, as Flux asks all servers.

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
