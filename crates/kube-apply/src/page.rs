//! Pages of a list.

use kube::core::ApiResource;
use manifest::ObjectId;
use serde::Deserialize;

/// Objects in one page of a list.
pub(crate) const PAGE: u32 = 250;

/// One page of a list.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Page {
    pub(super) metadata: PageMetadata,
    /// Some kinds are listed as null where there are none.
    pub(super) items: Option<Vec<PageItem>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageMetadata {
    #[serde(rename = "continue")]
    pub(super) next: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageItem {
    pub(super) metadata: Listed,
}

/// As much of a listed object's metadata as is needed.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Listed {
    name: String,
    namespace: String,
    labels: serde_json::Map<String, serde_json::Value>,
    pub(super) annotations: serde_json::Map<String, serde_json::Value>,
    pub(super) owner_references: Vec<Reference>,
    pub(super) deletion_timestamp: Option<serde::de::IgnoredAny>,
}

impl Listed {
    pub(super) fn id(&self, kind: &ApiResource) -> ObjectId {
        ObjectId {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    pub(super) fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).and_then(serde_json::Value::as_str)
    }

    /// The object whose controller labelled this one as its own.
    pub(super) fn labelled_owner(&self, group: &str, kind: &str) -> Option<ObjectId> {
        Some(ObjectId {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: self.label(&format!("{group}/namespace"))?.to_owned(),
            name: self.label(&format!("{group}/name"))?.to_owned(),
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Reference {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
}
