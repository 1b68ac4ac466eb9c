//! What kustomize knows about built-in types: their scope, and which of their lists are merged by which keys.

mod choice;
mod custom;
mod table;

use std::sync::Arc;

pub(crate) use choice::Schemas;
pub(crate) use custom::Custom;

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
#[derive(Clone)]
pub(crate) struct Schema(Place);

#[derive(Clone)]
enum Place {
    Definition(u16),
    List(&'static Target),
    Custom(Arc<Custom>, custom::Index),
}

/// Tells whether a built-in type is of the cluster scope.
fn is_built_in_cluster_scoped(api_version: &str, kind: &str) -> bool {
    table::CLUSTER_SCOPED.binary_search(&(api_version, kind)).is_ok()
}

fn built_in_definition(api_version: &str, kind: &str) -> Option<u16> {
    let at = table::TYPES
        .binary_search_by(|(a, k, _)| (*a, *k).cmp(&(api_version, kind)))
        .ok()?;
    Some(table::TYPES[at].2)
}

impl Schema {
    /// Finds the schema of a built-in type; None for types without lists that are merged by keys.
    fn of_built_in_type(api_version: &str, kind: &str) -> Option<Self> {
        built_in_definition(api_version, kind).map(|index| Self(Place::Definition(index)))
    }

    /// Goes to a field of a mapping.
    pub(crate) fn field(&self, name: &str) -> Option<Self> {
        let index = match &self.0 {
            Place::Definition(index) => *index,
            Place::Custom(custom, index) => {
                let field = custom.field(*index, name)?;
                return Some(Self(Place::Custom(Arc::clone(custom), field)));
            }
            Place::List(_) => return None,
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
    pub(crate) fn elements(&self) -> Option<Self> {
        match &self.0 {
            Place::List(Target::List { definition } | Target::Merge { definition, .. }) => {
                definition.map(|index| Self(Place::Definition(index)))
            }
            Place::Custom(custom, index) => {
                let elements = custom.elements(*index)?;
                Some(Self(Place::Custom(Arc::clone(custom), elements)))
            }
            _ => None,
        }
    }

    /// Returns the keys by which a list is merged, none for a list of scalars; None for a list that is replaced.
    pub(crate) fn merge_keys(&self) -> Option<Vec<&str>> {
        match &self.0 {
            Place::List(Target::Merge { keys, .. }) => Some(keys.to_vec()),
            Place::Custom(custom, index) => {
                let keys = custom.merge_keys(*index)?;
                Some(keys.iter().map(String::as_str).collect())
            }
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
        let pod = Schema::of_built_in_type("apps/v1", "Deployment")
            .and_then(|s| s.field("spec")?.field("template")?.field("spec"));
        let containers = pod.and_then(|s| s.field("containers")).unwrap();
        assert_eq!(containers.merge_keys(), Some(vec!["name"]));
        let ports = containers.elements().and_then(|s| s.field("ports")).unwrap();
        assert_eq!(ports.merge_keys(), Some(vec!["containerPort", "protocol"]));
        assert!(Schema::of_built_in_type("example.com/v1", "Widget").is_none());
    }

    #[test]
    fn scopes_are_known_for_built_in_types() {
        assert!(is_built_in_cluster_scoped("v1", "Namespace"));
        assert!(!is_built_in_cluster_scoped("v1", "Pod"));
        assert!(!is_built_in_cluster_scoped("example.com/v1", "Namespace"));
    }
}
