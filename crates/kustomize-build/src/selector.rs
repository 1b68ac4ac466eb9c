//! Selecting resources: by regular expressions over their ids, and by label and annotation selectors.

mod labels;

use manifest::GroupVersionKind;
use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::kustomization::Selector;
use crate::nodes::Nodes;
use crate::resource::{self, Resource};
use crate::resource_map::ResourceMap;

pub(crate) use labels::LabelSelector;

/// How large a compiled expression may become: patterns come from users.
const PATTERN_LIMIT: usize = 1 << 20;

/// Compiles a user's pattern.
pub(crate) fn compile(pattern: &str) -> Result<Regex> {
    RegexBuilder::new(pattern)
        .size_limit(PATTERN_LIMIT)
        .build()
        .map_err(|error| Error::invalid(format!("error parsing regexp: {error}")))
}

/// A selector with its expressions compiled; empty parts match anything.
pub(crate) struct CompiledSelector {
    group: Option<Regex>,
    version: Option<Regex>,
    kind: Option<Regex>,
    name: Option<Regex>,
    namespace: Option<Regex>,
    labels: LabelSelector,
    annotations: LabelSelector,
}

impl CompiledSelector {
    /// Compiles a selector; its parts have to match as a whole.
    pub(crate) fn new(selector: &Selector) -> Result<Self> {
        let part = |pattern: &str| match pattern {
            "" => Ok(None),
            pattern => compile(&format!("^(?:{pattern})$")).map(Some),
        };
        let id = &selector.id;
        Ok(Self {
            group: part(&id.gvk.group)?,
            version: part(&id.gvk.version)?,
            kind: part(&id.gvk.kind)?,
            name: part(&id.name)?,
            namespace: part(&id.namespace)?,
            labels: LabelSelector::parse(&selector.label_selector)?,
            annotations: LabelSelector::parse(&selector.annotation_selector)?,
        })
    }

    pub(crate) fn matches_gvk(&self, gvk: &GroupVersionKind) -> bool {
        matches(self.group.as_ref(), &gvk.group)
            && matches(self.version.as_ref(), &gvk.version)
            && matches(self.kind.as_ref(), &gvk.kind)
    }

    pub(crate) fn matches_name(&self, name: &str) -> bool {
        matches(self.name.as_ref(), name)
    }

    pub(crate) fn matches_namespace(&self, namespace: &str) -> bool {
        matches(self.namespace.as_ref(), namespace)
    }

    /// Tells whether labels and annotations match.
    pub(crate) fn matches_metadata(&self, nodes: &Nodes, resource: &Resource) -> bool {
        let Some(root) = resource.root else { return false };
        self.labels.matches(&resource::labels(nodes, root))
            && self.annotations.matches(&resource::annotations(nodes, root))
    }

    /// Tells whether a resource is meant, by its original or its present name and namespace.
    fn selects(&self, nodes: &Nodes, resource: &Resource) -> bool {
        let (current, original) = (resource.id(nodes), resource.original_id(nodes));
        let namespace = self.matches_namespace(original.effective_namespace())
            || self.matches_namespace(current.effective_namespace());
        let name = self.matches_name(&original.name) || self.matches_name(&current.name);
        namespace && name && self.matches_gvk(&current.gvk) && self.matches_metadata(nodes, resource)
    }
}

fn matches(pattern: Option<&Regex>, text: &str) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(text))
}

/// Returns the positions of the resources that a selector means.
pub(crate) fn select(nodes: &Nodes, map: &ResourceMap, selector: &Selector) -> Result<Vec<usize>> {
    let selector = CompiledSelector::new(selector)?;
    let hit = |(index, resource): (usize, &Resource)| selector.selects(nodes, resource).then_some(index);
    Ok(map.list().iter().enumerate().filter_map(hit).collect())
}
