//! The Secrets in which the records are kept.

use std::collections::HashMap;

use api::kustomize::{Kustomization, LAST_KNOWN_GOOD_LABEL as LABEL};
use controller_kit::ObjectKey;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Client, ResourceExt as _};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::{Content, Error, Head, Held, MAX_PACKED, Record};

const OF: &str = "windlass.dev/kustomization";
const REVISION: &str = "windlass.dev/revision";
const NAMESPACE: &str = "windlass.dev/kustomization-namespace";
const SIZE: &str = "windlass.dev/size";
const MANAGER: &str = "apply-controller";
/// Keys of the Secret.
const KEPT: &str = "kept";
const HELD: &str = "held";

/// The key of the objects with this digest.
fn objects(checksum: &str) -> String {
    format!("objects-{}", checksum.replace(':', "-"))
}

/// The records of all Kustomizations.
pub struct Store {
    secrets: Api<Secret>,
    /// Bytes that the records of one namespace may take: they are in ours, where no quota of a tenant counts.
    most: u64,
    /// The namespace and the size of each record, by uid. Listed once: no one else writes them but another shard, whose objects do not
    /// come here.
    sizes: Mutex<Option<HashMap<String, (String, u64)>>>,
}

impl Store {
    /// Those in the namespace of this process. The records of one namespace may take so many bytes.
    pub fn new(client: Client, namespace: &str, most: u64) -> Self {
        Self {
            secrets: Api::namespaced(client, namespace),
            most,
            sizes: Mutex::default(),
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

    /// Reads the kept objects with this digest.
    ///
    /// # Errors
    /// When the API server refuses, or there are none.
    pub async fn content(&self, uid: &str, checksum: &str) -> Result<Content, Error> {
        let secret = self.get(uid).await?.ok_or(Error::Damaged)?;
        let data = secret.data.as_ref().and_then(|data| data.get(&objects(checksum)));
        Content::unpack(&data.ok_or(Error::Damaged)?.0)
    }

    /// Keeps a revision that is healthy, if need be without its objects, beside what is kept already. No revision is held any more.
    /// Returns what is kept.
    ///
    /// # Errors
    /// When the API server refuses, or the namespace has too many records.
    pub async fn keep(
        &self,
        object: &Kustomization,
        known: &Record,
        head: &Head,
        packed: Option<&[u8]>,
    ) -> Result<Record, Error> {
        let uid = object.uid().unwrap_or_default();
        let namespace = object.namespace().unwrap_or_default();
        let (others, is_there) = self.taken_by(&namespace, &uid).await?;
        let room = self.most.saturating_sub(others);
        if head.size.is_some_and(|size| size > room) {
            return Err(Error::Full(self.most >> 20));
        }
        let alone = Record {
            kept: vec![head.clone()],
            held: None,
        };
        // Earlier ones leave room for the newest of other objects.
        let spare = (self.most / 2).saturating_sub(others);
        let with_earlier = Record {
            kept: known.kept_with(head, spare.min(MAX_PACKED as u64)),
            held: None,
        };
        let mut data = Map::new();
        for gone in known.kept.iter().filter(|head| head.has_objects()) {
            if with_earlier
                .find(&gone.checksum)
                .is_none_or(|head| !head.has_objects())
            {
                data.insert(objects(&gone.checksum), Value::Null);
            }
        }
        if let Some(packed) = packed {
            data.insert(objects(&head.checksum), json!(ByteString(packed.to_vec())));
        }
        let body = |record: &Record| {
            let mut data = data.clone();
            let kept = serde_json::to_vec(&record.kept).unwrap_or_default();
            data.insert(KEPT.to_owned(), json!(ByteString(kept)));
            data.insert(HELD.to_owned(), Value::Null);
            let annotations = json!({
                OF: ObjectKey::from_object(object).to_string(),
                REVISION: head.revision,
                SIZE: size(record).to_string(),
            });
            let labels = json!({LABEL: "true", NAMESPACE: namespace});
            json!({"metadata": {"annotations": annotations, "labels": labels}, "data": data})
        };
        let patched = match is_there {
            true => match self.patch(&uid, &body(&with_earlier)).await {
                // Someone deleted it, and what was in it.
                Err(kube::Error::Api(status)) if status.is_not_found() => None,
                patched => Some(patched.map(|()| with_earlier)),
            },
            false => None,
        };
        let written = match patched {
            Some(written) => written,
            None => self.replace(&uid, body(&alone)).await.map(|()| alone),
        };
        let record = written.map_err(|error| Error::Api("write", Box::new(error)))?;
        if let Some(sizes) = self.sizes.lock().await.as_mut() {
            sizes.insert(uid, (namespace, size(&record)));
        }
        Ok(record)
    }

    /// Writes a record in place of one of which nothing is known.
    async fn replace(&self, uid: &str, body: Value) -> kube::Result<()> {
        match self.create(uid, body.clone()).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                self.secrets.delete(&name(uid), &DeleteParams::default()).await?;
                self.create(uid, body).await
            }
            created => created,
        }
    }

    async fn create(&self, uid: &str, body: Value) -> kube::Result<()> {
        let mut secret: Secret =
            serde_json::from_value(without_nulls(body)).map_err(kube::Error::SerdeError)?;
        secret.type_ = Some(LABEL.to_owned());
        secret.metadata = ObjectMeta {
            name: Some(name(uid)),
            ..secret.metadata
        };
        let created = self.secrets.create(&PostParams::default(), &secret).await;
        created.map(drop)
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
        if let Some(sizes) = self.sizes.lock().await.as_mut() {
            sizes.remove(uid);
        }
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
        let all = self.listed().await?.into_iter().filter_map(|found| {
            let uid = found.name_any().strip_prefix(PREFIX)?.to_owned();
            let (namespace, name) = found.annotations().get(OF)?.split_once('/')?;
            Some((ObjectKey::new(namespace, name), uid))
        });
        Ok(all.collect())
    }

    /// Bytes of the records of a namespace without that of one object, and whether there is that one.
    async fn taken_by(&self, namespace: &str, uid: &str) -> Result<(u64, bool), Error> {
        let mut known = self.sizes.lock().await;
        let sizes = match &mut *known {
            Some(sizes) => sizes,
            none => none.insert(self.sizes().await?),
        };
        let others = sizes
            .iter()
            .filter(|(other, (of, _))| *other != uid && of == namespace);
        let taken = others.map(|(_, (_, size))| size).sum();
        Ok((taken, sizes.contains_key(uid)))
    }

    async fn sizes(&self) -> Result<HashMap<String, (String, u64)>, Error> {
        let listed = self.listed().await?.into_iter().filter_map(|found| {
            let uid = found.name_any().strip_prefix(PREFIX)?.to_owned();
            let namespace = found.labels().get(NAMESPACE)?.clone();
            let size = found.annotations().get(SIZE)?.parse().ok()?;
            Some((uid, (namespace, size)))
        });
        Ok(listed.collect())
    }

    async fn listed(&self) -> Result<Vec<PartialObjectMeta<Secret>>, Error> {
        let params = ListParams::default().labels(LABEL);
        let listed = self.secrets.list_metadata(&params).await;
        listed
            .map(|listed| listed.items)
            .map_err(|error| Error::Api("list", Box::new(error)))
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

/// Bytes of all objects of a record.
fn size(record: &Record) -> u64 {
    record.kept.iter().filter_map(|head| head.size).sum()
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
        kept: read(secret, KEPT).unwrap_or_default(),
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

    #[test]
    fn a_damaged_record_is_none() {
        let secret: Secret = serde_json::from_value(json!({
            "data": {"kept": ByteString(b"{".to_vec()), "held": ByteString(b"[]".to_vec())},
        }))
        .unwrap();
        assert_eq!(record(&secret), Record::default());
    }
}
