//! Validators: transformers that may change nothing but the label that says that they ran.

use manifest::yaml::NodeId;

use super::Target;
use crate::accumulate::accumulated::Accumulated;
use crate::error::{Error, Result};
use crate::nodes::Nodes;
use crate::plugin::Transformer;
use crate::resource::{self, Resource};

const VALIDATED_BY: &str = "validated-by";

impl Target<'_> {
    pub(super) fn run_validators(&self, nodes: &mut Nodes, base: &mut Accumulated) -> Result<()> {
        let entries = &self.kustomization.validators;
        let mut validators = Vec::with_capacity(entries.len());
        for config in self.plugin_configs(nodes, entries, "configuring external transformer")? {
            validators.push(Transformer::load(nodes, &self.loader, &config)?);
        }
        for validator in validators {
            let before = copies(nodes, base.map.list());
            validator.run(nodes, &mut base.map)?;
            let after = copies(nodes, base.map.list());
            for copy in &after {
                remove_label(nodes, copy)?;
            }
            expect_equal(nodes, &before, &after).map_err(|error| {
                error
                    .context("validator shouldn't modify the resource map")
                    .in_file(&self.file(), 0)
            })?;
        }
        Ok(())
    }
}

fn copies(nodes: &mut Nodes, resources: &[Resource]) -> Vec<Resource> {
    let mut copies = resources.to_vec();
    for copy in &mut copies {
        copy.root = copy.root.map(|root| nodes.deep_copy(root));
    }
    copies
}

fn remove_label(nodes: &mut Nodes, resource: &Resource) -> Result<()> {
    let Some(root) = resource.root else {
        return Ok(());
    };
    let mut labels = resource::labels(nodes, root);
    if labels.remove(VALIDATED_BY).is_none() {
        return Ok(());
    }
    resource::set_texts(nodes, root, "labels", &labels)
}

/// Compares as kustomize's `ErrorIfNotEqualSets`: by id, and then node by node, with the way that each was written.
fn expect_equal(nodes: &Nodes, before: &[Resource], after: &[Resource]) -> Result<()> {
    for old in before {
        let id = old.id(nodes);
        let same: Vec<&Resource> = after.iter().filter(|new| new.id(nodes).is_same(&id)).collect();
        let new = match same[..] {
            [new] => new,
            [] => {
                let message = format!("id in self missing from other; id: {id}");
                return Err(Error::invalid(message));
            }
            _ => {
                let message = format!("id in self matches {} in other; id: {id}", same.len());
                return Err(Error::invalid(message));
            }
        };
        let equal = old.history == new.history
            && match (old.root, new.root) {
                (Some(old), Some(new)) => is_equal(nodes, old, new),
                (old, new) => old == new,
            };
        if !equal {
            return Err(Error::invalid(unequal(nodes, old, new)));
        }
    }
    if before.len() != after.len() {
        let (before, after) = (before.len(), after.len());
        return Err(Error::invalid(format!("counting problem {after} != {before}")));
    }
    Ok(())
}

fn is_equal(nodes: &Nodes, a: NodeId, b: NodeId) -> bool {
    let (left, right) = (&nodes[a], &nodes[b]);
    left.kind == right.kind
        && left.tag == right.tag
        && left.value == right.value
        && left.style == right.style
        && left.line == right.line
        && left.content.len() == right.content.len()
        && left
            .content
            .iter()
            .zip(&right.content)
            .all(|(a, b)| is_equal(nodes, *a, *b))
}

/// kustomize shows both as JSON, and then as Go shows the structs, whose nodes are addresses.
fn unequal(nodes: &Nodes, old: &Resource, new: &Resource) -> String {
    const IN_GO: &str = "&resource.Resource{RNode:yaml.RNode{fieldPath:[]string(nil), value:(*yaml.Node)(0xPTR), \
        ShouldKeep:false, Match:[]string(nil)}, refVarNames:[]string(nil)}";
    let (old, new) = (resource::show(nodes, old), resource::show(nodes, new));
    format!("nodes unequal: \n -- {old},\n -- {new}\n\n--\n{IN_GO}\n------\n{IN_GO}\n")
}
