//! Inventory of a Kustomization, as its status records it.

use api::kustomize::Kustomization;
use kube_apply::Inventory;
pub(super) use reconcile_kit::inventory::recorded;

/// Reads the inventory of the object's status.
pub fn managed_before(object: &Kustomization) -> Inventory {
    let status = object.status.as_ref();
    reconcile_kit::inventory::read(status.and_then(|status| status.inventory.as_ref()))
}
