//! The removal of a release: its object is deleted, or the spec wants it elsewhere.

use api::helm::{HelmRelease, HelmReleaseStatus, ReleaseAction};

use super::action::Action;
use super::attempt::clear_failures;
use super::ledger::Ledger;
use super::perform::Perform;
use super::performed::Failure;
use super::{history, outcome, summary};

/// Uninstalls the release that the status tells of, and forgets it. An error if it is to be tried again.
///
/// `world` must be about the release as the status has it, which need not be where the spec wants it.
pub async fn uninstall(
    world: &mut impl Perform,
    object: &HelmRelease,
    status: &mut HelmReleaseStatus,
) -> Result<(), Failure> {
    if history::latest(&status.history).is_none() {
        adopt_unfinished_install(world, status).await?;
    }
    if history::latest(&status.history).is_some() {
        let performed = world.perform(&Action::Uninstall).await;
        let mut ledger = Ledger::new(object, status, world.now());
        let recorded = outcome::of_uninstall(&mut ledger, &performed);
        summary::summarize(&mut ledger);
        for event in ledger.events {
            world.publish(event);
        }
        recorded?;
    }
    status.history.clear();
    clear_failures(status);
    status.storage_namespace = None;
    Ok(())
}

/// A process that was killed in the first install has left a record that the history does not know. Only an install begins
/// with an empty storage: what is there now is ours.
async fn adopt_unfinished_install(
    world: &mut impl Perform,
    status: &mut HelmReleaseStatus,
) -> Result<(), Failure> {
    if status.last_attempted_release_action != Some(ReleaseAction::Install) {
        return Ok(());
    }
    if let Some(left) = world.last().await?.filter(|left| left.version == 1) {
        history::adopt(&mut status.history, &left);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
