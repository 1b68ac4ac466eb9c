//! Whether a branch leads to a commit, for a commit that is pinned together with a branch.
//!
//! In: the commit, which the server is known to have, and the head of the branch. The server is asked for the commits that
//! lead to the head and not to the commit, without their content: the branch leads to the commit exactly if it is a parent
//! of one of these. A server that cannot leave content out is asked for the whole branch, as Flux asks all servers.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use gix::ObjectId;
use gix::objs::{CommitRefIter, Kind};
use gix::odb::pack;
use tokio_util::sync::CancellationToken;

use super::reference::Resolved;
use super::session::Session;
use super::{Error, Request};
use crate::fetch::git::pack::{Error as PackError, SHA1};

/// Refuses a commit that the branch does not lead to.
pub(super) fn check(
    request: &Request,
    resolved: &Resolved,
    branch: &str,
    head: ObjectId,
    interrupt: &AtomicBool,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let commit = resolved.commit;
    let directory = tempfile::Builder::new()
        .prefix("git-history-")
        .tempdir_in(&request.directory)
        .map_err(Error::MakeDirectory)?;
    // Servers of protocol 0 and 1 have hung up, and one that was shown as shallow what we have would count otherwise.
    let mut session = Session::open(request, cancel)?;
    let index = session.receive_history(head, commit, directory.path(), interrupt)?;
    let leads_there = match index {
        Some(index) => has_or_continues(&index, commit)?,
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

/// Whether the commit is among those received, or the parent of one.
fn has_or_continues(index: &Path, commit: ObjectId) -> Result<bool, PackError> {
    let open = |error: gix::Error| PackError::Open(super::chain(&error));
    let bundle = pack::Bundle::at(index, SHA1).map_err(open)?;
    if bundle.index.lookup(commit).is_some() {
        return Ok(true);
    }
    let (mut buffer, mut inflate) = (Vec::new(), gix::zlib::Inflate::default());
    for entry in bundle.index.iter() {
        buffer.clear();
        let found = bundle.find(&entry.oid, &mut buffer, &mut inflate, &mut pack::cache::Never);
        let Some((data, _)) = found.map_err(open)? else {
            continue;
        };
        if data.kind == Kind::Commit
            && CommitRefIter::from_bytes(data.data, SHA1)
                .parent_ids()
                .any(|id| id == commit)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
