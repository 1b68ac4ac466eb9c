//! Changes by commit: fetched, edited, committed and pushed to the branch.
//!
//! A push moves the branch only from the commit that was edited. Whoever was faster is fetched and edited in turn, up to ten
//! times; nothing of others is ever replaced. Automations of this process wait for each other at a branch.

use std::sync::Arc;

use api::image::{ImagePolicy, ImageUpdateAutomation};
use api::meta::{condition_types, reasons};
use controller_kit::runtime::should_reconcile_now;

use super::checkout::{Fetched, advanced, fetch, keep, within};
use super::commit::{catch_up, key, make, push_commit, second_push};
use super::error::Error;
use super::run::{Looked, Pushed, Run};
use super::scope::Scope;
use super::target::{self, Target};
use super::way_back::{self, WayBack};
use super::{chosen, push_branch, races, update};
use crate::context::Context;

/// Commits what the policies have chosen. With `must_look`, files are read even if nothing has changed.
pub(super) async fn run(
    object: &ImageUpdateAutomation,
    policies: &[Arc<ImagePolicy>],
    way_back: Option<&WayBack>,
    must_look: bool,
    context: &Context,
) -> Result<Run, Error> {
    let mut target = target::find(object, context).await?;
    let key = key(object, context).await?;
    let scope = Scope::read(object)?;
    target.part = scope.part();
    let values = update::values(policies.iter().map(|policy| &**policy), &scope);
    let uid = object.metadata.uid.as_deref();
    let must_look = must_look || !context.scopes.is_known(uid, &scope);
    let known = known_revision(object, policies, &target).filter(|_| !must_look);
    let _turn = context
        .writers
        .turn(target.remotes.url.as_str(), &target.branch)
        .await;
    // A second push follows the first: what was pushed there cannot be replaced.
    if target.switches() && target.second.is_none() && context.replaces_push_branches {
        let made = push_branch::run(object, &target, &values, key.as_ref(), context).await?;
        if let Some(run) = made {
            context.scopes.remember(uid, scope);
            return Ok(run);
        }
    }
    let place = target.place(object);
    for attempt in 1..=races::MAX_TRIES {
        let known = known.clone().filter(|_| attempt == 1);
        let kept = place.as_ref().and_then(|place| context.kept.take(place));
        let (kept, stop, is_new) = match fetch(&target, known, kept, context).await? {
            Fetched::Unchanged { revision, kept } => {
                keep(place, kept, context);
                return Ok(Run {
                    revision,
                    ..Run::default()
                });
            }
            Fetched::Checkout { kept, stop, is_new } => (kept, stop, is_new),
        };
        let making = make(object.clone(), kept, values.clone(), key.clone());
        let (made, kept) = within(target.timeout, &stop, making).await?;
        context.scopes.remember(uid, scope.clone());
        let looked = Looked {
            base: made.base.to_string(),
            tallies: made.tallies,
        };
        let held = held(
            policies,
            way_back.filter(|_| !target.switches()),
            &looked,
            context,
        )
        .await?;
        let Some(commit) = made.commit.filter(|_| held.is_empty()) else {
            if has_failed_to_push(object) {
                catch_up(&target, &kept, object.spec.git.as_ref()).await?;
            }
            keep(place, Some(kept).filter(|_| !is_new), context);
            return Ok(Run {
                revision: made.revision,
                notes: Some(made.notes),
                looked: Some(looked),
                held,
                ..Run::default()
            });
        };
        let from = Some(made.base).filter(|_| !is_new);
        match push_commit(&target, &commit, from).await {
            Ok(()) => {
                second_push(&target, &commit, made.base).await?;
                let revision = format!("{}@sha1:{}", target.branch, commit.id);
                keep(place, advanced(kept, &commit, &revision, context).await, context);
                return Ok(Run {
                    revision,
                    pushed: Some(Pushed {
                        commit: commit.id,
                        message: commit.message,
                    }),
                    commits: 1,
                    notes: Some(made.notes),
                    looked: Some(looked),
                    ..Run::default()
                });
            }
            Err(error) if error.is_moved() => {
                tracing::info!(
                    "branch '{}' was changed in the meantime, attempt {attempt}",
                    target.branch
                );
                races::lost(context).await;
            }
            Err(error) => return Err(Error::Push(error)),
        }
    }
    Err(Error::Races(target.branch))
}

/// Holds back what someone took out of the branch. Returns a line for each.
async fn held(
    policies: &[Arc<ImagePolicy>],
    way_back: Option<&WayBack>,
    looked: &Looked,
    context: &Context,
) -> Result<Vec<String>, Error> {
    let Some(way_back) = way_back else {
        return Ok(Vec::new());
    };
    Ok(way_back::hold(way_back.reverted(policies, looked), context).await?)
}

/// The revision at which there is nothing to do; None if everything must be looked at.
fn known_revision(
    object: &ImageUpdateAutomation,
    policies: &[Arc<ImagePolicy>],
    target: &Target,
) -> Option<String> {
    let status = object.status.as_ref()?;
    let is_same = status.observed_generation == object.metadata.generation
        && status.observed_policies == chosen::observed(object, policies)
        && controller_kit::conditions::is_ready(&status.conditions)
        && !should_reconcile_now(object)
        && !target.switches()
        && target.second.is_none();
    status.observed_source_revision.clone().filter(|_| is_same)
}

/// Returns whether the run before failed at Git, perhaps between two pushes.
fn has_failed_to_push(object: &ImageUpdateAutomation) -> bool {
    let mut conditions = object.status.iter().flat_map(|status| &status.conditions);
    conditions.any(|condition| {
        condition.type_ == condition_types::READY
            && condition.status == "False"
            && condition.reason == reasons::GIT_OPERATION_FAILED
    })
}
