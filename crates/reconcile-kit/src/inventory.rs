//! Inventories as statuses record them.

use api::meta::{ResourceInventory, ResourceRef};
use kube_apply::Inventory;
use manifest::ObjectId;

/// Reads the inventory of a status. An entry that cannot be read is left out: it names no object.
pub fn read(recorded: Option<&ResourceInventory>) -> Inventory {
    let entries = recorded.into_iter().flat_map(|inventory| &inventory.entries);
    let read = entries.filter_map(|entry| {
        let id = ObjectId::parse_inventory_id(&entry.id).ok()?;
        Some((id, entry.version.clone()))
    });
    read.collect()
}

/// Returns an inventory as a status records it.
pub fn recorded(inventory: &Inventory) -> ResourceInventory {
    let entries = inventory.to_entries().into_iter();
    ResourceInventory {
        entries: entries.map(|(id, version)| ResourceRef { id, version }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inventories_survive_the_way_through_a_status() {
        let status: ResourceInventory = serde_json::from_value(json!({"entries": [
            {"id": "a_b_apps_Deployment", "v": "v1"}, {"id": "broken", "v": "v1"},
        ]}))
        .unwrap();
        let known = read(Some(&status));
        assert_eq!(known.len(), 1);
        assert_eq!(recorded(&known).entries[0].id, "a_b_apps_Deployment");
        assert!(read(None).is_empty());
    }
}
