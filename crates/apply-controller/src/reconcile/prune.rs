//! Pruning: what left the source goes, unless another Kustomization takes it over or it must be confirmed first.
//!
//! In: the inventory before and after. Out: what is managed now, and an error that says what stayed and what to do. How an
//! object is deleted, and what is dangerous, is `kube-apply`'s; which of it is guarded, and how a person confirms, is here.

use api::kustomize::{Kustomization, ResourceInventory};
use api::meta::{condition_types, reasons};
use cluster_access::targets::Target;
use controller_kit::{ObjectKey, conditions};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt as _;
use kube_apply::{Guard, Inventory, Owner, PruneOptions, Pruned, Refused, Share, inventory};

use super::decide::Plan;
use super::observe::Observed;
use super::record::Recorder;
use super::{handover, recorded};
use crate::controller::Context;
use crate::error::Error;
use crate::flags::PruneForeign;

/// The annotation that confirms a prune. Its value is what the refusal printed.
pub const CONFIRM_ANNOTATION: &str = "windlass.dev/confirm-prune";

/// Objects that are not pruned without confirmation.
#[derive(Debug, Clone)]
pub struct PrunePolicy {
    /// The namespace of this controller.
    pub own_namespace: String,
    /// How much of an inventory may go at once, in percent.
    pub max_share: u8,
    /// Whether namespaces and definitions go together with what others made.
    pub foreign: PruneForeign,
    /// How long an object is kept for another Kustomization that does not come to apply it.
    pub handover_patience: SignedDuration,
}

impl PrunePolicy {
    /// The guard of a run. What is in `kept` stays in the source.
    fn in_a_run(&self, object: &Kustomization, target: &Target, old: &Inventory, kept: &Inventory) -> Guard {
        let ready = object
            .status
            .as_ref()
            .and_then(|status| conditions::get(&status.conditions, condition_types::READY));
        let before = ready.filter(|ready| ready.reason == reasons::PRUNE_REFUSED);
        Guard {
            share: Some(Share {
                percent: self.max_share,
                of: old.len(),
            }),
            kept: kept.clone(),
            refused_before: before.map(|ready| ready.message.clone()),
            ..self.at_the_end(object, target)
        }
    }

    /// The guard of a Kustomization that is deleted: all of it goes, so that a share of it does not count.
    pub fn at_the_end(&self, object: &Kustomization, target: &Target) -> Guard {
        Guard {
            own_namespace: Some(self.own_namespace.clone()).filter(|_| target.place.is_home()),
            foreign: self.foreign == PruneForeign::Refuse,
            confirmation: confirmation(object).map(str::to_owned),
            ..Guard::default()
        }
    }
}

/// The confirmation that a person has given.
pub fn confirmation(object: &Kustomization) -> Option<&str> {
    object.annotations().get(CONFIRM_ANNOTATION).map(String::as_str)
}

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
    context: &Context,
    target: &Target,
    observed: &Observed,
    recorder: &mut Recorder<'_>,
    plan: &Plan,
    old: &Inventory,
    new: &Inventory,
) -> Result<ResourceInventory, (Error, ResourceInventory)> {
    let object = &*observed.object;
    let key = ObjectKey::of(object);
    let began = context
        .memory
        .with(&key, |entry| entry.handing_over.take().map(|waits| waits.since));
    let stale = inventory::diff(old, new);
    if !object.spec.prune || stale.is_empty() {
        return Ok(recorded(new));
    }
    let since = began.unwrap_or_else(Timestamp::now);
    let sorted = handover::sort(context, object, target, stale, since).await;
    handover::remember(context, &key, &sorted, since);
    // What is handed over stays managed until then.
    let kept = new.union(&sorted.waiting.iter().cloned().collect());
    let stale = sorted.to_be_deleted();
    if stale.is_empty() {
        return Ok(recorded(&kept));
    }
    let owner = Owner {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    };
    let options = PruneOptions {
        guard: context.prune.in_a_run(object, target, old, &kept),
    };
    let pruned = handover::delete(target, &owner, &sorted, &options).await;
    recorder.pruned(Some(plan), &pruned);
    if let Some(refused) = &pruned.refused {
        context
            .memory
            .with(&key, |entry| entry.prune_refused = Some(refused.token.clone()));
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
