//! The record of what an applier put into the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The objects that were applied, so that those which are no longer wanted can be found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceInventory {
    /// One entry per object.
    pub entries: Vec<ResourceRef>,
}

/// Reference to an object in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ResourceRef {
    /// Namespace, name, group and kind of the object, as `<namespace>_<name>_<group>_<kind>`.
    pub id: String,

    /// API version of the object, without the group.
    #[serde(rename = "v")]
    pub version: String,
}
