//! History of a resource during a build: its previous names and namespaces.
//!
//! kustomize keeps it in annotations of the object, where patches see it. Here it is beside the tree, and put into the
//! annotations only for those steps that could tell the difference.

use std::collections::BTreeMap;

use manifest::yaml::{Kind, Node, NodeId, Style, Tag};

use super::{Behavior, Resource, metadata};
use crate::error::Result;
use crate::lookup;
use crate::nodes::Nodes;

/// A name, namespace and kind that a resource had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) name: String,
    pub(crate) namespace: String,
    pub(crate) kind: String,
}

/// History of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct History {
    pub(crate) previous: Vec<Previous>,
    pub(crate) prefixes: Vec<String>,
    pub(crate) suffixes: Vec<String>,
    pub(crate) behavior: Option<Behavior>,
    pub(crate) adds_hash: bool,
    /// As a patch: may change the target's name.
    pub(crate) allow_name_change: bool,
    /// As a patch: may change the target's kind.
    pub(crate) allow_kind_change: bool,
    /// Rendered by Helm, which sees to its namespace.
    pub(crate) is_from_chart: bool,
}

const DOMAIN: &str = "internal.config.kubernetes.io/";
const PREVIOUS_NAMES: &str = "internal.config.kubernetes.io/previousNames";
const PREVIOUS_NAMESPACES: &str = "internal.config.kubernetes.io/previousNamespaces";
const PREVIOUS_KINDS: &str = "internal.config.kubernetes.io/previousKinds";
const PREFIXES: &str = "internal.config.kubernetes.io/prefixes";
const SUFFIXES: &str = "internal.config.kubernetes.io/suffixes";
const BEHAVIOR: &str = "internal.config.kubernetes.io/generatorBehavior";
const ADDS_HASH: &str = "internal.config.kubernetes.io/needsHashSuffix";
const ALLOW_NAME_CHANGE: &str = "internal.config.kubernetes.io/allowNameChange";
const ALLOW_KIND_CHANGE: &str = "internal.config.kubernetes.io/allowKindChange";

/// Annotation that lists the referrers of an object: kustomize removes it, and no one here reads it.
const REFERRERS: &str = "internal.config.kubernetes.io/refBy";

const HELM_GENERATED: &str = "internal.config.kubernetes.io/helm-generated";

const ENABLED: &str = "enabled";

const KEYS: [&str; 11] = [
    PREVIOUS_NAMES,
    PREVIOUS_NAMESPACES,
    PREVIOUS_KINDS,
    PREFIXES,
    SUFFIXES,
    BEHAVIOR,
    ADDS_HASH,
    ALLOW_NAME_CHANGE,
    ALLOW_KIND_CHANGE,
    REFERRERS,
    HELM_GENERATED,
];

impl History {
    /// Returns kustomize's annotations, in the order in which it makes them.
    pub(crate) fn annotations(&self) -> Vec<(&'static str, String)> {
        let enabled = |is: bool| if is { ENABLED.to_owned() } else { String::new() };
        let previous = |part: fn(&Previous) -> &String| {
            let parts: Vec<&str> = self.previous.iter().map(|p| part(p).as_str()).collect();
            parts.join(",")
        };
        let behavior = self.behavior.map_or("", Behavior::as_str);
        let affixes = [
            (PREFIXES, self.prefixes.join(",")),
            (SUFFIXES, self.suffixes.join(",")),
        ];
        let ids = [
            (PREVIOUS_NAMES, previous(|p| &p.name)),
            (PREVIOUS_NAMESPACES, previous(|p| &p.namespace)),
            (PREVIOUS_KINDS, previous(|p| &p.kind)),
        ];
        // A prefix is noted before the name that it changes; a namespace changes the id without a note of its own.
        let affixes_first = self.previous.len() <= self.prefixes.len() + self.suffixes.len();
        let of_chart = if self.is_from_chart { "true" } else { "" };
        let mut all = vec![
            (HELM_GENERATED, of_chart.to_owned()),
            (BEHAVIOR, behavior.to_owned()),
            (ADDS_HASH, enabled(self.adds_hash)),
        ];
        if affixes_first {
            all.extend(affixes.clone());
        }
        all.extend(ids);
        if !affixes_first {
            all.extend(affixes);
        }
        all.push((ALLOW_NAME_CHANGE, enabled(self.allow_name_change)));
        all.push((ALLOW_KIND_CHANGE, enabled(self.allow_kind_change)));
        all.into_iter().filter(|(_, value)| !value.is_empty()).collect()
    }

    fn from_annotations(annotations: &BTreeMap<String, String>) -> Self {
        let text = |key: &str| annotations.get(key).map(String::as_str);
        let list = |key: &str| -> Vec<String> {
            let parts = text(key).map(|text| text.split(',').map(str::to_owned).collect());
            parts.unwrap_or_default()
        };
        let names = list(PREVIOUS_NAMES).into_iter();
        let previous = names
            .zip(list(PREVIOUS_NAMESPACES))
            .zip(list(PREVIOUS_KINDS))
            .map(|((name, namespace), kind)| Previous {
                name,
                namespace,
                kind,
            });
        let is_enabled = |key: &str| text(key) == Some(ENABLED);
        Self {
            previous: previous.collect(),
            prefixes: list(PREFIXES),
            suffixes: list(SUFFIXES),
            behavior: text(BEHAVIOR).map(Behavior::parse),
            adds_hash: is_enabled(ADDS_HASH),
            allow_name_change: is_enabled(ALLOW_NAME_CHANGE),
            allow_kind_change: is_enabled(ALLOW_KIND_CHANGE),
            is_from_chart: text(HELM_GENERATED) == Some("true"),
        }
    }
}

impl Resource {
    /// Runs a step with the history where kustomize has it, and reads it back from there.
    pub(crate) fn with_history_in_annotations<T>(
        &mut self,
        nodes: &mut Nodes,
        step: impl FnOnce(&mut Nodes, &mut Self) -> Result<T>,
    ) -> Result<T> {
        self.write_history(nodes);
        let result = step(nodes, self)?;
        self.read_history(nodes);
        Ok(result)
    }

    /// Puts the history where kustomize has it.
    ///
    /// Metadata that a patch made something else cannot hold the history, which is lost with it.
    pub(crate) fn write_history(&mut self, nodes: &mut Nodes) {
        let annotations = self.history.annotations();
        let Some(root) = self.root.filter(|_| !annotations.is_empty()) else {
            return;
        };
        let Ok(metadata) = lookup::get_or_create(nodes, root, "metadata", Kind::Mapping) else {
            return;
        };
        if nodes[metadata].kind != Kind::Mapping {
            return;
        }
        let old = nodes.field(metadata, "annotations");
        if old.is_some_and(|old| nodes[old].content.is_empty()) {
            nodes.remove_field(metadata, "annotations");
        }
        let Ok(map) = lookup::get_or_create(nodes, metadata, "annotations", Kind::Mapping) else {
            return;
        };
        for (key, value) in annotations {
            nodes.remove_field(map, key);
            let value = Node {
                style: Style::SingleQuoted,
                ..Node::tagged_scalar(value, Tag::Str)
            };
            let value = nodes.add(value);
            nodes.push_field(map, key, value);
        }
    }

    /// Takes the history out of the annotations, also one that a file brings along; a field that is empty then goes, as it does in the end.
    pub(crate) fn read_history(&mut self, nodes: &mut Nodes) {
        self.history = History::default();
        let Some(root) = self.root else { return };
        let metadata = nodes.field(root, "metadata");
        let Some((metadata, map)) =
            metadata.and_then(|metadata| Some((metadata, nodes.field(metadata, "annotations")?)))
        else {
            return;
        };
        let is_kept = |key: &NodeId| nodes[*key].value.starts_with(DOMAIN);
        if !nodes.pairs(map).any(|(key, _)| is_kept(&key)) {
            return;
        }
        self.history = History::from_annotations(&metadata::annotations(nodes, root));
        for key in KEYS {
            nodes.remove_field(map, key);
        }
        if nodes[map].content.is_empty() {
            nodes.remove_field(metadata, "annotations");
        }
    }
}
