//! Identifiers of objects: group, kind, namespace and name, and the forms in which Flux writes them.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names the schema of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupVersionKind {
    /// API group; empty for the core group.
    pub group: String,
    /// Version within the group, for example `v1`.
    pub version: String,
    /// Kind, for example `Deployment`.
    pub kind: String,
}

impl GroupVersionKind {
    /// Splits an `apiVersion` (`v1`, `apps/v1`) and adds the kind.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    /// Joins group and version as in an object's `apiVersion`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// Identifies an object in a cluster, whatever version it is read or written in.
///
/// Displayed as Flux writes a subject: `Deployment/default/web`, `Namespace/default`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId {
    /// API group; empty for the core group.
    pub group: String,
    /// Kind, for example `Deployment`.
    pub kind: String,
    /// Namespace; empty for objects of the cluster scope.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Returns whether a text can be the name of an object. Any other text could lead elsewhere in a path of the API.
#[must_use]
pub fn is_object_name(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_plain = |c: char| is_end(c) || matches!(c, '-' | '.');
    text.len() <= 253 && text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(is_plain)
}

/// An inventory id that is not of the form `namespace_name_group_kind`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("inventory id {0:?} is not of the form namespace_name_group_kind")]
pub struct ParseObjectIdError(String);

/// cli-utils writes a colon, which only the names of RBAC objects may hold, as two underscores.
const COLON_IN_INVENTORY: &str = "__";

impl ObjectId {
    /// Writes the id as Flux does in `status.inventory.entries[].id` (cli-utils `ObjMetadata.String`).
    pub fn inventory_id(&self) -> String {
        let name = self.name.replace(':', COLON_IN_INVENTORY);
        format!("{}_{}_{}_{}", self.namespace, name, self.group, self.kind)
    }

    /// Reads an id as Flux writes it; the inverse of [`ObjectId::inventory_id`].
    pub fn parse_inventory_id(id: &str) -> Result<Self, ParseObjectIdError> {
        let fail = || ParseObjectIdError(id.to_owned());
        let (namespace, rest) = id.split_once('_').ok_or_else(fail)?;
        let (rest, kind) = rest.rsplit_once('_').ok_or_else(fail)?;
        let (name, group) = rest.rsplit_once('_').ok_or_else(fail)?;
        let name = name.replace(COLON_IN_INVENTORY, ":");
        if kind.is_empty() || name.is_empty() || name.contains('_') {
            return Err(fail());
        }
        Ok(Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            name,
        })
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{}/{}", self.kind, self.name)
        } else {
            write!(f, "{}/{}/{}", self.kind, self.namespace, self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_nowhere_else() {
        for name in ["apps", "a", "team-1.apps"] {
            assert!(is_object_name(name), "{name}");
        }
        let long = "a".repeat(254);
        for name in [
            "",
            "..",
            "a/b",
            "../other/kustomizations/x",
            "a?watch=true",
            "A",
            "-a",
            "a.",
            &long,
        ] {
            assert!(!is_object_name(name), "{name}");
        }
    }

    fn id(group: &str, kind: &str, namespace: &str, name: &str) -> ObjectId {
        ObjectId {
            group: group.into(),
            kind: kind.into(),
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    #[test]
    fn inventory_ids_are_written_and_read_as_flux_does() {
        for (text, object) in [
            (
                "default_web_apps_Deployment",
                id("apps", "Deployment", "default", "web"),
            ),
            ("_default__Namespace", id("", "Namespace", "", "default")),
            (
                "_system__node_rbac.authorization.k8s.io_ClusterRole",
                id("rbac.authorization.k8s.io", "ClusterRole", "", "system:node"),
            ),
        ] {
            assert_eq!(object.inventory_id(), text);
            assert_eq!(ObjectId::parse_inventory_id(text), Ok(object));
        }
    }

    #[test]
    fn malformed_inventory_ids_are_refused() {
        for text in ["", "a", "a_b", "a_b_c", "a__c_", "a_b_c_d_e"] {
            assert!(ObjectId::parse_inventory_id(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn display_is_fluxs_subject() {
        assert_eq!(
            id("apps", "Deployment", "default", "web").to_string(),
            "Deployment/default/web"
        );
        assert_eq!(
            id("", "Namespace", "", "default").to_string(),
            "Namespace/default"
        );
    }
}
