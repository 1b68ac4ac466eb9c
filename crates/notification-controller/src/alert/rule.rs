//! An Alert, read once: which events it wants.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::notification::{Alert, EventSeverity};
use controller_kit::ObjectKey;
use event::{Event, Severity};
use go_regexp::Regexp;
use kube::ResourceExt as _;

use super::options::Options;

pub use super::options::Problem;

/// An Alert, read.
#[derive(Debug)]
pub struct Rule {
    /// Its namespace and name.
    pub key: ObjectKey,
    /// The Alert.
    pub alert: Arc<Alert>,
    /// Options beyond Flux.
    pub options: Options,
    /// Annotations that could not be read.
    pub problems: Vec<Problem>,
    sources: Vec<Source>,
    inclusion: Vec<Pattern>,
    exclusion: Vec<Pattern>,
}

/// Whether an Alert wants an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interest {
    /// No.
    No,
    /// Yes, if the object has the labels of one of these.
    IfLabelled(Vec<BTreeMap<String, String>>),
    /// Yes.
    Yes,
}

#[derive(Debug)]
struct Source {
    kind: String,
    namespace: String,
    /// None for all.
    name: Option<String>,
    labels: BTreeMap<String, String>,
}

/// A pattern, or its text if it is none.
type Pattern = Result<Regexp, String>;

impl Rule {
    /// Reads an Alert.
    pub fn from_alert(alert: Arc<Alert>) -> Self {
        let key = ObjectKey::from_object(&*alert);
        let (options, problems) = Options::from_annotations(alert.annotations());
        let sources = alert.spec.event_sources.iter().map(|source| Source {
            kind: kind_name(source.kind),
            namespace: source.namespace.clone().unwrap_or_else(|| key.namespace.clone()),
            name: Some(source.name.clone()).filter(|name| name != "*"),
            labels: source.match_labels.clone(),
        });
        Self {
            sources: sources.collect(),
            inclusion: alert.spec.inclusion_list.iter().map(pattern).collect(),
            exclusion: alert.spec.exclusion_list.iter().map(pattern).collect(),
            options,
            problems,
            key,
            alert,
        }
    }

    /// Returns whether the Alert wants an event, by all that the event itself says.
    pub fn interest(&self, event: &Event) -> Interest {
        if self.alert.spec.suspend || !self.wants_severity(&event.severity) {
            return Interest::No;
        }
        let mut labels = Vec::new();
        for source in self.sources.iter().filter(|source| source.names(event)) {
            if source.labels.is_empty() {
                return Interest::Yes;
            }
            labels.push(source.labels.clone());
        }
        if labels.is_empty() {
            Interest::No
        } else {
            Interest::IfLabelled(labels)
        }
    }

    /// Returns whether the lists let a message through, and which of their patterns are none.
    pub fn lets_through(&self, message: &str) -> (bool, Vec<Problem>) {
        let mut problems = Vec::new();
        let mut any = |patterns: &[Pattern], list: &str| {
            patterns.iter().any(|pattern| match pattern {
                Ok(pattern) => pattern.is_match(message.as_bytes()),
                Err(text) => {
                    let message = format!("failed to compile {list} regex: {text}");
                    problems.push(Problem {
                        reason: "InvalidConfig",
                        message,
                    });
                    false
                }
            })
        };
        let included = self.inclusion.is_empty() || any(&self.inclusion, "inclusion");
        let through = included && !any(&self.exclusion, "exclusion");
        (through, problems)
    }

    /// Kinds that it names.
    pub fn kinds(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(|source| source.kind.as_str())
    }

    /// Returns whether an object is among its sources, but for labels.
    pub fn names(&self, object: &event::InvolvedObject) -> bool {
        self.sources.iter().any(|source| source.names_object(object))
    }

    fn wants_severity(&self, severity: &Severity) -> bool {
        match self.alert.spec.event_severity.unwrap_or_default() {
            EventSeverity::Info => true,
            EventSeverity::Error => *severity == Severity::Error,
        }
    }
}

impl Source {
    fn names(&self, event: &Event) -> bool {
        self.names_object(&event.involved_object)
    }

    fn names_object(&self, object: &event::InvolvedObject) -> bool {
        self.kind == object.kind
            && self.namespace == object.namespace
            && self.name.as_deref().is_none_or(|name| name == object.name)
    }
}

fn pattern(text: &String) -> Pattern {
    Regexp::compile(text.as_bytes()).map_err(|_| text.clone())
}

pub fn kind_name(kind: api::notification::EventSourceKind) -> String {
    match serde_json::to_value(kind) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
