//! The commit that is edited: fetched, or kept from the run before.

use std::time::Duration;

use api::source::GitRepositoryRef;
use git_client::Checkout;
use git_client::pack::Pack;
use git_client::reference::{Fields, Reference};
use git_writer::branch;
use git_writer::commit::Commit;
use transport::stop::Stop;

use super::error::Error;
use super::kept::{Kept, Place};
use super::target::{self, Target};
use crate::context::Context;

/// Puts a commit aside for the next run.
pub(super) fn keep(place: Option<Place>, kept: Option<Kept>, context: &Context) {
    if let (Some(place), Some(kept)) = (place, kept) {
        context.kept.put(place, kept);
    }
}

/// Goes on to the commit that was pushed. None if that fails, as the next run fetches it then.
pub(super) async fn advanced(kept: Kept, commit: &Commit, revision: &str, context: &Context) -> Option<Kept> {
    let (id, objects, folder) = (commit.id, commit.objects.clone(), context.workshop.folder.clone());
    let Kept { checkout, plain } = kept;
    let Checkout {
        mut resolved, pack, ..
    } = *checkout;
    let writing = tokio::task::spawn_blocking(move || pack.advance(id, &objects, &folder));
    let pack = writing.await.ok()?;
    let pack = pack.inspect_err(|error| tracing::debug!(%error, "the commit is not kept"));
    resolved.commit = id;
    revision.clone_into(&mut resolved.revision);
    let pack = pack.ok()?;
    Some(Kept {
        checkout: Box::new(Checkout {
            subject: pack.subject().to_owned(),
            resolved,
            pack,
        }),
        plain,
    })
}

/// What a fetch brought.
pub(super) enum Fetched {
    /// The revision that was known, and what is kept of it.
    Unchanged { revision: String, kept: Option<Kept> },
    /// A commit to edit.
    Checkout {
        kept: Kept,
        /// Ends what reads it.
        stop: Stop,
        /// The branch to push to does not exist yet.
        is_new: bool,
    },
}

/// Fetches the branch that is pushed to, or what it will begin with.
pub(super) async fn fetch(
    target: &Target,
    known: Option<String>,
    kept: Option<Kept>,
    context: &Context,
) -> Result<Fetched, Error> {
    let revision_of = |kept: &Kept| kept.checkout.resolved.revision.clone();
    let is_known = known.is_some();
    let known = known.or_else(|| kept.as_ref().map(revision_of));
    let own = GitRepositoryRef {
        branch: Some(target.branch.clone()),
        ..Default::default()
    };
    let over = kept.as_ref().map(|kept| kept.checkout.pack.clone());
    let fetched = match fetch_reference(target, &own, known, over.clone(), context).await {
        Err(Error::Checkout(git_client::Error::FindReference { .. })) if target.switches() => (
            fetch_reference(target, &target.checkout, None, over, context).await?,
            true,
        ),
        fetched => (fetched?, false),
    };
    Ok(match (fetched, kept) {
        (((git_client::Outcome::Unchanged(_), stop), _), Some(mut kept)) if !is_known => {
            kept.checkout.pack = kept.checkout.pack.stopped_by(stop.clone());
            Fetched::Checkout {
                kept,
                stop,
                is_new: false,
            }
        }
        (((git_client::Outcome::Unchanged(resolved), _), _), kept) => Fetched::Unchanged {
            kept: kept.filter(|kept| revision_of(kept) == resolved.revision),
            revision: resolved.revision,
        },
        (((git_client::Outcome::Fetched(checkout), stop), is_new), kept) => Fetched::Checkout {
            kept: Kept {
                checkout,
                plain: kept.map(|kept| kept.plain).unwrap_or_default(),
            },
            stop,
            is_new,
        },
    })
}

/// Waits for work on other threads; it is stopped when time is up, or when no one waits for it any more.
pub(super) async fn within<T>(
    limit: Duration,
    stop: &Stop,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    let waiting = stop.when_dropped();
    tokio::pin!(work);
    let done = tokio::select! {
        done = &mut work => done,
        () = tokio::time::sleep(limit) => {
            stop.now();
            work.await
        }
    };
    waiting.disarm();
    done
}

pub(super) async fn fetch_reference(
    target: &Target,
    reference: &GitRepositoryRef,
    unless_revision: Option<String>,
    over: Option<Pack>,
    context: &Context,
) -> Result<(git_client::Outcome, Stop), Error> {
    let wanted = branch::Wanted {
        reference: Reference::from_fields(Fields {
            branch: reference.branch.as_deref(),
            tag: reference.tag.as_deref(),
            semver: reference.semver.as_deref(),
            name: reference.name.as_deref(),
            commit: reference.commit.as_deref(),
        }),
        sparse: target.sparse(),
        unless_revision,
        over,
    };
    let fetching = branch::fetch(&target.remotes, target.timeout, wanted, &context.workshop);
    fetching.await.map_err(|error| match error {
        branch::Error::Reach(error) => target::Error::from(error).into(),
        branch::Error::Fetch(error) => Error::Checkout(error),
    })
}
