//! Which schemas are in force: the built-in ones, those of a file, or both.
//!
//! kustomize reads schemas when they are first needed and adds them to what is there. So the answer depends on what a
//! build did before a base brought its own file: a file named by the kustomization that is built stands alone, and one
//! of a base stands above or below the built-in types when some of them had to be looked up before.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use manifest::GroupVersionKind;

use super::custom::Custom;
use super::{BuiltInSchema, Place, Schema};

/// The schemas of a build.
#[derive(Debug, Default)]
pub(crate) struct Schemas {
    chosen: bool,
    custom: Option<(Arc<Custom>, Order)>,
    built_in: BuiltInSchema,
    /// Parts of the built-in schemas that the build has used so far: a [`Use`].
    used: AtomicU8,
}

/// How far kustomize would have got with the built-in schemas.
#[derive(Clone, Copy)]
enum Use {
    /// The scope of a type was asked for that kustomize has in no list of its own: it reads them when it reads any.
    Asked = 1,
    /// They were read.
    Read = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Alone,
    BelowBuiltIn,
    AboveBuiltIn,
}

impl Schemas {
    /// Starts with a description of the built-in types.
    pub(crate) fn new(built_in: BuiltInSchema) -> Self {
        Self {
            built_in,
            ..Self::default()
        }
    }

    /// Returns whether a kustomization said which schemas it wants; the first one has its way.
    pub(crate) fn are_chosen(&self) -> bool {
        self.chosen
    }

    /// Decides for the built-in schemas.
    pub(crate) fn choose_built_in(&mut self) {
        self.chosen = true;
    }

    /// Decides for the schemas of a file.
    pub(crate) fn choose(&mut self, custom: Custom) {
        self.chosen = true;
        let order = match *self.used.get_mut() {
            0 => Order::Alone,
            used if used == Use::Asked as u8 => Order::BelowBuiltIn,
            _ => Order::AboveBuiltIn,
        };
        self.custom = Some((Arc::new(custom), order));
    }

    /// Finds the schema of a type; None for types that are not known.
    pub(crate) fn of_type(&self, api_version: &str, kind: &str) -> Option<Schema> {
        let of_built_in = || Schema::of_built_in_type(self.built_in, api_version, kind);
        let Some((custom, order)) = &self.custom else {
            self.note(Use::Read);
            return of_built_in();
        };
        let of_file = || {
            let index = custom.of_type(api_version, kind)?;
            Some(Schema(Place::Custom(Arc::clone(custom), index)))
        };
        match order {
            Order::Alone => of_file(),
            Order::BelowBuiltIn => of_built_in().or_else(of_file),
            Order::AboveBuiltIn => of_file().or_else(of_built_in),
        }
    }

    /// Returns whether a type is known to be of the cluster scope.
    pub(crate) fn is_cluster_scoped(&self, gvk: &GroupVersionKind) -> bool {
        let api_version = gvk.api_version();
        // Built-in types keep their scope, whatever a file says.
        if let Some(is_namespaced) = self.built_in.is_namespaced(&api_version, &gvk.kind) {
            return !is_namespaced;
        }
        match &self.custom {
            Some((custom, _)) => custom.is_namespaced(&api_version, &gvk.kind) == Some(false),
            None => {
                self.note(Use::Asked);
                false
            }
        }
    }

    fn note(&self, used: Use) {
        self.used.fetch_max(used as u8, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn custom() -> Custom {
        let named = |group: &str, kind: &str| json!([{"group": group, "version": "v1", "kind": kind}]);
        Custom::from_json(&json!({"definitions": {
            "Park": {"x-kubernetes-group-version-kind": named("example.com", "Park")},
            "Deployment": {"x-kubernetes-group-version-kind": named("apps", "Deployment")},
        }}))
        .unwrap()
    }

    fn has_spec(schemas: &Schemas) -> bool {
        schemas
            .of_type("apps/v1", "Deployment")
            .is_some_and(|deployment| deployment.field("spec").is_some())
    }

    #[test]
    fn a_file_that_comes_first_stands_alone() {
        let mut schemas = Schemas::default();
        assert!(!schemas.is_cluster_scoped(&GroupVersionKind::new("v1", "ConfigMap")));
        schemas.choose(custom());
        assert!(!has_spec(&schemas));
        assert!(schemas.of_type("v1", "Pod").is_none());
    }

    #[test]
    fn a_file_after_a_patch_adds_to_the_built_in_types() {
        let mut schemas = Schemas::default();
        assert!(has_spec(&schemas));
        schemas.choose(custom());
        assert!(!has_spec(&schemas));
        assert!(schemas.of_type("v1", "Pod").is_some());
    }

    #[test]
    fn a_file_after_an_unknown_type_gives_way_to_the_built_in_types() {
        let mut schemas = Schemas::default();
        assert!(!schemas.is_cluster_scoped(&GroupVersionKind::new("example.com/v1", "Park")));
        schemas.choose(custom());
        assert!(has_spec(&schemas));
        assert!(schemas.of_type("example.com/v1", "Park").is_some());
    }
}
