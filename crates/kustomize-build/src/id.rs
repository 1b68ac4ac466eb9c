//! Identifiers of kustomize's resources (kyaml's `resid`).

use std::fmt;

use manifest::GroupVersionKind;

use crate::schema::Schemas;

/// kustomize's stand-in for the namespace of objects that have none by their kind.
pub(crate) const NOT_NAMESPACED: &str = "_non_namespaceable_";

const DEFAULT_NAMESPACE: &str = "default";

/// Selects types: empty parts match anything.
pub(crate) type GvkSelector = GroupVersionKind;

/// Returns whether a selector's parts, where it has them, are those of a type.
pub(crate) fn is_selected(gvk: &GroupVersionKind, selector: &GvkSelector) -> bool {
    (selector.group.is_empty() || selector.group == gvk.group)
        && (selector.version.is_empty() || selector.version == gvk.version)
        && (selector.kind.is_empty() || selector.kind == gvk.kind)
}

/// Writes a type as kustomize's messages do: `Deployment.v1.apps`.
pub(crate) fn show_gvk(gvk: &GroupVersionKind) -> String {
    let or = |text: &str, placeholder: &'static str| {
        if text.is_empty() {
            placeholder.to_owned()
        } else {
            text.to_owned()
        }
    };
    format!(
        "{}.{}.{}",
        or(&gvk.kind, "[noKind]"),
        or(&gvk.version, "[noVer]"),
        or(&gvk.group, "[noGrp]")
    )
}

/// A resource's type, name and namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ResourceId {
    pub(crate) gvk: GroupVersionKind,
    pub(crate) name: String,
    pub(crate) namespace: String,
    /// Known to be of the cluster scope. Ids that the resource had before are not: their namespace says it.
    pub(crate) cluster_scoped: bool,
}

impl ResourceId {
    /// Makes the id of a resource as it is now.
    pub(crate) fn current(schemas: &Schemas, gvk: GroupVersionKind, name: String, namespace: String) -> Self {
        let cluster_scoped = schemas.is_cluster_scoped(&gvk);
        Self {
            gvk,
            name,
            namespace,
            cluster_scoped,
        }
    }

    /// Returns the namespace for comparisons.
    pub(crate) fn effective_namespace(&self) -> &str {
        if self.cluster_scoped {
            NOT_NAMESPACED
        } else if self.namespace.is_empty() {
            DEFAULT_NAMESPACE
        } else {
            &self.namespace
        }
    }

    /// Compares as kustomize does: an empty namespace is `default`.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.gvk == other.gvk && self.is_in_namespace_of(other)
    }

    /// Returns whether both are in one namespace.
    pub(crate) fn is_in_namespace_of(&self, other: &Self) -> bool {
        self.effective_namespace() == other.effective_namespace()
    }

    /// Returns whether a selector's parts, where it has them, are those of the id.
    pub(crate) fn is_selected_by(&self, selector: &Self) -> bool {
        (selector.name.is_empty() || selector.name == self.name)
            && (selector.namespace.is_empty() || selector.is_in_namespace_of(self))
            && is_selected(&self.gvk, &selector.gvk)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.name.is_empty() {
            "[noName]"
        } else {
            &self.name
        };
        let namespace = if self.namespace.is_empty() {
            "[noNs]"
        } else {
            &self.namespace
        };
        write!(f, "{}/{name}.{namespace}", show_gvk(&self.gvk))
    }
}
