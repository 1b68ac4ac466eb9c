//! Repairing references: whoever names an object by a name that it had gets the one that it has now.

use std::collections::{BTreeSet, HashMap};

use manifest::GroupVersionKind;
use manifest::yaml::{Kind, Node, NodeId};

use crate::error::{Error, ErrorKind, Result};
use crate::field_spec::{self, FieldSpec, NameReference};
use crate::id::{self, ResourceId};
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource::{self, Resource};
use crate::resource_map::ResourceMap;

/// Repairs all references of all resources.
pub(crate) fn repair(nodes: &mut Nodes, map: &ResourceMap, references: &[NameReference]) -> Result<()> {
    let index = Index::new(nodes, map);
    let mut fields_of_types: HashMap<&GroupVersionKind, Vec<(&FieldSpec, &GroupVersionKind)>> =
        HashMap::new();
    for (position, referrer) in map.list().iter().enumerate() {
        if referrer.root.is_none() {
            continue;
        }
        let original = &index.facts[position].original;
        let fields = fields_of_types
            .entry(original)
            .or_insert_with(|| fields_of(references, original));
        if fields.is_empty() {
            continue;
        }
        let repair = Repair::new(nodes, map, &index, position)?;
        for (spec, target) in fields {
            repair.field(nodes, spec, target)?;
        }
    }
    Ok(())
}

/// Returns the fields of a type that hold names, in order, with the types that they name.
fn fields_of<'a>(
    references: &'a [NameReference],
    of: &GroupVersionKind,
) -> Vec<(&'a FieldSpec, &'a GroupVersionKind)> {
    let fields = references.iter().flat_map(|reference| {
        let specs = reference.referrers.iter();
        specs.map(|spec| (spec, &reference.target))
    });
    fields
        .filter(|(spec, _)| id::is_selected(of, &spec.selector))
        .collect()
}

/// Index that does not change while references are repaired.
struct Index {
    /// Positions of resources by the names that they had, in order.
    by_previous_name: HashMap<String, Vec<usize>>,
    /// Positions of resources by the namespace that they had first, in order.
    by_original_namespace: HashMap<String, Vec<usize>>,
    facts: Vec<Facts>,
}

struct Facts {
    original: GroupVersionKind,
    current: ResourceId,
    previous: Vec<ResourceId>,
}

impl Facts {
    fn original_namespace(&self) -> &str {
        self.previous
            .first()
            .unwrap_or(&self.current)
            .effective_namespace()
    }
}

impl Index {
    fn new(nodes: &Nodes, map: &ResourceMap) -> Self {
        let mut by_previous_name: HashMap<String, Vec<usize>> = HashMap::new();
        let mut facts = Vec::with_capacity(map.list().len());
        for (position, resource) in map.list().iter().enumerate() {
            let names: BTreeSet<&str> = resource
                .history
                .previous
                .iter()
                .map(|p| p.name.as_str())
                .collect();
            for name in names {
                by_previous_name
                    .entry(name.to_owned())
                    .or_default()
                    .push(position);
            }
            let original = resource.original_id(nodes).gvk;
            facts.push(Facts {
                original,
                current: resource.id(nodes),
                previous: resource.previous_ids(nodes),
            });
        }
        let mut by_original_namespace: HashMap<String, Vec<usize>> = HashMap::new();
        for (position, fact) in facts.iter().enumerate() {
            let namespace = fact.original_namespace().to_owned();
            by_original_namespace.entry(namespace).or_default().push(position);
        }
        Self {
            by_previous_name,
            by_original_namespace,
            facts,
        }
    }
}

struct Repair<'a> {
    map: &'a ResourceMap,
    index: &'a Index,
    position: usize,
    root: NodeId,
    /// Namespaces of the service accounts that a role binding names.
    binding_namespaces: BTreeSet<String>,
}

impl<'a> Repair<'a> {
    fn new(nodes: &Nodes, map: &'a ResourceMap, index: &'a Index, position: usize) -> Result<Self> {
        let referrer = &map.list()[position];
        let root = referrer
            .root
            .ok_or_else(|| Error::invalid("a resource without content refers to nothing"))?;
        let binding_namespaces = namespaces_of_binding(nodes, root, &index.facts[position].current)?;
        Ok(Self {
            map,
            index,
            position,
            root,
            binding_namespaces,
        })
    }

    fn referrer(&self) -> &Resource {
        &self.map.list()[self.position]
    }

    fn id(&self) -> &ResourceId {
        &self.index.facts[self.position].current
    }

    fn field(&self, nodes: &mut Nodes, spec: &FieldSpec, target: &GroupVersionKind) -> Result<()> {
        // The type was checked against the original id; the object may have another by now.
        field_spec::visit_path(nodes, self.root, &spec.path, None, &mut |nodes, field| {
            self.set(nodes, field, spec, target)
        })
        .map_err(|error| {
            let id = self.id();
            error.context(format!(
                "updating name reference in '{}' field of '{id}'",
                spec.path
            ))
        })
    }

    fn set(
        &self,
        nodes: &mut Nodes,
        field: NodeId,
        spec: &FieldSpec,
        target: &GroupVersionKind,
    ) -> Result<()> {
        if nodes[field].is_null() {
            return Ok(());
        }
        match nodes[field].kind {
            Kind::Scalar => self.set_scalar(nodes, field, spec, target),
            Kind::Mapping => self.set_mapping(nodes, field, spec, target),
            Kind::Sequence => {
                for element in nodes[field].content.clone() {
                    if nodes[element].is_null() {
                        continue;
                    }
                    match nodes[element].kind {
                        Kind::Scalar => self.set_scalar(nodes, element, spec, target)?,
                        Kind::Mapping => self.set_mapping(nodes, element, spec, target)?,
                        _ => {
                            return Err(Error::invalid(
                                "node is expected to be either a string or a map of string",
                            ));
                        }
                    }
                }
                Ok(())
            }
            Kind::Alias => Err(Error::invalid("node must be a scalar, sequence or map")),
        }
    }

    fn set_scalar(
        &self,
        nodes: &mut Nodes,
        field: NodeId,
        spec: &FieldSpec,
        target: &GroupVersionKind,
    ) -> Result<()> {
        let old = nodes[field].value.clone();
        let named = |a: &Resource, b: &Resource| name_of(nodes, a) == name_of(nodes, b);
        let Some(found) = self.select(nodes, &old, spec, target, |_| true, named)? else {
            return Ok(());
        };
        let new = name_of(nodes, found).to_owned();
        if new == old {
            Ok(())
        } else {
            lookup::set_scalar(nodes, field, Node::scalar(new))
        }
    }

    fn set_mapping(
        &self,
        nodes: &mut Nodes,
        field: NodeId,
        spec: &FieldSpec,
        target: &GroupVersionKind,
    ) -> Result<()> {
        let Some(name) = nodes.field(field, "name") else {
            return Err(Error::invalid("path config error; no 'name' field in node"));
        };
        let old = nodes[name].value.clone();
        let namespace = nodes
            .field(field, "namespace")
            .map(|namespace| nodes[namespace].value.clone());
        let in_namespace = self.candidates_of(nodes, namespace.as_deref());
        let same = |a: &Resource, b: &Resource| {
            name_of(nodes, a) == name_of(nodes, b) && namespace_of(nodes, a) == namespace_of(nodes, b)
        };
        let Some(found) = self.select(nodes, &old, spec, target, in_namespace, same)? else {
            return Ok(());
        };
        let (name, namespace) = (
            name_of(nodes, found).to_owned(),
            namespace_of(nodes, found).to_owned(),
        );
        if name == old && namespace.is_empty() {
            return Ok(());
        }
        let name = nodes.add(Node::scalar(name));
        lookup::set_field(nodes, field, "name", name)?;
        if namespace.is_empty() {
            return Ok(());
        }
        let namespace = nodes.add(Node::scalar(namespace));
        lookup::set_field(nodes, field, "namespace", namespace)
    }

    /// Candidates of a namespace that a reference names: by the namespace that they had, else by the one they have.
    fn candidates_of(&self, nodes: &Nodes, namespace: Option<&str>) -> impl Fn(usize) -> bool + use<'a> {
        let facts = &self.index.facts;
        let wanted = namespace.map(str::to_owned);
        let by_original = wanted.as_deref().is_some_and(|wanted| {
            let had_it = self.index.by_original_namespace.get(wanted);
            let mut had_it = had_it.into_iter().flatten();
            wanted != id::NOT_NAMESPACED && had_it.any(|position| self.could_refer_to(nodes, *position))
        });
        move |position| match wanted.as_deref() {
            None => true,
            Some(wanted) if by_original => facts[position].original_namespace() == wanted,
            Some(id::NOT_NAMESPACED) => false,
            Some(wanted) => facts[position].current.effective_namespace() == wanted,
        }
    }

    /// Returns whether kustomize would look at a resource at all.
    fn could_refer_to(&self, nodes: &Nodes, position: usize) -> bool {
        let (own, other) = (self.id(), &self.index.facts[position].current);
        if own.cluster_scoped || other.cluster_scoped || other.is_in_namespace_of(own) {
            return true;
        }
        self.binding_namespaces
            .contains(namespace_of(nodes, &self.map.list()[position]))
    }

    fn select(
        &self,
        nodes: &Nodes,
        old_name: &str,
        spec: &FieldSpec,
        target: &GroupVersionKind,
        is_candidate: impl Fn(usize) -> bool,
        identical: impl Fn(&Resource, &Resource) -> bool,
    ) -> Result<Option<&'a Resource>> {
        let Some(named) = self.index.by_previous_name.get(old_name) else {
            return Ok(None);
        };
        let role = spec
            .path
            .ends_with("roleRef/name")
            .then(|| role_of(nodes, self.root))
            .flatten();
        let mut found: Vec<usize> = named
            .iter()
            .copied()
            .filter(|position| is_candidate(*position) && self.could_refer_to(nodes, *position))
            .filter(|position| self.had_type(*position, target))
            .filter(|position| role.as_ref().is_none_or(|role| self.had_type(*position, role)))
            .filter(|position| self.is_in_reach(*position))
            .collect();
        let resource = |position: usize| &self.map.list()[position];
        if found.len() == 1 {
            return Ok(Some(resource(found[0])));
        }
        found.retain(|position| resource(*position).has_affixes_of(self.referrer(), true));
        if found.len() > 1 {
            found.retain(|position| resource(*position).has_affixes_of(self.referrer(), false));
        }
        match found[..] {
            [] => Ok(None),
            [one] => Ok(Some(resource(one))),
            [first, ref rest @ ..] if rest.iter().all(|p| identical(resource(first), resource(*p))) => {
                Ok(Some(resource(first)))
            }
            _ => {
                let ids: Vec<String> = found
                    .iter()
                    .map(|p| self.index.facts[*p].current.to_string())
                    .collect();
                let mut message = format!(
                    "found multiple possible referrals: {}\n\n**** Too many possible referral targets to referrer:\n{}\n",
                    ids.join(", "),
                    resource::show_yaml(nodes, self.referrer())
                );
                for (number, position) in found.iter().enumerate() {
                    let yaml = resource::show_yaml(nodes, resource(*position));
                    message += &format!("--- possible referral {number}:\n{yaml}\n");
                }
                Err(Error::new(ErrorKind::Conflict, message))
            }
        }
    }

    fn had_type(&self, position: usize, selector: &GroupVersionKind) -> bool {
        self.index.facts[position]
            .previous
            .iter()
            .any(|id| id::is_selected(&id.gvk, selector))
    }

    fn is_in_reach(&self, position: usize) -> bool {
        let (own, other) = (self.id(), &self.index.facts[position].current);
        own.cluster_scoped
            || other.cluster_scoped
            || other.gvk.kind == "ServiceAccount"
            || own.is_in_namespace_of(other)
    }
}

fn name_of<'a>(nodes: &'a Nodes, resource: &Resource) -> &'a str {
    resource.root.map_or("", |root| resource::name(nodes, root))
}

fn namespace_of<'a>(nodes: &'a Nodes, resource: &Resource) -> &'a str {
    resource.root.map_or("", |root| resource::namespace(nodes, root))
}

/// A role binding may name service accounts of other namespaces.
fn namespaces_of_binding(nodes: &Nodes, root: NodeId, id: &ResourceId) -> Result<BTreeSet<String>> {
    let mut namespaces = BTreeSet::new();
    let subjects = nodes
        .field(root, "subjects")
        .filter(|subjects| nodes[*subjects].kind == Kind::Sequence);
    let Some(subjects) = subjects.filter(|_| id.gvk.kind == "RoleBinding") else {
        return Ok(namespaces);
    };
    for subject in &nodes[subjects].content {
        let is_account = nodes
            .field(*subject, "kind")
            .is_some_and(|kind| nodes[kind].value == "ServiceAccount");
        let Some(namespace) = nodes.field(*subject, "namespace").filter(|_| is_account) else {
            continue;
        };
        if nodes[namespace].is_null() {
            return Err(Error::invalid(format!(
                "Invalid Input: namespace is blank for resource \"{id}\"\n"
            )));
        }
        namespaces.insert(nodes[namespace].value.clone());
    }
    Ok(namespaces)
}

/// The type that a binding's `roleRef` names.
fn role_of(nodes: &Nodes, root: NodeId) -> Option<GroupVersionKind> {
    let role = nodes.field(root, "roleRef")?;
    let text = |field: &str| nodes.field(role, field).map(|value| nodes[value].value.clone());
    Some(GroupVersionKind {
        group: text("apiGroup")?,
        version: String::new(),
        kind: text("kind")?,
    })
}
