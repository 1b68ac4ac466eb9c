//! What kustomize knows about built-in types: their scope, and which of their lists are merged by which keys.

mod table;

use manifest::GroupVersionKind;

type Definition = &'static [Field];

struct Field {
    name: &'static str,
    target: Target,
}

enum Target {
    Map(u16),
    List {
        definition: Option<u16>,
    },
    Merge {
        definition: Option<u16>,
        keys: &'static [&'static str],
    },
}

/// A place in a type's schema.
#[derive(Clone, Copy)]
pub(crate) struct Schema(Place);

#[derive(Clone, Copy)]
enum Place {
    Definition(u16),
    List(&'static Target),
}

/// Tells whether a type is known to be of the cluster scope.
pub(crate) fn is_cluster_scoped(gvk: &GroupVersionKind) -> bool {
    let api_version = gvk.api_version();
    table::CLUSTER_SCOPED
        .binary_search(&(api_version.as_str(), gvk.kind.as_str()))
        .is_ok()
}

impl Schema {
    /// Finds the schema of a type; None for types without lists that are merged by keys.
    pub(crate) fn of_type(api_version: &str, kind: &str) -> Option<Self> {
        let at = table::TYPES
            .binary_search_by(|(a, k, _)| (*a, *k).cmp(&(api_version, kind)))
            .ok()?;
        Some(Self(Place::Definition(table::TYPES[at].2)))
    }

    /// Goes to a field of a mapping.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        let Place::Definition(index) = self.0 else {
            return None;
        };
        let field = table::DEFINITIONS[usize::from(index)]
            .iter()
            .find(|field| field.name == name)?;
        Some(Self(match &field.target {
            Target::Map(definition) => Place::Definition(*definition),
            list => Place::List(list),
        }))
    }

    /// Goes to the elements of a list.
    pub(crate) fn elements(self) -> Option<Self> {
        match self.0 {
            Place::List(Target::List { definition } | Target::Merge { definition, .. }) => {
                definition.map(|index| Self(Place::Definition(index)))
            }
            _ => None,
        }
    }

    /// Returns the keys by which a list is merged, none for a list of scalars; None for a list that is replaced.
    pub(crate) fn merge_keys(self) -> Option<&'static [&'static str]> {
        match self.0 {
            Place::List(Target::Merge { keys, .. }) => Some(keys),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(table::TYPES.is_sorted());
        assert!(table::CLUSTER_SCOPED.is_sorted());
    }

    #[test]
    fn containers_are_merged_by_name_and_their_ports_by_port_and_protocol() {
        let pod = Schema::of_type("apps/v1", "Deployment")
            .and_then(|s| s.field("spec")?.field("template")?.field("spec"));
        let containers = pod.and_then(|s| s.field("containers")).unwrap();
        assert_eq!(containers.merge_keys(), Some(&["name"][..]));
        let ports = containers.elements().and_then(|s| s.field("ports")).unwrap();
        assert_eq!(ports.merge_keys(), Some(&["containerPort", "protocol"][..]));
        assert!(Schema::of_type("example.com/v1", "Widget").is_none());
    }

    #[test]
    fn scopes_are_known_for_built_in_types() {
        assert!(is_cluster_scoped(&GroupVersionKind::new("v1", "Namespace")));
        assert!(!is_cluster_scoped(&GroupVersionKind::new("v1", "Pod")));
        assert!(!is_cluster_scoped(&GroupVersionKind::new(
            "example.com/v1",
            "Namespace"
        )));
    }
}
