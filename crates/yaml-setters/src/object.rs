//! The objects of a file, as commit messages name them.

use manifest::yaml::{Kind, NodeId, Nodes};

/// What an object is called; any of it may be empty, as in a kustomization.yaml.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectIdentifier {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// `metadata.namespace`.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

/// Finds the objects of a file, with the roots of their trees. What is no mapping holds none; a List is its items.
pub(crate) fn objects(nodes: &Nodes, roots: &[NodeId]) -> Vec<(ObjectIdentifier, NodeId)> {
    let is_mapping = |id: &NodeId| nodes[*id].kind == Kind::Mapping;
    let roots: Vec<_> = roots.iter().copied().filter(is_mapping).collect();
    if let [root] = roots.as_slice()
        && text(nodes, *root, "kind") == "List"
        && let Some(items) = nodes
            .field(*root, "items")
            .filter(|items| nodes[*items].kind == Kind::Sequence)
    {
        let items = nodes[items].content.iter().copied().filter(is_mapping);
        return items.map(|item| (identify(nodes, item), item)).collect();
    }
    roots
        .into_iter()
        .map(|root| (identify(nodes, root), root))
        .collect()
}

fn identify(nodes: &Nodes, root: NodeId) -> ObjectIdentifier {
    let metadata = nodes
        .field(root, "metadata")
        .filter(|id| nodes[*id].kind == Kind::Mapping);
    let of_metadata = |name: &str| metadata.map_or_else(String::new, |metadata| text(nodes, metadata, name));
    ObjectIdentifier {
        api_version: text(nodes, root, "apiVersion"),
        kind: text(nodes, root, "kind"),
        namespace: of_metadata("namespace"),
        name: of_metadata("name"),
    }
}

fn text(nodes: &Nodes, mapping: NodeId, name: &str) -> String {
    let field = nodes
        .field(mapping, name)
        .filter(|id| nodes[*id].kind == Kind::Scalar);
    field.map_or_else(String::new, |id| nodes[id].value.clone())
}
