//! Events about objects, as Flux's controllers post them to notification-controller (`event.toolkit.fluxcd.io/v1beta1`
//! of fluxcd/pkg).

pub mod keys;

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Something that happened to an object.
///
/// Read as Go reads it: unknown fields are passed over, and missing ones and nulls are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// Object of the event.
    #[serde(deserialize_with = "or_default")]
    pub involved_object: InvolvedObject,
    /// How bad it is.
    #[serde(deserialize_with = "or_default")]
    pub severity: Severity,
    /// When it happened; None is written as null.
    #[serde(serialize_with = "whole_seconds")]
    pub timestamp: Option<Timestamp>,
    /// Message for people.
    #[serde(deserialize_with = "or_default")]
    pub message: String,
    /// Reason for machines.
    #[serde(deserialize_with = "or_default")]
    pub reason: String,
    /// Further facts, by keys that mostly have a prefix; see [`keys`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "or_default")]
    pub metadata: BTreeMap<String, String>,
    /// Which controller says so, such as source-controller.
    #[serde(deserialize_with = "or_default")]
    pub reporting_controller: String,
    /// Which instance of it.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub reporting_instance: String,
}

/// An object by reference, as in the core API of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InvolvedObject {
    /// Its kind.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub kind: String,
    /// Its namespace; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub namespace: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub name: String,
    /// Its UID.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub uid: String,
    /// Its API version: group and version, or the version alone.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub api_version: String,
    /// Its resource version at that time.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub resource_version: String,
    /// The part of it that is meant.
    #[serde(skip_serializing_if = "String::is_empty", deserialize_with = "or_default")]
    pub field_path: String,
}

/// How bad an event is.
///
/// Third parties may post any text; it is kept as it is, since a generic provider passes it on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum Severity {
    /// A step on the way. It is for logs and never leaves a controller.
    Trace,
    /// Something changed.
    Info,
    /// Something failed.
    Error,
    /// None that Flux knows.
    Other(String),
    /// None at all.
    #[default]
    Unset,
}

impl Event {
    /// The group of the object's API, which is the prefix of most [keys].
    pub fn group(&self) -> &str {
        self.involved_object.group()
    }

    /// The value of a key under the prefix of the object's group, such as `revision`.
    pub fn of_group(&self, key: &str) -> Option<&str> {
        self.metadata
            .get(&format!("{}/{key}", self.group()))
            .map(String::as_str)
    }

    /// The revision that it is about, in metadata without prefixes: that of the commit, of the origin, or of the
    /// artifact.
    pub fn revision(&self) -> Option<&str> {
        [keys::COMMIT, keys::ORIGIN_REVISION, keys::REVISION]
            .into_iter()
            .find_map(|key| self.metadata.get(key))
            .map(String::as_str)
    }

    /// Returns whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl InvolvedObject {
    /// The group of its API; empty for the core API.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}

/// `Kind/namespace/name`, as in Flux's messages.
impl fmt::Display for InvolvedObject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.kind, self.namespace, self.name)
    }
}

impl Severity {
    /// Its text on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Trace => "trace",
            Self::Info => "info",
            Self::Error => "error",
            Self::Other(text) => text,
            Self::Unset => "",
        }
    }
}

impl From<String> for Severity {
    fn from(text: String) -> Self {
        match text.as_str() {
            "trace" => Self::Trace,
            "info" => Self::Info,
            "error" => Self::Error,
            "" => Self::Unset,
            _ => Self::Other(text),
        }
    }
}

impl From<Severity> for String {
    fn from(severity: Severity) -> Self {
        severity.as_str().to_owned()
    }
}

/// Go's metav1.Time: RFC 3339 in UTC, in whole seconds.
fn whole_seconds<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.collect_str(&time.strftime("%Y-%m-%dT%H:%M:%SZ")),
        None => serializer.serialize_none(),
    }
}

fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests;
