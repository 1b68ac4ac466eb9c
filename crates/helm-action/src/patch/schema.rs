//! How lists and mappings of Kubernetes' own kinds are merged: what the struct tags of its client library say.
//!
//! The table is made by hack/oracle/helm-patch and read at first use. It holds only what leads to a tag.

use std::collections::HashMap;
use std::sync::LazyLock;

use manifest::GroupVersionKind;

const TABLE: &str = include_str!("schema.txt");

/// A type.
pub(super) type Schema = &'static Type;

/// The fields of a type that say something.
#[derive(Debug, Default)]
pub(super) struct Type {
    fields: HashMap<&'static str, Field>,
}

/// Known schema of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    /// Its list is merged with what is there, or else replaced.
    pub(super) merges: bool,
    /// By which key elements are the same; None where they are scalars.
    pub(super) key: Option<&'static str>,
    /// Removes every key that is not declared, whoever declared it.
    pub(super) retains_keys: bool,
    /// It is never merged.
    pub(super) replaces: bool,
    child: Option<usize>,
}

struct Table {
    types: Vec<Type>,
    kinds: HashMap<(&'static str, &'static str), usize>,
}

static READ: LazyLock<Table> = LazyLock::new(|| read(TABLE));

/// Finds the type of a kind; None for kinds that are not Kubernetes' own.
pub(super) fn schema_of(gvk: &GroupVersionKind) -> Option<Schema> {
    let api_version = gvk.api_version();
    let index = READ.kinds.get(&(api_version.as_str(), gvk.kind.as_str()))?;
    READ.types.get(*index)
}

impl Type {
    /// Returns what is known of a field; nothing most of the time.
    pub(super) fn field(&self, name: &str) -> Field {
        let found = self.fields.get(name).or_else(|| self.fields.get("*"));
        found.copied().unwrap_or_default()
    }
}

impl Field {
    /// Returns the type of the field, or of the elements of its list.
    pub(super) fn schema(self) -> Option<Schema> {
        READ.types.get(self.child?)
    }
}

fn read(table: &'static str) -> Table {
    let (types, kinds) = table.split_once("\n\n").unwrap_or((table, ""));
    Table {
        types: types.lines().map(read_type).collect(),
        kinds: kinds.lines().filter_map(read_kind).collect(),
    }
}

fn read_type(line: &'static str) -> Type {
    let fields = line.split(' ').filter_map(|field| {
        let mut parts = field.split(':');
        let (name, strategies, key, child) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let is = |wanted: &str| strategies.split(',').any(|strategy| strategy == wanted);
        let field = Field {
            merges: is("merge"),
            key: Some(key).filter(|key| *key != "-"),
            retains_keys: is("retainKeys"),
            replaces: is("replace"),
            child: child.parse().ok(),
        };
        Some((name, field))
    });
    Type {
        fields: fields.collect(),
    }
}

fn read_kind(line: &'static str) -> Option<((&'static str, &'static str), usize)> {
    let mut parts = line.split(' ');
    let (api_version, kind, index) = (parts.next()?, parts.next()?, parts.next()?);
    Some(((api_version, kind), index.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_leads_from_kinds_to_the_keys_of_lists() {
        let deployment = schema_of(&GroupVersionKind::new("apps/v1", "Deployment")).expect("it is known");
        let into = |schema: Schema, name: &str| schema.field(name).schema().expect("it leads on");
        let pod = into(into(into(deployment, "spec"), "template"), "spec");
        let containers = pod.field("containers");
        assert_eq!((containers.merges, containers.key), (true, Some("name")));
        let env = containers.schema().expect("containers").field("env");
        assert_eq!(env.key, Some("name"));
        assert!(pod.field("volumes").retains_keys);
        assert!(!pod.field("tolerations").merges);
        assert!(into(deployment, "spec").field("strategy").retains_keys);
        let finalizers = into(deployment, "metadata").field("finalizers");
        assert_eq!((finalizers.merges, finalizers.key), (true, None));
        assert!(schema_of(&GroupVersionKind::new("example.com/v1", "Deployment")).is_none());
        assert!(schema_of(&GroupVersionKind::new("v1", "ConfigMap")).is_some());
    }
}
