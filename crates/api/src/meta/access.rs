//! Access from other namespaces: which objects may refer to this one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lists the namespaces whose objects may refer to this one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessFrom {
    /// Label selectors of namespaces. One match suffices.
    pub namespace_selectors: Vec<NamespaceSelector>,
}

/// Selects namespaces by their labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Labels that a namespace must have. If empty, every namespace matches.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}
