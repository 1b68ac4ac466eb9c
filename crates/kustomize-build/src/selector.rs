//! Selecting resources: by regular expressions over their ids, and by label and annotation selectors.

mod pattern;

use manifest::GroupVersionKind;
use manifest::labels::LabelSelector;
use regex::{Regex, RegexBuilder};

use crate::error::{Error, Result};
use crate::kustomization::Selector;
use crate::nodes::Nodes;
use crate::resource::{self, Resource};
use crate::resource_map::ResourceMap;

/// How large a compiled expression may become: patterns come from users.
const PATTERN_LIMIT: usize = 10 << 20;

/// Compiles a user's pattern as Go would.
pub(crate) fn compile(pattern: &str) -> Result<Regex> {
    let translated = pattern::translate(pattern).map_err(Error::invalid)?;
    RegexBuilder::new(&translated)
        .size_limit(PATTERN_LIMIT)
        .build()
        .map_err(|_| Error::invalid(format!("error parsing regexp: expression too large: `{pattern}`")))
}

/// A selector with its expressions compiled; empty parts match anything.
pub(crate) struct CompiledSelector {
    group: Option<Pattern>,
    version: Option<Pattern>,
    kind: Option<Pattern>,
    name: Option<Pattern>,
    namespace: Option<Pattern>,
    /// A selector that is wrong is no error before an object is held against it.
    labels: Result<LabelSelector>,
    annotations: Result<LabelSelector>,
}

impl CompiledSelector {
    /// Compiles a selector; its parts have to match as a whole.
    pub(crate) fn new(selector: &Selector) -> Result<Self> {
        let part = |pattern: &str| match pattern {
            "" => Ok(None),
            pattern => Pattern::new(pattern).map(Some),
        };
        let id = &selector.id;
        Ok(Self {
            group: part(&id.gvk.group)?,
            version: part(&id.gvk.version)?,
            kind: part(&id.gvk.kind)?,
            name: part(&id.name)?,
            namespace: part(&id.namespace)?,
            labels: LabelSelector::parse(&selector.label_selector).map_err(Error::invalid),
            annotations: LabelSelector::parse(&selector.annotation_selector).map_err(Error::invalid),
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

    /// Returns whether the labels match.
    pub(crate) fn matches_labels(&self, nodes: &Nodes, resource: &Resource) -> Result<bool> {
        let labels = self.labels.as_ref().map_err(Error::clone)?;
        Ok(resource
            .root
            .is_some_and(|root| labels.matches(&resource::labels(nodes, root))))
    }

    /// Returns whether the annotations match.
    pub(crate) fn matches_annotations(&self, nodes: &Nodes, resource: &Resource) -> Result<bool> {
        let annotations = self.annotations.as_ref().map_err(Error::clone)?;
        Ok(resource
            .root
            .is_some_and(|root| annotations.matches(&resource::annotations(nodes, root))))
    }

    /// Returns whether a resource is meant, by its original or its present name and namespace.
    fn selects(&self, nodes: &Nodes, resource: &Resource) -> Result<bool> {
        let (current, original) = (resource.id(nodes), resource.original_id(nodes));
        let namespace = self.matches_namespace(original.effective_namespace())
            || self.matches_namespace(current.effective_namespace());
        let name = self.matches_name(&original.name) || self.matches_name(&current.name);
        Ok(namespace
            && name
            && self.matches_gvk(&current.gvk)
            && self.matches_labels(nodes, resource)?
            && self.matches_annotations(nodes, resource)?)
    }
}

/// A part of a selector.
enum Pattern {
    /// Most are plain names, which need no expression: compiling one takes longer than all that is done with it.
    Text(String),
    Expression(Regex),
}

impl Pattern {
    fn new(pattern: &str) -> Result<Self> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
        if pattern.chars().all(is_plain) {
            return Ok(Self::Text(pattern.to_owned()));
        }
        compile(&format!("^(?:{pattern})$")).map(Self::Expression)
    }

    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Text(wanted) => wanted == text,
            Self::Expression(expression) => expression.is_match(text),
        }
    }
}

fn matches(pattern: Option<&Pattern>, text: &str) -> bool {
    pattern.is_none_or(|pattern| pattern.is_match(text))
}

/// Returns the positions of the resources that a selector means.
pub(crate) fn select(nodes: &Nodes, map: &ResourceMap, selector: &Selector) -> Result<Vec<usize>> {
    let selector = CompiledSelector::new(selector)?;
    let mut selected = Vec::new();
    for (index, resource) in map.list().iter().enumerate() {
        if selector.selects(nodes, resource)? {
            selected.push(index);
        }
    }
    Ok(selected)
}

/// Shows a selector as kustomize's messages do.
pub(crate) fn show(selector: &Selector) -> String {
    format!(
        "{}:a={}:l={}",
        selector.id, selector.annotation_selector, selector.label_selector
    )
}
