//! A resource: a tree of nodes, and what kustomize remembers of its way through the build.
//!
//! kustomize keeps this memory in annotations of the object and removes them in the end; here it is beside the tree.

mod history;
mod metadata;
mod origin;
mod read;
mod show;

use manifest::Origin;
use manifest::yaml::NodeId;

use crate::id::ResourceId;
use crate::nodes::Nodes;

pub(crate) use history::{History, Previous};
pub(crate) use metadata::{
    annotations, id_of, labels, name, namespace, set_name, set_namespace, set_texts, text,
};
pub(crate) use origin::BuildOrigin;
pub(crate) use read::{JsonStyle, check, node_from_json, parse_resources};
pub(crate) use show::{show, show_yaml};

/// Handling of a generated object whose name is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Behavior {
    /// Nothing was said.
    #[default]
    Unspecified,
    /// It is an error.
    Create,
    /// The old one goes.
    Replace,
    /// Their data are put together.
    Merge,
}

impl Behavior {
    pub(crate) fn parse(text: &str) -> Self {
        match text {
            "replace" => Self::Replace,
            "merge" => Self::Merge,
            "create" => Self::Create,
            _ => Self::Unspecified,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unspecified => "unspecified",
            Self::Create => "create",
            Self::Replace => "replace",
            Self::Merge => "merge",
        }
    }
}

/// A resource of a build.
#[derive(Clone, Debug)]
pub(crate) struct Resource {
    /// The object's tree; None once a patch deleted it.
    pub(crate) root: Option<NodeId>,
    pub(crate) history: History,
    /// Names of the variables that take a value from the object.
    pub(crate) variables: Vec<String>,
    /// Where it was written.
    pub(crate) source: Option<Origin>,
    /// Where `buildMetadata` says that it comes from.
    pub(crate) origin: Option<BuildOrigin>,
    /// Transformations, as `buildMetadata` lists them.
    pub(crate) transformations: Vec<BuildOrigin>,
}

impl Resource {
    pub(crate) fn new(root: NodeId, source: Option<Origin>) -> Self {
        let history = History::default();
        Self {
            root: Some(root),
            history,
            variables: Vec::new(),
            source,
            origin: None,
            transformations: Vec::new(),
        }
    }

    /// Returns whether nothing is left of the object.
    pub(crate) fn is_empty(&self, nodes: &Nodes) -> bool {
        self.root.is_none_or(|root| nodes[root].is_null_or_empty())
    }

    /// Returns whether kustomize would have annotations of its own on the object at this point.
    pub(crate) fn leaves_annotations(&self) -> bool {
        self.history != History::default() || self.origin.is_some() || !self.variables.is_empty()
    }

    /// Returns the id that the resource has now.
    pub(crate) fn id(&self, nodes: &Nodes) -> ResourceId {
        self.root.map(|root| id_of(nodes, root)).unwrap_or_default()
    }

    /// Returns whether the resource has a name or had it before: cheaper than to make its ids.
    pub(crate) fn has_or_had_name(&self, nodes: &Nodes, wanted: &str) -> bool {
        self.root.map_or("", |root| name(nodes, root)) == wanted
            || self
                .history
                .previous
                .iter()
                .any(|previous| previous.name == wanted)
    }

    /// Returns the ids that the resource had, oldest first.
    pub(crate) fn previous_ids(&self, nodes: &Nodes) -> Vec<ResourceId> {
        if self.history.previous.is_empty() {
            return Vec::new();
        }
        let gvk = self.id(nodes).gvk;
        let id = |previous: &Previous| ResourceId {
            gvk: manifest::GroupVersionKind {
                kind: previous.kind.clone(),
                ..gvk.clone()
            },
            name: previous.name.clone(),
            namespace: previous.namespace.clone(),
            cluster_scoped: false,
        };
        self.history.previous.iter().map(id).collect()
    }

    /// Returns the first id that the resource had.
    pub(crate) fn original_id(&self, nodes: &Nodes) -> ResourceId {
        self.previous_ids(nodes)
            .into_iter()
            .next()
            .unwrap_or_else(|| self.id(nodes))
    }

    /// Remembers the id before it changes.
    pub(crate) fn store_previous_id(&mut self, nodes: &Nodes) {
        let id = self.id(nodes);
        let namespace = id.effective_namespace().to_owned();
        self.history.previous.push(Previous {
            name: id.name,
            namespace,
            kind: id.gvk.kind,
        });
    }

    /// Writes the annotations anew, as kustomize does when it notes where an object comes from: as texts, and in nodes that
    /// are no other field's any more. What it notes of names does not do that.
    pub(crate) fn rewrite_annotations(&self, nodes: &mut Nodes) {
        let Some(root) = self.root else { return };
        let annotations = annotations(nodes, root);
        if !annotations.is_empty() {
            // It cannot fail: there are annotations.
            let _ = set_texts(nodes, root, "annotations", &annotations);
        }
    }

    /// Returns whether two resources went through the same prefixes and suffixes, as far as the shorter history goes.
    pub(crate) fn has_affixes_of(&self, other: &Self, allow_empty: bool) -> bool {
        let same =
            |a: &[String], b: &[String]| (allow_empty && (a.is_empty() || b.is_empty())) || ends_alike(a, b);
        same(&self.history.prefixes, &other.history.prefixes)
            && same(&self.history.suffixes, &other.history.suffixes)
    }
}

fn ends_alike(a: &[String], b: &[String]) -> bool {
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if short.is_empty() {
        long.is_empty()
    } else {
        long.ends_with(short)
    }
}
