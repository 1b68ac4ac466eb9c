//! Content of each type of CDEvent, from a table: one line per type, with its version, the type of its
//! subject, and the fields, where `!` marks the required ones.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::fields::{filled, text};
use super::uri;

static VOCABULARY: LazyLock<BTreeMap<&'static str, Event>> =
    LazyLock::new(|| include_str!("vocabulary.txt").lines().map(Event::parse).collect());

/// A type of event.
#[derive(Debug)]
pub(super) struct Event {
    version: &'static str,
    subject: &'static str,
    fields: Vec<Field>,
}

#[derive(Debug)]
struct Field {
    name: &'static str,
    is_needed: bool,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Text,
    Filled,
    Texts,
    /// A package URL.
    Purl,
    OneOf(Vec<&'static str>),
    /// An object with these fields.
    Object(Vec<Field>),
}

impl Event {
    /// Finds the type, and splits the version off, which may be another.
    pub(super) fn from_type(type_: &str) -> Option<(&'static Self, &str)> {
        let name = type_.strip_prefix("dev.cdevents.")?;
        let (end, _) = name.match_indices('.').nth(1)?;
        let (name, version) = name.split_at(end);
        Some((VOCABULARY.get(name)?, &version[1..]))
    }

    pub(super) fn version(&self) -> &'static str {
        self.version
    }

    pub(super) fn subject(&self) -> &'static str {
        self.subject
    }

    /// Says what is wrong with the content, if anything is.
    pub(super) fn check(&self, content: &Map<String, Value>) -> Result<(), String> {
        check_all(&self.fields, content)
    }

    fn parse(line: &'static str) -> (&'static str, Self) {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("a line has a name, a version and a subject");
        let (name, version, subject) = (word(), word(), word());
        let fields = words.map(Field::parse).collect();
        (
            name,
            Self {
                version,
                subject,
                fields,
            },
        )
    }
}

impl Field {
    fn parse(word: &'static str) -> Self {
        let at = word.find(['!', ':']).expect("a field has a kind");
        let kind = match &word[at + 1..] {
            "text" => Kind::Text,
            "filled" => Kind::Filled,
            "texts" => Kind::Texts,
            "purl" => Kind::Purl,
            "reference" => Kind::object("id!filled source:text"),
            "sbom" => Kind::object("uri!filled"),
            "trigger" => Kind::object("type:manual|pipeline|event|schedule|other uri:text"),
            "case" => Kind::object(
                "id!filled version:text name:text type:performance|functional|unit|security|compliance|integration|e2e|other uri:text",
            ),
            "suite" => Kind::object("id!filled version:text name:text uri:text url:text"),
            choices => Kind::OneOf(choices.split('|').collect()),
        };
        Self {
            name: &word[..at],
            is_needed: word.as_bytes()[at] == b'!',
            kind,
        }
    }

    fn check(&self, content: &Map<String, Value>) -> Result<(), String> {
        let name = self.name;
        match &self.kind {
            Kind::Text => text(content, name).and_then(|text| match name {
                "source" => uri::check(text.unwrap_or_default()),
                _ => Ok(()),
            }),
            Kind::Filled => filled(content, name).map(drop),
            Kind::Purl => match text(content, name)? {
                Some(purl) => uri::check_package(purl),
                None if self.is_needed => Err(format!("its {name} is missing")),
                None => Ok(()),
            },
            Kind::OneOf(choices) => match text(content, name)? {
                Some(choice) if !choices.contains(&choice) => {
                    Err(format!("its {name} is none of {}", choices.join(", ")))
                }
                None if self.is_needed => Err(format!("its {name} is missing")),
                _ => Ok(()),
            },
            Kind::Texts => match content.get(name) {
                None | Some(Value::Null) => Ok(()),
                Some(Value::Array(texts)) if texts.iter().all(Value::is_string) => Ok(()),
                Some(_) => Err(format!("its {name} is no list of texts")),
            },
            Kind::Object(fields) => match content.get(name) {
                None | Some(Value::Null) if self.is_needed => Err(format!("its {name} is missing")),
                None | Some(Value::Null) => Ok(()),
                Some(Value::Object(object)) => check_all(fields, object),
                Some(_) => Err(format!("its {name} is no object")),
            },
        }
    }
}

impl Kind {
    fn object(fields: &'static str) -> Self {
        Self::Object(fields.split(' ').map(Field::parse).collect())
    }
}

fn check_all(fields: &[Field], content: &Map<String, Value>) -> Result<(), String> {
    fields.iter().try_for_each(|field| field.check(content))
}
