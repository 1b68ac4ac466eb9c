//! Pruning: what left the source goes, unless another Kustomization takes it over or it must be confirmed first.
//!
//! In: the inventory before and after. Out: what is managed now, and an error that says what stayed and what to do. How an
//! object is deleted, and what is dangerous, is `kube-apply`'s; which of it is guarded, and how a person confirms, is here.

use api::kustomize::{Kustomization, ResourceInventory};
use cluster_access::targets::Target;
use jiff::Timestamp;
use kube::ResourceExt as _;
use kube_apply::{Inventory, PruneOptions, Pruned, Refused, inventory};

use super::handover;
use super::inventory::recorded;
use super::pass::Pass;
use super::plan::Plan;
use crate::confirmation::CONFIRM_ANNOTATION;
use crate::error::Error;

/// Says what was refused, and how to go on.
pub fn explained(object: &Kustomization, refused: &Refused) -> String {
    format!(
        "{refused}\nto delete them all the same: kubectl -n {} annotate kustomizations.kustomize.toolkit.fluxcd.io {} \
         {CONFIRM_ANNOTATION}={} --overwrite\nto keep one: annotate it with kustomize.toolkit.fluxcd.io/prune=disabled",
        object.namespace().unwrap_or_default(),
        object.name_any(),
        refused.token,
    )
}

/// Deletes what left the source. Returns what is managed afterwards, also beside an error.
pub(super) async fn prune(
    pass: &Pass<'_>,
    target: &Target,
    plan: &Plan,
    old: &Inventory,
    new: &Inventory,
) -> Result<ResourceInventory, (Error, ResourceInventory)> {
    let (context, object) = (pass.context, pass.object());
    let began = pass.remembered(|entry| entry.handing_over.take().map(|waits| waits.since));
    let stale = inventory::diff(old, new);
    if !object.spec.prune || stale.is_empty() {
        return Ok(recorded(new));
    }
    let since = began.unwrap_or_else(Timestamp::now);
    let sorted = handover::sort(context, object, target, stale, since).await;
    handover::remember(context, pass.key, &sorted, since);
    // What is handed over stays managed until then.
    let kept = new.union(&sorted.waiting.iter().cloned().collect());
    let stale = sorted.to_be_deleted();
    if stale.is_empty() {
        return Ok(recorded(&kept));
    }
    let options = PruneOptions {
        guard: context.prune.in_a_run(object, target, old, &kept),
    };
    let pruned = handover::delete(target, &pass.owner(), &sorted, &options).await;
    pass.recorder.pruned(Some(plan), &pruned);
    if let Some(refused) = &pruned.refused {
        pass.remembered(|entry| entry.prune_refused = Some(refused.token.clone()));
    }
    let Some(error) = error(object, &pruned) else {
        return Ok(recorded(&kept));
    };
    let left: Inventory = handover::left(&stale, &pruned).collect();
    Err((error, recorded(&kept.union(&left))))
}

/// The error that names the objects that were not deleted, and why; None if all were.
fn error(object: &Kustomization, pruned: &Pruned) -> Option<Error> {
    let refused = pruned.refused.as_ref().map(|refused| explained(object, refused));
    if pruned.failed.is_empty() {
        return refused.map(Error::PruneRefused);
    }
    let errors: Vec<_> = pruned.failed.iter().map(|(_, error)| error.clone()).collect();
    let details = kube_apply::summarize(&errors).into_iter().chain(refused);
    Some(Error::Prune {
        count: errors.len(),
        details: details.collect::<Vec<_>>().join("\n"),
        errors,
    })
}
