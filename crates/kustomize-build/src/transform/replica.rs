//! `replicas`.

use manifest::yaml::{Kind, Node, Tag};

use crate::error::{Error, Result};
use crate::field_spec::{self, Create, FieldSpec};
use crate::id;
use crate::kustomization::Replica;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource_map::ResourceMap;

/// Sets the number of replicas of the workloads of a name, now or before.
pub(crate) fn apply(
    nodes: &mut Nodes,
    map: &mut ResourceMap,
    replica: &Replica,
    specs: &[FieldSpec],
) -> Result<()> {
    let create = Create {
        kind: Kind::Scalar,
        tag: Tag::Int,
    };
    let mut found = false;
    for spec in specs {
        let hits = map.matching_any_id(nodes, &replica.name, |known| {
            id::is_selected(&known.gvk, &spec.selector)
        });
        found |= !hits.is_empty();
        for root in hits.into_iter().filter_map(|index| map.list()[index].root) {
            field_spec::visit(nodes, root, spec, Some(&create), &mut |nodes, field| {
                lookup::set_scalar(
                    nodes,
                    field,
                    Node::tagged_scalar(replica.count.to_string(), Tag::Int),
                )
            })?;
        }
    }
    if found {
        return Ok(());
    }
    let types: Vec<String> = specs.iter().map(|spec| id::show_gvk(&spec.selector)).collect();
    Err(Error::invalid(format!(
        "resource with name {} does not match a config with the following GVK [{}]",
        replica.name,
        types.join(" ")
    )))
}
