//! In which order objects are applied, and reversed, deleted. Pure.
//!
//! Four stages as in Flux (`ssa.ApplyAllStaged`): cluster definitions, class definitions, kinds that the operator named,
//! everything else. Within a stage objects follow Flux's order of kinds (`ssa.ReconcileOrder`); objects of one rank are
//! independent of each other and may be applied at once.

use std::collections::BTreeSet;

use manifest::GroupVersionKind;

/// A stage of an apply. Each is finished before the next one starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Stage {
    /// CustomResourceDefinitions, Namespaces and ClusterRoles: what later objects need to exist.
    ClusterDefinitions,
    /// Kinds whose name ends in `Class`: StorageClass, IngressClass, GatewayClass and the like.
    ClassDefinitions,
    /// Kinds that the operator named.
    Custom,
    /// Everything else.
    Rest,
}

impl Stage {
    /// All stages in order.
    pub const ALL: [Stage; 4] = [
        Stage::ClusterDefinitions,
        Stage::ClassDefinitions,
        Stage::Custom,
        Stage::Rest,
    ];

    /// Names the stage of a kind.
    pub fn new(gvk: &GroupVersionKind, custom_stage_kinds: &BTreeSet<(String, String)>) -> Self {
        if is_cluster_definition(gvk) {
            Stage::ClusterDefinitions
        } else if gvk.kind.ends_with("Class") {
            Stage::ClassDefinitions
        } else if custom_stage_kinds.contains(&(gvk.group.clone(), gvk.kind.clone())) {
            Stage::Custom
        } else {
            Stage::Rest
        }
    }

    /// Returns whether objects of this stage must be usable before the next stage starts.
    pub fn is_waited_for(self) -> bool {
        matches!(self, Stage::ClusterDefinitions | Stage::ClassDefinitions)
    }
}

fn is_cluster_definition(gvk: &GroupVersionKind) -> bool {
    is_crd(gvk)
        || is_namespace(gvk)
        || (gvk.group == "rbac.authorization.k8s.io" && gvk.kind == "ClusterRole")
}

/// Returns whether the kind is CustomResourceDefinition.
pub fn is_crd(gvk: &GroupVersionKind) -> bool {
    gvk.group == "apiextensions.k8s.io" && gvk.kind == "CustomResourceDefinition"
}

/// Returns whether the kind is the core Namespace.
pub fn is_namespace(gvk: &GroupVersionKind) -> bool {
    gvk.group.is_empty() && gvk.kind == "Namespace"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gvk(api_version: &str, kind: &str) -> GroupVersionKind {
        GroupVersionKind::new(api_version, kind)
    }

    #[test]
    fn kinds_fall_into_fluxs_stages() {
        let custom = BTreeSet::from([("cert-manager.io".to_owned(), "ClusterIssuer".to_owned())]);
        for (api_version, kind, stage) in [
            (
                "apiextensions.k8s.io/v1",
                "CustomResourceDefinition",
                Stage::ClusterDefinitions,
            ),
            ("v1", "Namespace", Stage::ClusterDefinitions),
            (
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                Stage::ClusterDefinitions,
            ),
            ("example.com/v1", "Namespace", Stage::Rest),
            ("storage.k8s.io/v1", "StorageClass", Stage::ClassDefinitions),
            ("cert-manager.io/v1", "ClusterIssuer", Stage::Custom),
            ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", Stage::Rest),
            ("apps/v1", "Deployment", Stage::Rest),
        ] {
            assert_eq!(Stage::new(&gvk(api_version, kind), &custom), stage, "{kind}");
        }
    }
}
