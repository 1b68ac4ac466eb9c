//! Which fields a transformer changes, by type and path; kustomize's defaults and what `configurations` add.

mod defaults;
mod definitions;
mod read;

use std::sync::Arc;

use manifest::GroupVersionKind;
use manifest::order::LegacyOrder;
use manifest::yaml::{Kind, NodeId, Tag};

use crate::error::{Error, Result};
use crate::id;
use crate::lookup;
use crate::nodes::Nodes;

pub(crate) use definitions::config_of_definitions;

/// A field of objects of some types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSpec {
    pub(crate) selector: id::GvkSelector,
    pub(crate) path: String,
    pub(crate) create: bool,
}

impl FieldSpec {
    pub(crate) fn new(path: &str, create: bool) -> Self {
        Self {
            selector: GroupVersionKind::default(),
            path: path.to_owned(),
            create,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        id::is_selected(&self.selector, &other.selector) && self.path == other.path
    }
}

/// Adds a field unless it is there already.
pub(crate) fn merge_one(specs: &mut Vec<FieldSpec>, spec: &FieldSpec) -> Result<()> {
    match specs.iter().find(|known| known.covers(spec)) {
        Some(known) if known.create != spec.create => Err(Error::invalid("conflicting fieldspecs")),
        Some(_) => Ok(()),
        None => {
            specs.push(spec.clone());
            Ok(())
        }
    }
}

/// Adds fields unless they are there already.
pub(crate) fn merge_all(specs: &mut Vec<FieldSpec>, added: &[FieldSpec]) -> Result<()> {
    added.iter().try_for_each(|spec| merge_one(specs, spec))
}

/// Fields that hold the names of objects of a type.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NameReference {
    pub(crate) target: id::GvkSelector,
    pub(crate) referrers: Vec<FieldSpec>,
}

/// The fields of all transformers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TransformerConfig {
    pub(crate) name_prefix: Vec<FieldSpec>,
    pub(crate) name_suffix: Vec<FieldSpec>,
    pub(crate) namespace: Vec<FieldSpec>,
    pub(crate) common_labels: Vec<FieldSpec>,
    pub(crate) labels: Vec<FieldSpec>,
    pub(crate) template_labels: Vec<FieldSpec>,
    pub(crate) volume_claim_template_labels: Vec<FieldSpec>,
    pub(crate) common_annotations: Vec<FieldSpec>,
    pub(crate) name_reference: Vec<NameReference>,
    pub(crate) var_reference: Vec<FieldSpec>,
    pub(crate) images: Vec<FieldSpec>,
    pub(crate) replicas: Vec<FieldSpec>,
}

impl TransformerConfig {
    fn lists(&self) -> [&Vec<FieldSpec>; 11] {
        [
            &self.name_prefix,
            &self.name_suffix,
            &self.namespace,
            &self.common_annotations,
            &self.common_labels,
            &self.labels,
            &self.template_labels,
            &self.volume_claim_template_labels,
            &self.var_reference,
            &self.images,
            &self.replicas,
        ]
    }

    /// The same lists, with the names that kustomize has for them in messages.
    fn lists_mut(&mut self) -> [(&'static str, &mut Vec<FieldSpec>); 11] {
        [
            ("NamePrefix", &mut self.name_prefix),
            ("NameSuffix", &mut self.name_suffix),
            ("NameSpace", &mut self.namespace),
            ("CommonAnnotations", &mut self.common_annotations),
            ("CommonLabels", &mut self.common_labels),
            ("Labels", &mut self.labels),
            ("TemplateLabels", &mut self.template_labels),
            (
                "VolumeClaimTemplateLabels",
                &mut self.volume_claim_template_labels,
            ),
            ("VarReference", &mut self.var_reference),
            ("Images", &mut self.images),
            ("Replicas", &mut self.replicas),
        ]
    }

    /// Adds a configuration to one that others may share: most kustomizations have the built-in one, which is large.
    pub(crate) fn merge_shared(base: &mut Arc<Self>, other: &Arc<Self>) -> Result<()> {
        let built_in = Self::built_in();
        let is_built_in = |config: &Arc<Self>| Arc::ptr_eq(config, built_in) || config == built_in;
        if is_built_in(other) {
            if Arc::ptr_eq(base, built_in) {
                // What is there already adds nothing.
                return Ok(());
            }
            if **base == Self::default() {
                *base = Arc::clone(built_in);
                return Ok(());
            }
        }
        Arc::make_mut(base).merge(other)
    }

    /// Adds another configuration to this one.
    ///
    /// Also a merge into an empty configuration drops fields that one before them covers: by kustomize's order a
    /// field of one type stands before the same field of all types, which is lost then.
    pub(crate) fn merge(&mut self, other: &Self) -> Result<()> {
        for ((name, mine), theirs) in self.lists_mut().into_iter().zip(other.lists()) {
            merge_all(mine, theirs).map_err(|e| e.context(format!("failed to merge {name} fieldSpec")))?;
        }
        for reference in &other.name_reference {
            self.merge_reference(reference)
                .map_err(|e| e.context("failed to merge NameReference fieldSpec"))?;
        }
        self.sort();
        Ok(())
    }

    fn merge_reference(&mut self, added: &NameReference) -> Result<()> {
        let mut found = false;
        for known in self
            .name_reference
            .iter_mut()
            .filter(|known| known.target == added.target)
        {
            merge_all(&mut known.referrers, &added.referrers)?;
            found = true;
        }
        if !found {
            self.name_reference.push(added.clone());
        }
        Ok(())
    }

    fn sort(&mut self) {
        let order = LegacyOrder::default();
        for (_, list) in self.lists_mut() {
            order.sort_by_type(list, |spec| &spec.selector);
        }
        order.sort_by_type(&mut self.name_reference, |reference| &reference.target);
    }
}

/// Node that a walk creates where the path ends and nothing is.
#[derive(Clone, Debug)]
pub(crate) struct Create {
    pub(crate) kind: Kind,
    pub(crate) tag: Tag,
}

/// Calls `set` for every node that a field specification leads to, if the object is of its type.
///
/// A path says nothing of lists: every element is walked. Parts that end in `[]` are lists, and never created.
pub(crate) fn visit(
    nodes: &mut Nodes,
    object: NodeId,
    spec: &FieldSpec,
    create: Option<&Create>,
    set: &mut dyn FnMut(&mut Nodes, NodeId) -> Result<()>,
) -> Result<()> {
    if !is_of_type(nodes, object, &spec.selector) {
        return Ok(());
    }
    let create = create.filter(|_| spec.create);
    visit_path(nodes, object, &spec.path, create, set)
}

/// Calls `set` for every node that a path leads to, whatever the object's type.
pub(crate) fn visit_path(
    nodes: &mut Nodes,
    object: NodeId,
    path: &str,
    create: Option<&Create>,
    set: &mut dyn FnMut(&mut Nodes, NodeId) -> Result<()>,
) -> Result<()> {
    let rest = path.strip_prefix('/').unwrap_or(path);
    Walk { create, set }
        .walk(nodes, object, Some(rest))
        .map_err(|error| {
            let id = crate::resource::id_of(nodes, object);
            error.context(format!("considering field '{path}' of object {id}"))
        })
}

fn is_of_type(nodes: &Nodes, object: NodeId, selector: &id::GvkSelector) -> bool {
    let text = |name: &str| {
        nodes
            .field(object, name)
            .map_or("", |field| nodes[field].value.as_str())
    };
    if !selector.kind.is_empty() && selector.kind != text("kind") {
        return false;
    }
    if selector.group.is_empty() && selector.version.is_empty() {
        return true;
    }
    let gvk = GroupVersionKind::new(text("apiVersion"), "");
    (selector.group.is_empty() || selector.group == gvk.group)
        && (selector.version.is_empty() || selector.version == gvk.version)
}

struct Walk<'a> {
    create: Option<&'a Create>,
    set: &'a mut dyn FnMut(&mut Nodes, NodeId) -> Result<()>,
}

impl Walk<'_> {
    /// Walks on from a node; `path` is what is left of the path, None at its end.
    fn walk(&mut self, nodes: &mut Nodes, at: NodeId, path: Option<&str>) -> Result<()> {
        let Some(path) = path else {
            return (self.set)(nodes, at);
        };
        if nodes[at].is_null() {
            return Ok(());
        }
        match nodes[at].kind {
            Kind::Sequence => {
                for element in nodes[at].content.clone() {
                    self.walk(nodes, element, Some(path)).map_err(|error| {
                        let parts = lookup::split_path(&format!("/{path}"), '/').join(" ");
                        error.context(format!("visit traversal on path: [{parts}]"))
                    })?;
                }
                Ok(())
            }
            Kind::Mapping => self.field(nodes, at, path),
            Kind::Alias | Kind::Scalar => Err(Error::invalid("expected sequence or mapping node")),
        }
    }

    fn field(&mut self, nodes: &mut Nodes, at: NodeId, path: &str) -> Result<()> {
        let (part, rest) = lookup::split_first(path, '/');
        let (name, is_list) = match part.strip_suffix("[]") {
            Some(name) => (name, true),
            None => (&*part, false),
        };
        if name.is_empty() {
            return Err(Error::invalid("cannot set or create an empty field name"));
        }
        let made = match self.create {
            None => is_list.then_some((Kind::Sequence, Tag::Empty)),
            Some(_) if is_list => Some((Kind::Sequence, Tag::Empty)),
            Some(create) if rest.is_none() => Some((create.kind, create.tag.clone())),
            Some(_) => Some((Kind::Mapping, Tag::Map)),
        };
        let field = match (&made, self.create) {
            (Some((kind, _)), Some(_)) if !is_list && !lookup::is_no_name(name) => {
                lookup::get_or_create(nodes, at, name, *kind)
            }
            _ => match lookup::lookup(nodes, at, &[name]) {
                Ok(Some(field)) => Ok(field),
                Ok(None) => return Ok(()),
                Err(error) => Err(error),
            },
        }
        .map_err(|e| e.context(format!("fieldName: {name}")))?;
        if let Some((kind, tag)) = made.filter(|_| nodes[field].is_null()) {
            nodes[field].kind = kind;
            nodes[field].tag = tag;
        }
        self.walk(nodes, field, rest)
    }
}
