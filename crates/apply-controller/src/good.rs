//! The last revisions of a Kustomization that were healthy, kept so that they can be applied again (ADR 27).
//!
//! What was applied is kept, not what it was made of: the artifact, the variables and the keys of then may be gone. It is kept in a
//! Secret in the controller's own namespace, which no tenant reads or writes. The Secret also says which revision is held back.

mod store;

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use manifest::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use store::Store;

/// A Secret may have 1 MiB; the rest of it needs room, too.
const MAX_PACKED: usize = 900_000;
/// Objects of so many bytes are not kept, nor read.
const MAX_UNPACKED: u64 = 64 << 20;
/// Revisions that are kept of a Kustomization.
const MAX_KEPT: usize = 6;

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused, or did not answer.
    #[error("failed to {0} the record of the last revision that was healthy")]
    Api(&'static str, #[source] Box<kube::Error>),
    /// The record is not there, or was changed.
    #[error("the record of the last revision that was healthy is missing or damaged")]
    Damaged,
    /// The namespace has too many of them.
    #[error("the records of the namespace would exceed {0} MiB (--rollback-storage)")]
    Full(u64),
}

impl Error {
    /// Returns whether we may not look, which only a person can change.
    pub fn is_forbidden(&self) -> bool {
        match self {
            Self::Api(_, error) => matches!(&**error, kube::Error::Api(status) if status.is_forbidden()),
            Self::Damaged | Self::Full(_) => false,
        }
    }
}

/// A revision that was healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Head {
    /// Digest of the spec that it was built with.
    #[serde(default)]
    pub spec: String,
    /// The revision.
    pub revision: String,
    /// The revision at the origin of its artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_revision: Option<String>,
    /// Digest of the built objects.
    pub checksum: String,
    /// Bytes of the objects as they are kept; None if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl Head {
    /// Returns whether the objects are kept, too.
    pub fn has_objects(&self) -> bool {
        self.size.is_some()
    }
}

/// A revision that is not applied, since it was not healthy or a person went back from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Generation of the spec that it was built with.
    pub generation: i64,
    /// The revision.
    pub revision: String,
    /// Digest of its artifact.
    pub digest: String,
    /// What was not healthy, or what the person says.
    pub why: String,
    /// Since when it is held.
    pub since: Timestamp,
    /// Digest of the kept objects that are applied instead.
    pub instead: String,
    /// Whether a person asked for it. Then it ends when that person says so, and not with another revision.
    #[serde(default)]
    pub by_hand: bool,
}

/// What is kept of a Kustomization, without the objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The last revisions that were healthy, the newest first, each with other objects.
    pub kept: Vec<Head>,
    /// The revision that is held.
    pub held: Option<Held>,
}

impl Record {
    /// Returns the revision that made these objects.
    pub fn find(&self, checksum: &str) -> Option<&Head> {
        self.kept.iter().find(|head| head.checksum == checksum)
    }

    /// Returns what was delivered last: what is applied instead of a held revision, or else the newest.
    pub fn delivered(&self) -> Option<&Head> {
        match &self.held {
            Some(held) => self.find(&held.instead),
            None => self.kept.first(),
        }
    }

    /// Returns what is kept once another revision is, which may take so many bytes together. The oldest go first.
    fn kept_with(&self, newest: &Head, most: u64) -> Vec<Head> {
        let others = self.kept.iter().filter(|head| head.checksum != newest.checksum);
        let mut total = newest.size.unwrap_or_default();
        let fitting = others.cloned().take_while(|head| {
            total += head.size.unwrap_or_default();
            total <= most
        });
        let earlier: Vec<_> = fitting.take(MAX_KEPT - 1).collect();
        [newest.clone()].into_iter().chain(earlier).collect()
    }
}

/// The objects of a revision, before they are prepared.
#[derive(Debug, Default, PartialEq)]
pub struct Content {
    /// The objects.
    pub objects: Vec<Object>,
    /// Texts that only a decryption brought; they are masked in messages.
    pub hidden: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
struct Packed {
    objects: Vec<Map<String, Value>>,
    hidden: BTreeSet<String>,
}

impl Content {
    /// Packs the objects; None if that is more than can be kept.
    pub fn pack(&self) -> Option<Arc<[u8]>> {
        let packed = Packed {
            objects: self.objects.iter().map(|object| object.value().clone()).collect(),
            hidden: self.hidden.clone(),
        };
        let text = serde_json::to_vec(&packed).ok()?;
        if text.len() as u64 > MAX_UNPACKED {
            return None;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&text).ok()?;
        let bytes = encoder.finish().ok()?;
        (bytes.len() <= MAX_PACKED).then(|| bytes.into())
    }

    fn unpack(bytes: &[u8]) -> Result<Self, Error> {
        let mut text = Vec::new();
        let mut decoder = GzDecoder::new(bytes).take(MAX_UNPACKED + 1);
        decoder.read_to_end(&mut text).map_err(|_| Error::Damaged)?;
        let packed: Packed = serde_json::from_slice(&text).map_err(|_| Error::Damaged)?;
        Ok(Self {
            objects: packed
                .objects
                .into_iter()
                .map(|value| Object::new(value, None))
                .collect(),
            hidden: packed.hidden,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> Object {
        let value = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        match value {
            Value::Object(map) => Object::new(map, None),
            _ => unreachable!(),
        }
    }

    #[test]
    fn what_is_packed_is_unpacked() {
        let content = Content {
            objects: vec![object("a"), object("b")],
            hidden: ["hunter2".to_owned()].into(),
        };
        let packed = content.pack().unwrap();
        assert_eq!(Content::unpack(&packed).unwrap(), content);
        assert!(Content::unpack(&packed[..packed.len() / 2]).is_err());
        assert!(Content::unpack(b"").is_err());
    }

    #[test]
    fn what_does_not_fit_is_not_kept() {
        let mut seed = 1_u64;
        let mut noise = String::new();
        for _ in 0..400_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            noise.push_str(&format!("{:08x}", seed >> 32));
        }
        let content = Content {
            objects: vec![object(&noise)],
            hidden: BTreeSet::new(),
        };
        assert!(content.pack().is_none());
    }

    fn head(checksum: &str, size: Option<u64>) -> Head {
        Head {
            spec: String::new(),
            revision: format!("revision of {checksum}"),
            origin_revision: None,
            checksum: checksum.to_owned(),
            size,
        }
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let record = Record {
            kept: vec![head("b", Some(40)), head("a", Some(20))],
            held: None,
        };
        let kept = |newest: &Head, most| {
            let kept = record.kept_with(newest, most).into_iter();
            kept.map(|head| head.checksum).collect::<String>()
        };
        assert_eq!(kept(&head("c", Some(40)), 100), "cba");
        assert_eq!(kept(&head("c", Some(41)), 100), "cb");
        assert_eq!(kept(&head("c", Some(90)), 100), "c");
        assert_eq!(kept(&head("a", Some(20)), 100), "ab", "the same objects again");
        let many = Record {
            kept: ('a'..='z').map(|name| head(&name.to_string(), Some(1))).collect(),
            held: None,
        };
        assert_eq!(many.kept_with(&head("new", Some(1)), 100).len(), MAX_KEPT);
    }

    #[test]
    fn what_is_delivered_is_what_is_applied_instead() {
        let mut record = Record {
            kept: vec![head("b", Some(1)), head("a", Some(1))],
            held: None,
        };
        assert_eq!(record.delivered().unwrap().checksum, "b");
        record.held = Some(Held {
            generation: 1,
            revision: "c".to_owned(),
            digest: String::new(),
            why: String::new(),
            since: Timestamp::UNIX_EPOCH,
            instead: "a".to_owned(),
            by_hand: true,
        });
        assert_eq!(record.delivered().unwrap().checksum, "a");
    }
}
