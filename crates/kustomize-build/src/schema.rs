//! Schema knowledge of kustomize: the scope of types, and which of their lists are merged by which keys.

mod built_in;
mod choice;
mod custom;
mod table;

use std::sync::Arc;

pub use built_in::BuiltInSchema;
pub(crate) use choice::Schemas;
pub(crate) use custom::Custom;

use built_in::Target;

/// A place in a type's schema.
#[derive(Clone)]
pub(crate) struct Schema(Place);

#[derive(Clone)]
enum Place {
    Definition(u16),
    List(&'static Target),
    Custom(Arc<Custom>, custom::Index),
}

impl Schema {
    /// Finds the schema of a built-in type.
    fn of_built_in_type(built_in: BuiltInSchema, api_version: &str, kind: &str) -> Option<Self> {
        let index = built_in.definition(api_version, kind)?;
        Some(Self(Place::Definition(index)))
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
        Some(Self(match built_in::field(index, name)? {
            Target::Mapping(definition) => Place::Definition(*definition),
            list => Place::List(list),
        }))
    }

    /// Goes to the elements of a list.
    pub(crate) fn elements(&self) -> Option<Self> {
        match &self.0 {
            Place::List(Target::List { elements, .. }) => {
                elements.map(|index| Self(Place::Definition(index)))
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
            Place::List(Target::List { keys, .. }) => Some(keys.to_vec()),
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

    fn field(schema: &Schema, path: &[&str]) -> Option<Schema> {
        let below = |schema: Schema, name: &&str| match *name {
            "[]" => schema.elements(),
            name => schema.field(name),
        };
        path.iter().try_fold(schema.clone(), below)
    }

    #[test]
    fn containers_are_merged_by_name_and_their_ports_by_port_and_protocol() {
        let deployment = Schema::of_built_in_type(BuiltInSchema::Kustomize, "apps/v1", "Deployment").unwrap();
        let keys = |path: &[&str]| {
            field(&deployment, path)
                .unwrap()
                .merge_keys()
                .map(|keys| keys.join(" "))
        };
        let containers = ["spec", "template", "spec", "containers", "[]", "ports"];
        assert_eq!(keys(&containers[..4]).as_deref(), Some("name"));
        assert_eq!(keys(&containers).as_deref(), Some("containerPort protocol"));
        assert_eq!(keys(&["metadata", "finalizers"]).as_deref(), Some(""));
        assert_eq!(keys(&["metadata", "labels"]), None);
        assert!(Schema::of_built_in_type(BuiltInSchema::Kustomize, "example.com/v1", "Widget").is_none());
    }

    #[test]
    fn a_mapping_without_known_fields_is_known_all_the_same() {
        let revision = ("apps/v1", "ControllerRevision");
        let revision = Schema::of_built_in_type(BuiltInSchema::Kustomize, revision.0, revision.1).unwrap();
        assert!(field(&revision, &["data"]).is_some());
        assert!(field(&revision, &["data", "spec"]).is_none());
    }

    #[test]
    fn merge_keys_that_came_after_kubernetes_1_21_are_a_choice() {
        let keys = |built_in: BuiltInSchema| {
            let pod = Schema::of_built_in_type(built_in, "v1", "Pod").unwrap();
            let claims = field(&pod, &["spec", "resourceClaims"])?;
            claims.merge_keys().map(|keys| keys.join(" "))
        };
        assert_eq!(keys(BuiltInSchema::Kustomize), None);
        assert_eq!(keys(BuiltInSchema::Kubernetes136).as_deref(), Some("name"));
    }
}
