//! The newest commit of a branch that holds changes: asked for, and fetched only if it is not known.

use api::source::GitRepositoryRef;
use change_policy::plan::Branch;
use git_client::{Checkout, ObjectId, Outcome};

use super::branch;
use super::heads::Key;
use super::work::Work;
use crate::automation::checkout::fetch_reference;
use crate::automation::error::Error;
use crate::automation::kept::Kept;
use crate::automation::update;

/// The newest commit of a branch.
pub(super) struct Head {
    /// None if there is no such branch.
    pub(super) commit: Option<ObjectId>,
    pub(super) branch: Branch,
    /// If it was fetched.
    checkout: Option<Box<Checkout>>,
}

/// Finds the newest commit of a branch, and whose it is.
pub(super) async fn find(work: &Work<'_>, name: &str) -> Result<Head, Error> {
    let known = work.context.heads.get(&key(work, name));
    let revision = known.as_ref().map(|(commit, _)| format!("{name}@sha1:{commit}"));
    let Some(outcome) = ask(work, name, revision).await? else {
        forget(work, name);
        return Ok(Head {
            commit: None,
            branch: Branch::Missing,
            checkout: None,
        });
    };
    match (outcome, known) {
        (Outcome::Unchanged(resolved), Some((_, branch))) => Ok(Head {
            commit: Some(resolved.commit),
            branch,
            checkout: None,
        }),
        (Outcome::Unchanged(_), None) => Err(Error::Abandoned),
        (Outcome::Fetched(checkout), _) => {
            let bytes = checkout.pack.commit().map_err(update::Error::from)?;
            let git = work.object.spec.git.as_ref();
            let email = git.map(|git| git.commit.author.email.as_str());
            let branch = branch::judge(&bytes, work.owner(), email.unwrap_or_default());
            let commit = checkout.resolved.commit;
            remember(work, name, commit, branch.clone());
            Ok(Head {
                commit: Some(commit),
                branch,
                checkout: Some(checkout),
            })
        }
    }
}

/// The files of a branch; None if it is gone.
pub(super) async fn checkout(work: &Work<'_>, name: &str, head: Head) -> Result<Option<Kept>, Error> {
    let checkout = match head.checkout {
        Some(checkout) => Some(checkout),
        None => match ask(work, name, None).await? {
            Some(Outcome::Fetched(checkout)) => Some(checkout),
            _ => None,
        },
    };
    Ok(checkout.map(|checkout| Kept {
        checkout,
        plain: std::collections::HashSet::new(),
    }))
}

/// Remembers what was pushed or judged.
pub(super) fn remember(work: &Work<'_>, name: &str, commit: ObjectId, branch: Branch) {
    work.context.heads.put(key(work, name), commit, branch);
}

/// Forgets a branch.
pub(super) fn forget(work: &Work<'_>, name: &str) {
    work.context.heads.remove(&key(work, name));
}

fn key(work: &Work<'_>, name: &str) -> Key {
    let url = work.target.remotes.url.to_string();
    (work.owner().to_owned(), url, name.to_owned())
}

async fn ask(work: &Work<'_>, name: &str, known: Option<String>) -> Result<Option<Outcome>, Error> {
    let own = GitRepositoryRef {
        branch: Some(name.to_owned()),
        ..Default::default()
    };
    match fetch_reference(&work.target, &own, known, work.context).await {
        Err(Error::Checkout(git_client::Error::FindReference { .. })) => Ok(None),
        fetched => fetched.map(|(outcome, _)| Some(outcome)),
    }
}
