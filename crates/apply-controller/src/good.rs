//! The last revision of a Kustomization that was healthy, kept so that it can be applied again (ADR 27).
//!
//! What was applied is kept, not what it was made of: the artifact, the variables and the keys of then may be gone. It is kept in a
//! Secret in the controller's own namespace, which no tenant reads or writes. The Secret also says which revision is held back.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use api::kustomize::{Kustomization, LAST_KNOWN_GOOD_LABEL as LABEL};
use controller_kit::ObjectKey;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use manifest::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A Secret may have 1 MiB; the rest of it needs room, too.
const MAX_PACKED: usize = 900_000;
/// Objects of so many bytes are not kept, nor read.
const MAX_UNPACKED: u64 = 64 << 20;
const OF: &str = "windlass.dev/kustomization";
const REVISION: &str = "windlass.dev/revision";
const NAMESPACE: &str = "windlass.dev/kustomization-namespace";
const SIZE: &str = "windlass.dev/size";
const MANAGER: &str = "apply-controller";
/// Keys of the Secret.
const HEAD: &str = "head";
const OBJECTS: &str = "objects";
const HELD: &str = "held";

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
    /// Generation of the spec that it was built with.
    pub generation: i64,
    /// The revision.
    pub revision: String,
    /// The revision at the origin of its artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin_revision: Option<String>,
    /// Digest of the built objects.
    pub checksum: String,
}

/// A revision that is not applied, since it was not healthy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Held {
    /// Generation of the spec that it was built with.
    pub generation: i64,
    /// The revision.
    pub revision: String,
    /// Digest of its artifact.
    pub digest: String,
    /// What was not healthy.
    pub why: String,
    /// Since when it is held.
    pub since: Timestamp,
}

/// What is kept of a Kustomization, without the objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The last revision that was healthy.
    pub good: Option<Head>,
    /// The revision that is held.
    pub held: Option<Held>,
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

/// The records of all Kustomizations.
pub struct Store {
    secrets: Api<Secret>,
    /// Bytes that the records of one namespace may take: they are in ours, where no quota of a tenant counts.
    most: u64,
}

impl Store {
    /// Those in the namespace of this process. The records of one namespace may take so many bytes.
    pub fn new(client: Client, namespace: &str, most: u64) -> Self {
        Self {
            secrets: Api::namespaced(client, namespace),
            most,
        }
    }

    /// Reads what is kept of an object.
    ///
    /// # Errors
    /// When the API server refuses. A damaged record is none.
    pub async fn record(&self, uid: &str) -> Result<Record, Error> {
        Ok(self
            .get(uid)
            .await?
            .map(|secret| record(&secret))
            .unwrap_or_default())
    }

    /// Reads the objects of the last revision that was healthy.
    ///
    /// # Errors
    /// When the API server refuses, or there is no such record.
    pub async fn content(&self, uid: &str) -> Result<Content, Error> {
        let secret = self.get(uid).await?.ok_or(Error::Damaged)?;
        let data = secret.data.as_ref().and_then(|data| data.get(OBJECTS));
        Content::unpack(&data.ok_or(Error::Damaged)?.0)
    }

    /// Keeps a revision that is healthy. No revision is held any more.
    ///
    /// # Errors
    /// When the API server refuses, or the namespace has too many records.
    pub async fn keep(&self, object: &Kustomization, head: &Head, packed: &[u8]) -> Result<(), Error> {
        let uid = object.uid().unwrap_or_default();
        let namespace = object.namespace().unwrap_or_default();
        if self.taken_by(&namespace, &uid).await? + packed.len() as u64 > self.most {
            return Err(Error::Full(self.most >> 20));
        }
        let head_text = serde_json::to_vec(head).unwrap_or_default();
        let annotations = json!({
            OF: ObjectKey::from_object(object).to_string(),
            REVISION: head.revision,
            SIZE: packed.len().to_string(),
        });
        let data = json!({
            HEAD: ByteString(head_text),
            OBJECTS: ByteString(packed.to_vec()),
            HELD: null,
        });
        let labels = json!({LABEL: "true", NAMESPACE: namespace});
        let body = json!({"metadata": {"annotations": annotations, "labels": labels}, "data": data});
        let failed = |error| Error::Api("write", Box::new(error));
        match self.patch(&uid, &body).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {
                let mut secret: Secret =
                    serde_json::from_value(without_nulls(body)).map_err(|_| Error::Damaged)?;
                secret.type_ = Some(LABEL.to_owned());
                secret.metadata = ObjectMeta {
                    name: Some(name(&uid)),
                    ..secret.metadata
                };
                self.secrets
                    .create(&PostParams::default(), &secret)
                    .await
                    .map(drop)
                    .map_err(failed)
            }
            patched => patched.map_err(failed),
        }
    }

    /// Holds a revision, or none.
    ///
    /// # Errors
    /// When the API server refuses, or there is no record in which one could be held.
    pub async fn hold(&self, uid: &str, held: Option<&Held>) -> Result<(), Error> {
        let bytes = held.map(|held| ByteString(serde_json::to_vec(held).unwrap_or_default()));
        match self.patch(uid, &json!({"data": {HELD: bytes}})).await {
            // Someone deleted the record, and with it the hold.
            Err(kube::Error::Api(status)) if status.is_not_found() && held.is_none() => Ok(()),
            patched => patched.map_err(|error| Error::Api("write", Box::new(error))),
        }
    }

    /// Deletes the record of an object.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn forget(&self, uid: &str) -> Result<(), Error> {
        let deleted = self.secrets.delete(&name(uid), &DeleteParams::default()).await;
        match deleted {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => deleted
                .map(drop)
                .map_err(|error| Error::Api("delete", Box::new(error))),
        }
    }

    /// Lists whose records there are: the objects, by key and uid.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn all(&self) -> Result<Vec<(ObjectKey, String)>, Error> {
        let listed = self
            .secrets
            .list_metadata(&ListParams::default().labels(LABEL))
            .await;
        let listed = listed.map_err(|error| Error::Api("list", Box::new(error)))?;
        let all = listed.items.into_iter().filter_map(|found| {
            let uid = found.name_any().strip_prefix(PREFIX)?.to_owned();
            let (namespace, name) = found.annotations().get(OF)?.split_once('/')?;
            Some((ObjectKey::new(namespace, name), uid))
        });
        Ok(all.collect())
    }

    /// Bytes of the records of a namespace, without that of one object.
    async fn taken_by(&self, namespace: &str, without: &str) -> Result<u64, Error> {
        let params = ListParams::default().labels(&format!("{NAMESPACE}={namespace}"));
        let listed = self.secrets.list_metadata(&params).await;
        let listed = listed.map_err(|error| Error::Api("list", Box::new(error)))?;
        let own = name(without);
        let others = listed.items.iter().filter(|found| found.name_any() != own);
        let sizes = others.filter_map(|found| found.annotations().get(SIZE)?.parse::<u64>().ok());
        Ok(sizes.sum())
    }

    async fn get(&self, uid: &str) -> Result<Option<Secret>, Error> {
        let found = self.secrets.get_opt(&name(uid)).await;
        found.map_err(|error| Error::Api("read", Box::new(error)))
    }

    async fn patch(&self, uid: &str, body: &Value) -> kube::Result<()> {
        let params = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = self.secrets.patch(&name(uid), &params, &Patch::Merge(body)).await;
        patched.map(drop)
    }
}

const PREFIX: &str = "last-known-good-";

fn name(uid: &str) -> String {
    format!("{PREFIX}{uid}")
}

fn record(secret: &Secret) -> Record {
    fn read<T: serde::de::DeserializeOwned>(secret: &Secret, key: &str) -> Option<T> {
        let bytes = secret.data.as_ref()?.get(key)?;
        serde_json::from_slice(&bytes.0).ok()
    }
    Record {
        good: read(secret, HEAD),
        held: read(secret, HELD),
    }
}

/// A merge patch as the object that it makes of nothing.
fn without_nulls(mut value: Value) -> Value {
    if let Some(data) = value["data"].as_object_mut() {
        data.retain(|_, value| !value.is_null());
    }
    value
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn a_damaged_record_is_none() {
        let secret: Secret = serde_json::from_value(json!({
            "data": {"head": ByteString(b"{".to_vec()), "held": ByteString(b"[]".to_vec())},
        }))
        .unwrap();
        assert_eq!(record(&secret), Record::default());
    }
}
