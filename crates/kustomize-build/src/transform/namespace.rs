//! `namespace`.

use std::collections::HashMap;

use manifest::GroupVersionKind;
use manifest::yaml::{Kind, Node, NodeId, Tag};

use crate::error::{Error, ErrorKind, Result};
use crate::field_spec::{self, Create, FieldSpec};
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource;
use crate::resource_map::ResourceMap;

/// Which subjects of role bindings get the namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Subjects {
    /// Those named `default`.
    #[default]
    DefaultOnly,
    /// All service accounts.
    AllServiceAccounts,
    /// None.
    None,
}

/// A namespace to set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    /// Leaves namespaces alone that are set.
    pub(crate) unset_only: bool,
    pub(crate) subjects: Subjects,
}

/// Sets the namespace of all namespaced objects, and in the fields that are specified.
pub(crate) fn apply(
    nodes: &mut Nodes,
    map: &mut ResourceMap,
    namespace: &Namespace,
    specs: &[FieldSpec],
) -> Result<()> {
    if namespace.name.is_empty() {
        return Ok(());
    }
    let key = |id: crate::id::ResourceId| {
        let effective = id.effective_namespace().to_owned();
        (id.gvk, id.name, effective)
    };
    let mut taken: HashMap<(GroupVersionKind, String, String), usize> = HashMap::new();
    for resource in map.list() {
        *taken.entry(key(resource.id(nodes))).or_default() += 1;
    }
    for index in 0..map.list().len() {
        let resource = &mut map.list_mut()[index];
        let Some(root) = resource.root.filter(|_| !resource.is_empty(nodes)) else {
            continue;
        };
        if resource.history.is_from_chart {
            continue;
        }
        let before = key(resource.id(nodes));
        resource.store_previous_id(nodes);
        namespace.set_in(nodes, root, specs)?;
        let after = key(resource.id(nodes));
        if before == after {
            if taken.get(&after).is_some_and(|count| *count > 1) {
                return Err(conflict(nodes, map, index));
            }
            continue;
        }
        taken
            .entry(before)
            .and_modify(|count| *count = count.saturating_sub(1));
        let count = taken.entry(after).or_default();
        *count += 1;
        if *count > 1 {
            return Err(conflict(nodes, map, index));
        }
    }
    Ok(())
}

fn conflict(nodes: &Nodes, map: &ResourceMap, index: usize) -> Error {
    let id = map.list()[index].id(nodes);
    let same = map
        .list()
        .iter()
        .filter(|resource| resource.id(nodes).is_same(&id));
    let shown: Vec<String> = same.map(|resource| resource::show(nodes, resource)).collect();
    Error::new(
        ErrorKind::Conflict,
        format!(
            "namespace transformation produces ID conflict: [{}]",
            shown.join(" ")
        ),
    )
}

impl Namespace {
    /// Sets the namespace of one object.
    pub(crate) fn set_in(&self, nodes: &mut Nodes, root: NodeId, specs: &[FieldSpec]) -> Result<()> {
        let api_version = resource::text(nodes, root, "apiVersion").to_owned();
        let kind = resource::text(nodes, root, "kind").to_owned();
        let gvk = GroupVersionKind::new(&api_version, &kind);
        if !nodes.schemas.is_cluster_scoped(&gvk) {
            let own = FieldSpec::new("metadata/namespace", true);
            let create = Create {
                kind: Kind::Scalar,
                tag: Tag::Empty,
            };
            field_spec::visit(nodes, root, &own, Some(&create), &mut |nodes, field| {
                self.set(nodes, field)
            })?;
        }
        let is_binding = matches!(kind.as_str(), "RoleBinding" | "ClusterRoleBinding");
        if is_binding {
            self.set_in_subjects(nodes, root)?;
        }
        let create = Create {
            kind: Kind::Scalar,
            tag: Tag::Str,
        };
        for spec in specs {
            // These fields have rules of their own, above, or belong to core objects only.
            let has_rule = spec.path == "metadata/namespace"
                || (spec.path == "metadata/name" && api_version != "v1")
                || (is_binding
                    && spec.path == "subjects/namespace"
                    && spec.selector.kind.ends_with("RoleBinding"));
            if has_rule {
                continue;
            }
            field_spec::visit(nodes, root, spec, Some(&create), &mut |nodes, field| {
                self.set(nodes, field)
            })
            .map_err(|error| {
                let words = error.to_string();
                // kyaml's InvalidNodeKindError.
                let is_of_other_kind =
                    words.contains("wrong node kind: ") && !words.contains("but got ScalarNode");
                error.context(match is_of_other_kind {
                    true => "namespace field specs must target scalar nodes",
                    false => "namespace transformation failed",
                })
            })?;
        }
        Ok(())
    }

    fn set(&self, nodes: &mut Nodes, field: NodeId) -> Result<()> {
        if self.unset_only && !nodes[field].is_null() && !nodes[field].value.is_empty() {
            return Ok(());
        }
        lookup::set_scalar(nodes, field, Node::tagged_scalar(self.name.as_str(), Tag::Str))
    }

    fn set_in_subjects(&self, nodes: &mut Nodes, root: NodeId) -> Result<()> {
        let (field, value) = match self.subjects {
            Subjects::None => return Ok(()),
            Subjects::DefaultOnly => ("name", "default"),
            Subjects::AllServiceAccounts => ("kind", "ServiceAccount"),
        };
        let failed = |error: Error| error.context("setting namespace on (cluster)role binding subjects");
        let Some(subjects) = lookup::get(nodes, root, "subjects")? else {
            return Ok(());
        };
        if nodes[subjects].is_null() {
            return Ok(());
        }
        lookup::expect_kind(nodes, subjects, Kind::Sequence).map_err(failed)?;
        for subject in nodes[subjects].content.clone() {
            let Some(found) = lookup::get(nodes, subject, field).map_err(failed)? else {
                continue;
            };
            if nodes[found].is_null() || nodes[found].value != value {
                continue;
            }
            let field = lookup::get_or_create(nodes, subject, "namespace", Kind::Scalar)?;
            self.set(nodes, field)?;
        }
        Ok(())
    }
}
