//! Address of a kind.

use kube::core::ApiResource;

/// Address of a kind's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Group, version, kind and plural.
    pub api: ApiResource,
    /// True if objects live in a namespace.
    pub namespaced: bool,
    /// True if the server can list and watch the kind.
    pub watchable: bool,
}
