//! The newest commit of a branch that holds changes: asked for, and fetched only if it is not known.

use api::image::ImageUpdateAutomation;
use api::source::GitRepositoryRef;
use change_policy::plan::Branch;
use git_client::{Checkout, ObjectId, Outcome};

use super::heads::Key;
use crate::automation::checkout::fetch_reference;
use crate::automation::error::Error;
use crate::automation::kept::Kept;
use crate::automation::target::Target;
use crate::automation::update;
use crate::context::Context;

/// Where branches are, and for which automation they hold changes.
#[derive(Clone, Copy)]
pub(in crate::automation) struct Site<'a> {
    pub(in crate::automation) object: &'a ImageUpdateAutomation,
    pub(in crate::automation) target: &'a Target,
    pub(in crate::automation) context: &'a Context,
}

impl Site<'_> {
    /// The UID of the automation.
    pub(in crate::automation) fn owner(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }
}

/// The newest commit of a branch.
pub(in crate::automation) struct Head {
    /// None if there is no such branch.
    pub(in crate::automation) commit: Option<ObjectId>,
    pub(in crate::automation) branch: Branch,
    /// If it was fetched.
    checkout: Option<Box<Checkout>>,
}

/// Finds the newest commit of a branch, and whose it is.
pub(in crate::automation) async fn find(site: Site<'_>, name: &str) -> Result<Head, Error> {
    let known = site.context.heads.get(&key(site, name));
    let revision = known.as_ref().map(|(commit, _)| format!("{name}@sha1:{commit}"));
    let Some(outcome) = ask(site, name, revision).await? else {
        forget(site, name);
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
            let git = site.object.spec.git.as_ref();
            let email = git.map(|git| git.commit.author.email.as_str());
            let branch = git_writer::owner::judge(&bytes, site.owner(), email.unwrap_or_default());
            let commit = checkout.resolved.commit;
            remember(site, name, commit, branch.clone());
            Ok(Head {
                commit: Some(commit),
                branch,
                checkout: Some(checkout),
            })
        }
    }
}

/// The files of a branch; None if it is gone.
pub(in crate::automation) async fn checkout(
    site: Site<'_>,
    name: &str,
    head: Head,
) -> Result<Option<Kept>, Error> {
    let checkout = match head.checkout {
        Some(checkout) => Some(checkout),
        None => match ask(site, name, None).await? {
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
pub(in crate::automation) fn remember(site: Site<'_>, name: &str, commit: ObjectId, branch: Branch) {
    site.context.heads.put(key(site, name), commit, branch);
}

/// Forgets a branch.
pub(in crate::automation) fn forget(site: Site<'_>, name: &str) {
    site.context.heads.remove(&key(site, name));
}

fn key(site: Site<'_>, name: &str) -> Key {
    let url = site.target.remotes.url.to_string();
    (site.owner().to_owned(), url, name.to_owned())
}

async fn ask(site: Site<'_>, name: &str, known: Option<String>) -> Result<Option<Outcome>, Error> {
    let own = GitRepositoryRef {
        branch: Some(name.to_owned()),
        ..Default::default()
    };
    match fetch_reference(site.target, &own, known, None, site.context).await {
        Err(Error::Checkout(git_client::Error::FindReference { .. })) => Ok(None),
        fetched => fetched.map(|(outcome, _)| Some(outcome)),
    }
}
