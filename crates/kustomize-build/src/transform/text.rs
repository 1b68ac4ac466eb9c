//! Labels and annotations: texts set under a key in all fields of a list.

use std::collections::BTreeMap;

use manifest::yaml::{Kind, Node, Tag};

use crate::error::Result;
use crate::field_spec::{self, Create, FieldSpec};
use crate::kustomization::Label;
use crate::lookup;
use crate::nodes::Nodes;
use crate::resource::Resource;
use crate::resource_map::ResourceMap;

/// Sets texts in all fields that are specified.
///
/// One object's fields get one node together, as in kustomize: a patch of one of them changes them all.
pub(crate) fn apply(
    nodes: &mut Nodes,
    map: &mut ResourceMap,
    texts: &BTreeMap<String, String>,
    specs: &[FieldSpec],
) -> Result<()> {
    let create = Create {
        kind: Kind::Mapping,
        tag: Tag::Map,
    };
    for resource in map.list() {
        let Some(root) = resource.root else { continue };
        let specs: Vec<FieldSpec> = specs.iter().map(|spec| seen(resource, spec)).collect();
        for (key, value) in texts {
            let value = nodes.add(Node::tagged_scalar(value.as_str(), Tag::Str));
            for spec in &specs {
                field_spec::visit(nodes, root, spec, Some(&create), &mut |nodes, field| {
                    lookup::set_field(nodes, field, key, value)
                })?;
            }
        }
    }
    Ok(())
}

/// Where kustomize has annotations of its own on an object, the field is there already.
fn seen(resource: &Resource, spec: &FieldSpec) -> FieldSpec {
    let is_there = resource.leaves_annotations() && spec.path == "metadata/annotations";
    FieldSpec {
        create: spec.create || is_there,
        ..spec.clone()
    }
}

/// Returns the fields that an entry of `labels` is set in.
pub(crate) fn fields_of_label(
    label: &Label,
    config: &crate::field_spec::TransformerConfig,
) -> Result<Vec<FieldSpec>> {
    let failed = |error: crate::Error| error.context("failed to merge labels");
    let mut specs = label.fields.clone();
    field_spec::merge_all(&mut specs, &config.labels).map_err(failed)?;
    if label.include_selectors {
        field_spec::merge_all(&mut specs, &config.common_labels).map_err(failed)?;
        return Ok(specs);
    }
    if label.include_templates {
        field_spec::merge_all(&mut specs, &config.template_labels)
            .map_err(|error| error.context("failed to merge template fieldSpec"))?;
    }
    if label.include_volume_claim_templates {
        field_spec::merge_all(&mut specs, &config.volume_claim_template_labels)
            .map_err(|error| error.context("failed to merge volumeClaimTemplate fieldSpec"))?;
    }
    field_spec::merge_one(&mut specs, &FieldSpec::new("metadata/labels", true)).map_err(failed)?;
    Ok(specs)
}
