//! The record of an artifact: which object it belongs to, what it is called, and the digests of its content.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::error::{Error, Result};
use crate::digest::Digest;

/// One artifact of one object. Serves for status.artifact and for the artifact service alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    /// Kind of the source object, for example `GitRepository`.
    pub kind: String,
    /// Namespace of the source object.
    pub namespace: String,
    /// Name of the source object.
    pub name: String,
    /// As in status.artifact.revision.
    pub revision: String,
    /// Digest of the archive.
    pub digest: Digest,
    /// Bytes of the archive.
    pub size: u64,
    /// Digest of the root folder.
    pub tree: Digest,
    /// `<kind in lower case>/<namespace>/<name>/<file name>`, as in status.artifact.path.
    pub path: String,
    /// When it was stored, in whole seconds.
    pub last_update_time: Timestamp,
    /// As in status.artifact.metadata.
    pub metadata: BTreeMap<String, String>,
}

/// Metadata that the caller supplies for an artifact.
#[derive(Debug, Clone, Default)]
pub struct RecordMeta {
    /// Kind of the source object.
    pub kind: String,
    /// Namespace of the source object.
    pub namespace: String,
    /// Name of the source object.
    pub name: String,
    /// Name of the source's state.
    pub revision: String,
    /// Last part of the path, for example `<commit>.tar.gz`.
    pub filename: String,
    /// Annotations of the source, for example of an OCI manifest.
    pub metadata: BTreeMap<String, String>,
}

/// The object that an artifact belongs to. The kind is in lower case, as in paths.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    /// Kind in lower case.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A record with what only the store needs, as it is on disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Stored {
    /// Later artifacts have greater numbers; never used twice in a store.
    pub(super) sequence: u64,
    /// When it was stored, exactly.
    pub(super) stored_at: Timestamp,
    /// True if the archive was taken as it is, so that the tree would give other bytes.
    pub(super) verbatim: bool,
    pub(super) record: Record,
}

impl ObjectKey {
    /// The key of an object; the kind in any case.
    #[must_use]
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self {
            kind: kind.to_lowercase(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// The key of a record's object.
    #[must_use]
    pub fn from_record(record: &Record) -> Self {
        Self::new(&record.kind, &record.namespace, &record.name)
    }
}

impl RecordMeta {
    /// The path of the artifact, whose parts come from outside.
    pub(super) fn path(&self) -> Result<String> {
        let kind = self.kind.to_lowercase();
        let parts = [kind.as_str(), &self.namespace, &self.name, &self.filename];
        for part in parts {
            let harmless = part
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'/' | b'\\'));
            if !harmless || part.len() > 255 || matches!(part, "" | "." | "..") {
                return Err(Error::Name(part.chars().take(80).collect()));
            }
        }
        Ok(parts.join("/"))
    }
}
