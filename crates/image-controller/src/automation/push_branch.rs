//! Changes on a push branch: one that differs from what is checked out, and from which someone opens pull requests.
//!
//! As in Flux, it holds one commit on top of what is checked out, and is replaced when a value or an edited file changes. Once
//! someone else has committed to it, commits are added as to any other branch, and nothing is replaced.

use api::image::ImageUpdateAutomation;
use change_policy::mark::Commit as Mark;
use change_policy::plan::Branch;
use git_client::push::Move;
use git_client::{ObjectId, Outcome};
use git_writer::signing::Key;

use super::branch::head::{self, Site};
use super::branch::wanted;
use super::checkout::{fetch_reference, keep, within};
use super::commit::{self, Edit, blocking};
use super::error::Error;
use super::kept::{Kept, Place};
use super::run::{Looked, Pushed, Run};
use super::target::Target;
use super::{message, races, update};
use crate::context::Context;

/// Brings the branch to one commit with the values. None if it holds commits of others.
pub(super) async fn run(
    object: &ImageUpdateAutomation,
    target: &Target,
    values: &update::Values,
    key: Option<&Key>,
    context: &Context,
) -> Result<Option<Run>, Error> {
    let site = Site {
        object,
        target,
        context,
    };
    for attempt in 1..=races::MAX_TRIES {
        let head = head::find(site, &target.branch).await?;
        if head.branch == Branch::Foreign {
            return Ok(None);
        }
        match site.remake(&head.branch, head.commit, values, key).await {
            Err(Error::Push(error)) if error.is_moved() => {
                let branch = &target.branch;
                tracing::info!("branch '{branch}' was changed in the meantime, attempt {attempt}");
                head::forget(site, branch);
                races::lost(context).await;
            }
            made => return made.map(Some),
        }
    }
    Err(Error::Races(target.branch.clone()))
}

impl Site<'_> {
    async fn remake(
        self,
        branch: &Branch,
        head: Option<ObjectId>,
        values: &update::Values,
        key: Option<&Key>,
    ) -> Result<Run, Error> {
        let target = self.target;
        let (place, kept, stop) = self.base().await?;
        let base = kept.checkout.resolved.commit;
        let mut run = Run {
            revision: kept.checkout.resolved.revision.clone(),
            ..Run::default()
        };
        let values = values.clone();
        let updating = blocking(kept, move |kept| {
            let Kept { checkout, plain } = kept;
            let updated = update::update(&checkout.pack, &values, plain)?;
            let wanted = wanted(&checkout.pack, &updated)?;
            Ok((updated, wanted))
        });
        let ((updated, wanted), kept) = within(target.timeout, &stop, updating).await?;
        run.notes = Some(updated.all_notes());
        run.looked = Some(Looked {
            base: base.to_string(),
            tallies: updated.tallies,
        });
        let now = wanted.map(|(change, base)| Branch::Ours { change, base });
        let Some(Branch::Ours { change, base: below }) = now.clone().filter(|now| now != branch) else {
            // What is checked out has the values, or the branch does. It stays, as pull requests may be open.
            keep(place, Some(kept), self.context);
            return Ok(run);
        };
        let edit = Edit {
            parent: base,
            contents: updated.contents,
            data: message::Data::new(self.object, None, updated.files),
            mark: Some(Mark {
                change,
                base: below,
                owner: self.owner().to_owned(),
            }),
            git: self.object.spec.git.clone().unwrap_or_default(),
            key: key.cloned(),
        };
        let (commit, kept) = blocking(kept, move |kept| edit.write(&kept.checkout.pack)).await?;
        let step = Move {
            reference: format!("refs/heads/{}", target.branch),
            from: head,
            to: Some(commit.id),
        };
        let pushed = commit::push(target, step, commit.objects.clone()).await;
        pushed.map_err(Error::Push)?;
        keep(place, Some(kept), self.context);
        if let Some(now) = now {
            head::remember(self, &target.branch, commit.id, now);
        }
        run.revision = format!("{}@sha1:{}", target.branch, commit.id);
        run.commits = 1;
        run.pushed = Some(Pushed {
            commit: commit.id,
            message: commit.message,
        });
        Ok(run)
    }

    /// What is checked out: fetched, or kept from the run before.
    async fn base(self) -> Result<(Option<Place>, Kept, transport::stop::Stop), Error> {
        let target = self.target;
        let place = Place::new(
            self.object.metadata.uid.as_deref(),
            target.remotes.url.as_str(),
            &format!("{:?}", target.checkout),
            &target.part,
        );
        let kept = place.as_ref().and_then(|place| self.context.kept.take(place));
        let known = kept.as_ref().map(|kept| kept.checkout.resolved.revision.clone());
        let over = kept.as_ref().map(|kept| kept.checkout.pack.clone());
        let fetched = fetch_reference(target, &target.checkout, known, over, self.context).await?;
        let kept = match (fetched, kept) {
            ((Outcome::Unchanged(_), stop), Some(mut kept)) => {
                kept.checkout.pack = kept.checkout.pack.stopped_by(stop.clone());
                (kept, stop)
            }
            ((Outcome::Fetched(checkout), stop), kept) => {
                let plain = kept.map(|kept| kept.plain).unwrap_or_default();
                (Kept { checkout, plain }, stop)
            }
            ((Outcome::Unchanged(_), _), None) => return Err(Error::Abandoned),
        };
        Ok((place, kept.0, kept.1))
    }
}
