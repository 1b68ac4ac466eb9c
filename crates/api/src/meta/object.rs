//! Generic access to what the objects of all kinds have in common, so that one piece of code serves every kind.

use kube::core::object::HasStatus;

use super::{Condition, CustomHealthCheck, DependencyReference, KubeConfigReference};

/// A status that has conditions: what a controller writes no matter what the kind is about.
pub trait HasConditions {
    /// The conditions, in the order in which they are stored.
    fn conditions(&self) -> &[Condition];

    /// The conditions, to be changed.
    fn conditions_mut(&mut self) -> &mut Vec<Condition>;

    /// The generation that was reconciled last. None or -1 if there was none, or if the kind does not record it.
    fn observed_generation(&self) -> Option<i64>;

    /// Records the generation that was reconciled last, if the kind records it.
    fn set_observed_generation(&mut self, generation: i64);

    /// The value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled last.
    fn last_handled_reconcile_at(&self) -> Option<&str>;

    /// Records the value of the annotation that was handled last, if the kind records it.
    fn set_last_handled_reconcile_at(&mut self, token: &str);

    /// The condition of that type, if there is one.
    fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions()
            .iter()
            .find(|condition| condition.type_ == type_)
    }
}

/// An object that a controller of ours reconciles: it can be suspended, and it has a status with conditions.
pub trait StatusObject: kube::Resource<DynamicType = ()> + HasStatus<Status: HasConditions> {
    /// Returns whether the user asked to leave the object alone. Kinds without `spec.suspend` are never suspended.
    fn suspended(&self) -> bool;

    /// The conditions of the status; none if there is no status.
    fn conditions(&self) -> &[Condition] {
        self.status().map_or(&[], HasConditions::conditions)
    }

    /// The condition of that type, if there is one.
    fn condition(&self, type_: &str) -> Option<&Condition> {
        self.status().and_then(|status| status.condition(type_))
    }
}

/// An object that delivers: what it waits for, where its objects are, and as whom they are made.
pub trait Delivers: StatusObject {
    /// `spec.dependsOn`.
    fn depends_on(&self) -> &[DependencyReference];
    /// `spec.serviceAccountName`.
    fn service_account(&self) -> Option<&str>;
    /// `spec.kubeConfig`.
    fn kube_config(&self) -> Option<&KubeConfigReference>;
    /// `spec.healthCheckExprs`.
    fn health_check_exprs(&self) -> &[CustomHealthCheck];
}

/// Implements [`Delivers`] for a kind whose spec has the usual fields.
macro_rules! delivers {
    ($kind:ty) => {
        impl crate::meta::Delivers for $kind {
            fn depends_on(&self) -> &[crate::meta::DependencyReference] {
                &self.spec.depends_on
            }

            fn service_account(&self) -> Option<&str> {
                self.spec.service_account_name.as_deref()
            }

            fn kube_config(&self) -> Option<&crate::meta::KubeConfigReference> {
                self.spec.kube_config.as_ref()
            }

            fn health_check_exprs(&self) -> &[crate::meta::CustomHealthCheck] {
                &self.spec.health_check_exprs
            }
        }
    };
}
pub(crate) use delivers;

/// Implements [`HasConditions`] for a status with the three usual fields.
macro_rules! has_conditions {
    ($status:ty) => {
        impl crate::meta::HasConditions for $status {
            fn conditions(&self) -> &[crate::meta::Condition] {
                &self.conditions
            }

            fn conditions_mut(&mut self) -> &mut Vec<crate::meta::Condition> {
                &mut self.conditions
            }

            fn observed_generation(&self) -> Option<i64> {
                self.observed_generation
            }

            fn set_observed_generation(&mut self, generation: i64) {
                self.observed_generation = Some(generation);
            }

            fn last_handled_reconcile_at(&self) -> Option<&str> {
                self.last_handled_reconcile_at.as_deref()
            }

            fn set_last_handled_reconcile_at(&mut self, token: &str) {
                self.last_handled_reconcile_at = Some(token.to_owned());
            }
        }
    };
}
pub(crate) use has_conditions;

/// Implements [`StatusObject`] for a kind with `spec.suspend`.
macro_rules! status_object {
    ($kind:ty) => {
        impl crate::meta::StatusObject for $kind {
            fn suspended(&self) -> bool {
                self.spec.suspend
            }
        }
    };
}
pub(crate) use status_object;
