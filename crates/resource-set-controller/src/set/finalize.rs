//! The end of a ResourceSet: what it applied is deleted, then it goes.

use std::sync::Arc;

use api::flux_operator::{FINALIZER, ResourceSet};
use api::meta::{StatusObject as _, reasons};
use controller_kit::events::Severity;
use controller_kit::queue::{Outcome, Slot};
use controller_kit::record::{Unrecorded, begun};
use controller_kit::{ObjectKey, finalizer};
use reconcile_kit::base::{owner, placement};
use reconcile_kit::inventory;

use super::{run, status};
use crate::context::Context;

/// Deletes what is in the inventory. A set that is left alone leaves its objects.
pub(super) async fn finalize(
    key: &ObjectKey,
    object: Arc<ResourceSet>,
    context: &Context,
    slot: &Slot,
) -> Result<Outcome, Unrecorded> {
    let writer = &context.sets;
    let mut next = begun(&*object);
    let managed = inventory::read(next.inventory.as_ref());
    if !object.suspended() && !managed.is_empty() {
        let placement = placement(&*object);
        let problem = match context.targets.target_of(placement).await {
            // No account can delete them any more, and the ResourceSet would never go.
            Ok(_) if !context.targets.has_account(placement).await.unwrap_or(true) => {
                let text = format!(
                    "{} objects stay: the service account that applied them is gone",
                    managed.len()
                );
                writer.publish(&object, Severity::Error, reasons::PRUNE_FAILED, &text);
                None
            }
            Ok(target) => {
                let stale = managed.sorted();
                let (_, failed) =
                    run::delete(&target, &owner(key), &stale, (&context.own_namespace, slot)).await;
                let left = stale
                    .into_iter()
                    .filter(|(id, _)| failed.iter().any(|(other, _)| other == id));
                next.inventory = Some(inventory::recorded(&left.collect()));
                let errors: Vec<_> = failed.into_iter().map(|(_, error)| error).collect();
                (!errors.is_empty()).then(|| super::Error::Prune(errors))
            }
            Err(error) => Some(error.into()),
        };
        if let Some(error) = problem {
            let message = status::message(&error);
            let object = writer.write(object, &next).await?;
            writer.publish(&object, Severity::Error, reasons::PRUNE_FAILED, &message);
            return Ok(Outcome::Backoff);
        }
    }
    context.memory.forget(key);
    finalizer::remove_named(&context.client, &*object, FINALIZER, writer.manager).await?;
    Ok(Outcome::Done)
}
