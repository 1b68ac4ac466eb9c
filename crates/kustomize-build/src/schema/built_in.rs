//! Schema of the types that Kubernetes has built in.
//!
//! The table is made by `make generate-schema` from what kustomize has built in and from what Kubernetes publishes. It
//! lies in the binary as it is used: sorted slices, nothing is parsed or allocated.

use std::cmp::Ordering;

use super::table::{DEFINITIONS, TYPES};

/// Which description of the built-in types decides how lists are merged and which types have no namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuiltInSchema {
    /// The one that kustomize 5.8 has built in: Kubernetes 1.21. The result equals kustomize's; lists in types and
    /// fields that are younger are replaced by a patch instead of merged, and younger types are taken to have a
    /// namespace.
    #[default]
    Kustomize,
    /// Kubernetes 1.36, and for types that it has no more the other one.
    Kubernetes136,
}

/// Whether the objects of a type have a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    Cluster,
    Namespaced,
    Unknown,
}

/// A mapping: the fields in which a merge goes on. Others hold scalars, lists that are replaced, or are unknown.
pub(super) struct Definition {
    /// In the order of their names.
    fields: &'static [Field],
    /// Schema of fields with any other name.
    others: Option<Field>,
}

pub(super) struct Field {
    name: &'static str,
    target: Target,
}

pub(super) enum Target {
    /// The number of a definition.
    Mapping(u16),
    /// A list that is merged: by keys, or by its values without any.
    List {
        elements: Option<u16>,
        keys: &'static [&'static str],
    },
}

/// Known facts about a type, in kustomize and in Kubernetes: the number of its definition, and its scope.
pub(super) struct Type {
    api_version: &'static str,
    kind: &'static str,
    kustomize: (u16, Scope),
    kubernetes: (u16, Scope),
}

/// Stands for no definition.
pub(super) const NONE: u16 = u16::MAX;

pub(super) const fn fields(fields: &'static [Field]) -> Definition {
    Definition { fields, others: None }
}

pub(super) const fn mapping(name: &'static str, definition: u16) -> Field {
    Field {
        name,
        target: Target::Mapping(definition),
    }
}

pub(super) const fn list(name: &'static str, elements: Option<u16>, keys: &'static [&'static str]) -> Field {
    Field {
        name,
        target: Target::List { elements, keys },
    }
}

pub(super) const fn of(
    api_version: &'static str,
    kind: &'static str,
    kustomize: (u16, Scope),
    kubernetes: (u16, Scope),
) -> Type {
    Type {
        api_version,
        kind,
        kustomize,
        kubernetes,
    }
}

impl Definition {
    pub(super) const fn others(self, field: Field) -> Self {
        Self {
            fields: self.fields,
            others: Some(field),
        }
    }
}

impl BuiltInSchema {
    /// Finds the definition of a type.
    pub(super) fn definition(self, api_version: &str, kind: &str) -> Option<u16> {
        let of = find(api_version, kind)?;
        let present = |(definition, _): (u16, Scope)| (definition != NONE).then_some(definition);
        match self {
            Self::Kustomize => present(of.kustomize),
            Self::Kubernetes136 => present(of.kubernetes).or(present(of.kustomize)),
        }
    }

    /// Returns whether objects of a type have a namespace; None when that is not known.
    pub(super) fn is_namespaced(self, api_version: &str, kind: &str) -> Option<bool> {
        let of = find(api_version, kind)?;
        let known = |(_, scope): (u16, Scope)| scope.is_namespaced();
        match self {
            Self::Kustomize => known(of.kustomize),
            Self::Kubernetes136 => known(of.kubernetes).or(known(of.kustomize)),
        }
    }
}

impl Scope {
    fn is_namespaced(self) -> Option<bool> {
        match self {
            Self::Cluster => Some(false),
            Self::Namespaced => Some(true),
            Self::Unknown => None,
        }
    }
}

/// Finds what a field of a definition holds.
pub(super) fn field(definition: u16, name: &str) -> Option<&'static Target> {
    let definition = DEFINITIONS.get(usize::from(definition))?;
    match definition.fields.binary_search_by_key(&name, |field| field.name) {
        Ok(at) => Some(&definition.fields[at].target),
        Err(_) => definition.others.as_ref().map(|field| &field.target),
    }
}

fn find(api_version: &str, kind: &str) -> Option<&'static Type> {
    let order = |of: &Type| -> Ordering { (of.api_version, of.kind).cmp(&(api_version, kind)) };
    TYPES.binary_search_by(order).ok().map(|at| &TYPES[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_leads_nowhere_else() {
        let is_definition = |index: u16| usize::from(index) < DEFINITIONS.len();
        let leads_on = |field: &Field| match field.target {
            Target::Mapping(index) => is_definition(index),
            Target::List { elements, .. } => elements.is_none_or(is_definition),
        };
        assert!(TYPES.is_sorted_by_key(|of| (of.api_version, of.kind)));
        for of in TYPES {
            let mut known = [of.kustomize.0, of.kubernetes.0].into_iter();
            assert!(known.all(|index| index == NONE || is_definition(index)));
        }
        for definition in DEFINITIONS {
            assert!(definition.fields.is_sorted_by_key(|field| field.name));
            assert!(definition.fields.iter().chain(&definition.others).all(leads_on));
        }
    }

    #[test]
    fn scopes_are_known_for_built_in_types() {
        let kustomize = BuiltInSchema::Kustomize;
        assert_eq!(kustomize.is_namespaced("v1", "Namespace"), Some(false));
        assert_eq!(kustomize.is_namespaced("v1", "Pod"), Some(true));
        assert_eq!(kustomize.is_namespaced("example.com/v1", "Namespace"), None);
    }

    #[test]
    fn kubernetes_knows_younger_types_and_keeps_older_ones() {
        let young = ("resource.k8s.io/v1", "DeviceClass");
        assert_eq!(BuiltInSchema::Kustomize.is_namespaced(young.0, young.1), None);
        assert_eq!(
            BuiltInSchema::Kubernetes136.is_namespaced(young.0, young.1),
            Some(false)
        );
        assert_eq!(BuiltInSchema::Kustomize.definition(young.0, young.1), None);
        assert!(
            BuiltInSchema::Kubernetes136
                .definition(young.0, young.1)
                .is_some()
        );
        let old = ("policy/v1beta1", "PodSecurityPolicy");
        assert_eq!(
            BuiltInSchema::Kubernetes136.is_namespaced(old.0, old.1),
            Some(false)
        );
        assert!(BuiltInSchema::Kubernetes136.definition(old.0, old.1).is_some());
    }
}
