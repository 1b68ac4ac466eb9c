//! `namePrefix` and `nameSuffix`.

use manifest::yaml::{Kind, Node, Tag};

use crate::error::Result;
use crate::field_spec::{self, Create, FieldSpec};
use crate::id;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource::Resource;
use crate::resource_map::ResourceMap;

/// Which end of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Affix {
    Prefix,
    Suffix,
}

/// Puts text before or behind names.
pub(crate) fn apply(
    nodes: &mut Nodes,
    map: &mut ResourceMap,
    which: Affix,
    text: &str,
    specs: &[FieldSpec],
) -> Result<()> {
    for resource in map.list_mut() {
        apply_to(nodes, resource, which, text, specs)?;
    }
    Ok(())
}

fn apply_to(
    nodes: &mut Nodes,
    resource: &mut Resource,
    which: Affix,
    text: &str,
    specs: &[FieldSpec],
) -> Result<()> {
    let original = resource.original_id(nodes);
    if keeps_its_name(&original.gvk) {
        return Ok(());
    }
    for spec in specs
        .iter()
        .filter(|spec| id::is_selected(&original.gvk, &spec.selector))
    {
        if spec.path == "metadata/name" && !text.is_empty() {
            let affixes = match which {
                Affix::Prefix => &mut resource.history.prefixes,
                Affix::Suffix => &mut resource.history.suffixes,
            };
            affixes.push(text.to_owned());
            resource.store_previous_id(nodes);
        }
        let Some(root) = resource.root else { continue };
        let create = Create {
            kind: Kind::Scalar,
            tag: Tag::Str,
        };
        field_spec::visit(nodes, root, spec, Some(&create), &mut |nodes, field| {
            let old = &nodes[field].value;
            let new = match which {
                Affix::Prefix => format!("{text}{old}"),
                Affix::Suffix => format!("{old}{text}"),
            };
            lookup::set_scalar(nodes, field, Node::scalar(new))
        })?;
    }
    Ok(())
}

/// Names that mean something to the cluster: definitions, API services and namespaces.
fn keeps_its_name(gvk: &manifest::GroupVersionKind) -> bool {
    match gvk.kind.as_str() {
        "CustomResourceDefinition" | "Namespace" => true,
        "APIService" => gvk.group == "apiregistration.k8s.io",
        _ => false,
    }
}
