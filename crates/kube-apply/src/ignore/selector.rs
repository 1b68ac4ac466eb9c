//! Which objects a rule is for. Patterns are Go's, and must match the whole; what is empty matches anything.

use go_regexp::Regexp;
use manifest::Object;
use manifest::labels::LabelSelector;
use serde_json::{Map, Value};

use super::ObjectSelector;
use super::rule::IgnoreError;

#[derive(Clone, Debug)]
pub(super) struct CompiledSelector {
    group: Option<Pattern>,
    version: Option<Pattern>,
    kind: Option<Pattern>,
    name: Option<Pattern>,
    namespace: Option<Pattern>,
    labels: LabelSelector,
    annotations: LabelSelector,
}

impl CompiledSelector {
    pub(super) fn new(target: &ObjectSelector) -> Result<Self, IgnoreError> {
        Ok(Self {
            group: Pattern::new(&target.group, "group regex")?,
            version: Pattern::new(&target.version, "version regex")?,
            kind: Pattern::new(&target.kind, "kind regex")?,
            name: Pattern::new(&target.name, "name regex")?,
            namespace: Pattern::new(&target.namespace, "namespace regex")?,
            labels: labels(&target.label_selector, "label selector")?,
            annotations: labels(&target.annotation_selector, "annotation selector")?,
        })
    }

    /// Returns whether kind, name and namespace match.
    pub(super) fn names(&self, object: &Object) -> bool {
        let gvk = object.gvk();
        [
            (&self.group, gvk.group.as_str()),
            (&self.version, &gvk.version),
            (&self.kind, &gvk.kind),
            (&self.name, object.name()),
            (&self.namespace, object.namespace()),
        ]
        .into_iter()
        .all(|(pattern, text)| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text)))
    }

    /// Returns whether all matches, by the labels and annotations of the object itself.
    pub(super) fn selects(&self, object: &Object) -> bool {
        self.names(object)
            && self.labels.matches_by(|key| object.label(key))
            && self.annotations.matches_by(|key| object.annotation(key))
    }

    /// Returns whether labels and annotations match.
    pub(super) fn labels_match(&self, labels: &Map<String, Value>, annotations: &Map<String, Value>) -> bool {
        let matches = |selector: &LabelSelector, map: &Map<String, Value>| {
            selector.matches_by(|key| map.get(key).and_then(Value::as_str))
        };
        matches(&self.labels, labels) && matches(&self.annotations, annotations)
    }
}

fn labels(text: &str, part: &'static str) -> Result<LabelSelector, IgnoreError> {
    LabelSelector::parse(text).map_err(|problem| IgnoreError::Selector { part, problem })
}

/// Most are plain names, which need no expression.
#[derive(Clone, Debug)]
enum Pattern {
    Text(String),
    Expression(Box<Regexp>),
}

impl Pattern {
    fn new(pattern: &str, part: &'static str) -> Result<Option<Self>, IgnoreError> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '/');
        if pattern.is_empty() {
            return Ok(None);
        }
        if pattern.chars().all(is_plain) {
            return Ok(Some(Self::Text(pattern.to_owned())));
        }
        match Regexp::compile(format!("^(?:{pattern})$").as_bytes()) {
            Ok(compiled) => Ok(Some(Self::Expression(Box::new(compiled)))),
            Err(error) => Err(IgnoreError::Selector {
                part,
                problem: error.to_string(),
            }),
        }
    }

    fn is_match(&self, text: &str) -> bool {
        match self {
            Self::Text(wanted) => wanted == text,
            Self::Expression(expression) => expression.is_match(text.as_bytes()),
        }
    }
}
