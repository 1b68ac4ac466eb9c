//! Inventory of a Kustomization, as its status records it.

use api::kustomize::{Kustomization, ResourceInventory, ResourceRef};
use kube_apply::Inventory;
use manifest::ObjectId;

/// Reads the inventory of the object's status. An entry that cannot be read is left out: it names no object.
pub fn managed_before(object: &Kustomization) -> Inventory {
    let inventory = object
        .status
        .as_ref()
        .and_then(|status| status.inventory.as_ref());
    let entries = inventory.into_iter().flat_map(|inventory| &inventory.entries);
    let read = entries.filter_map(|entry| {
        Some((
            ObjectId::parse_inventory_id(&entry.id).ok()?,
            entry.version.clone(),
        ))
    });
    read.collect()
}

pub(super) fn recorded(inventory: &Inventory) -> ResourceInventory {
    let entries = inventory
        .to_entries()
        .into_iter()
        .map(|(id, version)| ResourceRef { id, version });
    ResourceInventory {
        entries: entries.collect(),
    }
}
