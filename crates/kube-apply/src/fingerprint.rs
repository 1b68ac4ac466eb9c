//! Boils metadata down to a few bytes that tell whether someone touched what we applied. Pure.
//!
//! When another manager changes, takes or removes a field of ours, the API server takes the field out of our entry in
//! `metadata.managedFields`; when someone writes under our name, the entry's time moves. Status updates and fields that
//! others add do not touch it. So the entry, the owner labels and whatever kubectl left behind are all that has to be
//! compared, and a watch of metadata alone tells drift. A write that changes nothing does not change the entry either.

use std::borrow::Cow;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::core::{ApiResource, DynamicResourceScope};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::ignore::Ignored;
use crate::policy::Policy;
use crate::settings::{Owner, Settings};
use crate::takeover;

/// 128 bits of SHA-256 over a JSON value, whatever the order of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u128);

impl Digest {
    /// The digest of no value.
    pub(crate) const NOTHING: Digest = Digest(0);

    /// Hashes one value.
    pub fn from_value(value: &Value) -> Self {
        let mut hash = Sha256::new();
        feed(&mut hash, value);
        Self::finish(hash)
    }

    /// Hashes a mapping.
    pub fn of_map(map: &Map<String, Value>) -> Self {
        let mut hash = Sha256::new();
        feed_map(&mut hash, map);
        Self::finish(hash)
    }

    /// Joins another digest to this one.
    pub(crate) fn and(self, other: Digest) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0.to_le_bytes());
        hash.update(other.0.to_le_bytes());
        Self::finish(hash)
    }

    fn finish(hash: Sha256) -> Self {
        let bytes: [u8; 32] = hash.finalize().into();
        let (half, _) = bytes.split_first_chunk::<16>().expect("32 bytes hold 16");
        Self(u128::from_le_bytes(*half))
    }
}

fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Null => hash.update(b"n"),
        Value::Bool(flag) => hash.update(if *flag { b"t" } else { b"f" }),
        Value::Number(number) => feed_text(hash, b"#", &number.to_string()),
        Value::String(text) => feed_text(hash, b"s", text),
        Value::Array(items) => {
            hash.update(b"[");
            items.iter().for_each(|item| feed(hash, item));
            hash.update(b"]");
        }
        Value::Object(map) => feed_map(hash, map),
    }
}

fn feed_map(hash: &mut Sha256, map: &Map<String, Value>) {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| *key);
    hash.update(b"{");
    for (key, value) in entries {
        feed_text(hash, b"k", key);
        feed(hash, value);
    }
    hash.update(b"}");
}

fn feed_text(hash: &mut Sha256, tag: &[u8], text: &str) {
    hash.update(tag);
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

/// Metadata of a live object, reduced while it is parsed: field sets are hashed entry by entry and never kept.
///
/// A kind of its own for kube's [`watcher`](kube::runtime::watcher()), which asks the server for metadata only.
#[derive(Clone, Debug, Default)]
pub struct Glimpse {
    /// Only name, namespace, uid and resourceVersion are filled.
    metadata: ObjectMeta,
    labels: Map<String, Value>,
    annotations: Map<String, Value>,
    terminating: bool,
    managers: Vec<ManagerEntry>,
}

/// One entry of `metadata.managedFields`, its field set hashed.
#[derive(Clone, Debug)]
struct ManagerEntry {
    manager: String,
    operation: String,
    subresource: String,
    /// Over the whole entry: API version, time, fields.
    digest: Digest,
    /// When the manager last changed something, to the second.
    time: Option<Timestamp>,
    /// Labels that the entry owns.
    labels: Vec<String>,
    /// The entry itself, unless it is a subresource's. A glimpse is short-lived: one object at a time comes by.
    whole: Map<String, Value>,
}

impl<'de> Deserialize<'de> for Glimpse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Whole {
            #[serde(default)]
            metadata: Metadata,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Metadata {
            name: Option<String>,
            namespace: Option<String>,
            uid: Option<String>,
            resource_version: Option<String>,
            deletion_timestamp: Option<serde::de::IgnoredAny>,
            labels: Option<Map<String, Value>>,
            annotations: Option<Map<String, Value>>,
            managed_fields: Option<Vec<ManagerEntry>>,
        }
        let metadata = Whole::deserialize(deserializer)?.metadata;
        Ok(Self {
            metadata: ObjectMeta {
                name: metadata.name,
                namespace: metadata.namespace,
                uid: metadata.uid,
                resource_version: metadata.resource_version,
                ..ObjectMeta::default()
            },
            labels: metadata.labels.unwrap_or_default(),
            annotations: metadata.annotations.unwrap_or_default(),
            terminating: metadata.deletion_timestamp.is_some(),
            managers: metadata.managed_fields.unwrap_or_default(),
        })
    }
}

impl<'de> Deserialize<'de> for ManagerEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut entry = Map::deserialize(deserializer)?;
        let text = |field: &str| {
            entry
                .get(field)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Ok(Self {
            manager: text("manager"),
            operation: text("operation"),
            subresource: text("subresource"),
            labels: owned_labels(entry.get("fieldsV1")),
            time: text("time").parse().ok(),
            digest: Digest::of_map(&entry),
            whole: if entry
                .get("subresource")
                .and_then(Value::as_str)
                .is_some_and(|s| !s.is_empty())
            {
                Map::new()
            } else {
                std::mem::take(&mut entry)
            },
        })
    }
}

impl ManagerEntry {
    /// Hashes what is left of the entry without ignored fields; None if that is nothing and the entry is not `needed`.
    fn digest_without(&self, ignored: &Ignored, needed: bool) -> Option<Digest> {
        let mut entry = self.whole.clone();
        if let Some(Value::Object(fields)) = entry.get_mut("fieldsV1") {
            ignored.prune(fields);
            if fields.is_empty() && !needed {
                return None;
            }
        }
        Some(Digest::of_map(&entry))
    }
}

/// Lists the labels in a field set: keys below `f:metadata`, `f:labels`, without their `f:`.
fn owned_labels(fields: Option<&Value>) -> Vec<String> {
    let labels = fields
        .and_then(|f| f.get("f:metadata"))
        .and_then(|m| m.get("f:labels"))
        .and_then(Value::as_object);
    labels
        .into_iter()
        .flat_map(Map::keys)
        .filter_map(|key| key.strip_prefix("f:"))
        .map(str::to_owned)
        .collect()
}

impl kube::Resource for Glimpse {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn metadata_api() -> bool {
        true
    }
    fn kind(resource: &ApiResource) -> Cow<'_, str> {
        resource.kind.as_str().into()
    }
    fn group(resource: &ApiResource) -> Cow<'_, str> {
        resource.group.as_str().into()
    }
    fn version(resource: &ApiResource) -> Cow<'_, str> {
        resource.version.as_str().into()
    }
    fn plural(resource: &ApiResource) -> Cow<'_, str> {
        resource.plural.as_str().into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// Remembered facts about a live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Changes when someone touches what we applied.
    pub fingerprint: Digest,
    /// When we last changed something, by the server's clock, to the second. Two changes within one second may leave the
    /// same fingerprint.
    pub applied_at: Option<Timestamp>,
    /// Orders answers and events; None when the server's versions are no numbers, or the object is not stored.
    pub resource_version: Option<u64>,
    /// Makes sure that a delete hits the object that was looked at. None when it is no UUID.
    pub uid: Option<u128>,
    /// Owner, by its labels.
    pub owner: Option<Arc<Owner>>,
    /// Policy set by its own labels and annotations.
    pub policy: Policy,
    /// Other tools left field managers or annotations that are to be taken over.
    pub needs_take_over: bool,
    /// The owner label was written under our field manager: another owner applied it, no one edited it.
    pub owner_label_is_ours: bool,
    /// It is being deleted.
    pub terminating: bool,
}

impl Facts {
    /// Reduces a glimpse to what is remembered.
    pub fn new(glimpse: &Glimpse, settings: &Settings) -> Self {
        Self::of_all_but(glimpse, settings, None)
    }

    /// Reduces a glimpse; who owns ignored fields does not show in the fingerprint.
    pub(crate) fn of_all_but(glimpse: &Glimpse, settings: &Settings, ignored: Option<&Ignored>) -> Self {
        let policy = Policy::of_metadata(&glimpse.labels, &glimpse.annotations, settings.policies());
        let name_label = settings.name_label();
        let label = |key: &str| glimpse.labels.get(key).and_then(Value::as_str);
        let owner = label(&name_label)
            .zip(label(&settings.namespace_label()))
            .map(|(name, namespace)| {
                Arc::new(Owner {
                    namespace: namespace.to_owned(),
                    name: name.to_owned(),
                })
            });
        let leftover = !policy.merge
            && (glimpse.leftovers(settings).next().is_some()
                || takeover::has_stale_metadata(&glimpse.labels, &glimpse.annotations, settings));
        Self {
            fingerprint: glimpse.fingerprint(settings, owner.as_deref(), policy.merge, ignored),
            resource_version: glimpse
                .metadata
                .resource_version
                .as_deref()
                .and_then(|v| v.parse().ok()),
            uid: glimpse.metadata.uid.as_deref().and_then(parse_uid),
            applied_at: glimpse.ours(settings).filter_map(|entry| entry.time).max(),
            owner_label_is_ours: glimpse.ours(settings).any(|e| e.labels.contains(&name_label)),
            owner,
            policy,
            needs_take_over: leftover,
            terminating: glimpse.terminating,
        }
    }
}

impl Glimpse {
    /// Returns the object's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// Returns the object's namespace; empty in the cluster scope.
    pub fn namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// Returns the object's uid as the server writes it.
    pub fn uid(&self) -> Option<&str> {
        self.metadata.uid.as_deref()
    }

    /// Returns the object's version as the server writes it; None for the answer to a dry-run create.
    pub fn resource_version(&self) -> Option<&str> {
        self.metadata
            .resource_version
            .as_deref()
            .filter(|v| !v.is_empty())
    }

    /// Returns whether the object is being deleted.
    pub(crate) fn is_terminating(&self) -> bool {
        self.terminating
    }

    fn ours<'a>(&'a self, settings: &'a Settings) -> impl Iterator<Item = &'a ManagerEntry> {
        let is_ours = |e: &&ManagerEntry| {
            e.manager == settings.field_manager && e.operation == "Apply" && e.subresource.is_empty()
        };
        self.managers.iter().filter(is_ours)
    }

    fn leftovers<'a>(&'a self, settings: &'a Settings) -> impl Iterator<Item = &'a ManagerEntry> {
        let is_leftover =
            |e: &&ManagerEntry| takeover::is_taken_over(&e.manager, &e.operation, &e.subresource, settings);
        self.managers.iter().filter(is_leftover)
    }

    fn fingerprint(
        &self,
        settings: &Settings,
        owner: Option<&Owner>,
        merge: bool,
        ignored: Option<&Ignored>,
    ) -> Digest {
        let mut hash = Sha256::new();
        let ours = self.ours(settings).map(|entry| (entry, true));
        let leftovers = self.leftovers(settings).filter(|_| !merge);
        for (entry, is_ours) in ours.chain(leftovers.map(|entry| (entry, false))) {
            let digest = match ignored {
                None => Some(entry.digest),
                Some(ignored) => entry.digest_without(ignored, is_ours),
            };
            if let Some(digest) = digest {
                feed_text(&mut hash, b"m", &entry.manager);
                hash.update(digest.0.to_le_bytes());
            }
        }
        if let Some(owner) = owner {
            feed_text(&mut hash, b"o", &owner.to_string());
        }
        Digest::finish(hash)
    }
}

/// Reads a UUID with its hyphens.
fn parse_uid(uid: &str) -> Option<u128> {
    let hex: String = uid.split('-').collect();
    if uid.len() == 36 && hex.len() == 32 {
        u128::from_str_radix(&hex, 16).ok()
    } else {
        None
    }
}

/// Writes a UUID with its hyphens, the inverse of reading it.
pub(crate) fn format_uid(uid: u128) -> String {
    let hex = format!("{uid:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ignore::Step;

    const UID: &str = "0b3d8e0a-1c5e-4d8e-9d57-2f0c7b0a9f11";

    fn facts(edit: impl FnOnce(&mut Value)) -> Facts {
        facts_but(None, edit)
    }

    fn facts_but(ignored: Option<&Ignored>, edit: impl FnOnce(&mut Value)) -> Facts {
        let mut object = json!({"kind": "PartialObjectMetadata", "metadata": {
            "name": "web", "namespace": "default", "uid": UID, "resourceVersion": "42",
            "labels": {"kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"},
            "managedFields": [
                {"manager": "kustomize-controller", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-01-01T00:00:00Z",
                 "fieldsV1": {"f:metadata": {"f:labels": {"f:kustomize.toolkit.fluxcd.io/name": {}}}, "f:spec": {"f:replicas": {}}}},
                {"manager": "kube-controller-manager", "operation": "Update", "subresource": "status",
                 "apiVersion": "apps/v1", "time": "2026-01-01T00:00:01Z", "fieldsV1": {"f:status": {}}}]}});
        edit(&mut object["metadata"]);
        let glimpse: Glimpse = serde_json::from_value(object).unwrap();
        Facts::of_all_but(&glimpse, &Settings::default(), ignored)
    }

    #[test]
    fn facts_are_read_from_metadata() {
        let f = facts(|_| {});
        assert_eq!(f.resource_version, Some(42));
        assert_eq!(f.uid.map(format_uid).as_deref(), Some(UID));
        assert_eq!(f.owner.as_deref().unwrap().to_string(), "flux-system/apps");
        assert!(f.owner_label_is_ours && !f.needs_take_over && !f.terminating);
    }

    #[test]
    fn what_others_do_elsewhere_does_not_change_the_fingerprint() {
        let before = facts(|_| {}).fingerprint;
        let changes: [fn(&mut Value); 4] = [
            |m| m["managedFields"][1]["time"] = json!("2026-02-02T00:00:00Z"),
            |m| m["resourceVersion"] = json!("43"),
            |m| m["annotations"] = json!({"someone.else/x": "y"}),
            |m| m["labels"]["other"] = json!("z"),
        ];
        for change in changes {
            assert_eq!(facts(change).fingerprint, before);
        }
    }

    #[test]
    fn what_touches_our_fields_changes_the_fingerprint() {
        let before = facts(|_| {}).fingerprint;
        let kubectl = json!({"manager": "kubectl-edit", "operation": "Update", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {}}});
        let changes: [&dyn Fn(&mut Value); 5] = [
            &|m| m["managedFields"][0]["fieldsV1"]["f:spec"] = json!({}),
            &|m| m["managedFields"][0]["time"] = json!("2026-02-02T00:00:00Z"),
            &|m| m["managedFields"] = json!([]),
            &|m| m["labels"]["kustomize.toolkit.fluxcd.io/name"] = json!("other"),
            &|m| m["managedFields"].as_array_mut().unwrap().push(kubectl.clone()),
        ];
        for change in changes {
            assert_ne!(facts(change).fingerprint, before);
        }
    }

    #[test]
    fn merge_lets_kubectl_be() {
        let merge = |m: &mut Value| m["annotations"] = json!({"kustomize.toolkit.fluxcd.io/ssa": "Merge"});
        let kubectl = |m: &mut Value| {
            let entry = json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": {}});
            m["managedFields"].as_array_mut().unwrap().push(entry);
        };
        let both = facts(|m| {
            merge(m);
            kubectl(m);
        });
        assert!(!both.needs_take_over);
        assert_eq!(both.fingerprint, facts(merge).fingerprint);
        assert!(facts(kubectl).needs_take_over);
    }

    #[test]
    fn who_owns_ignored_fields_does_not_change_the_fingerprint() {
        let replicas = [Step::Field("spec".into()), Step::Field("replicas".into())];
        let ignored = Ignored::new([replicas.as_slice()]);
        let fingerprint = |edit: &dyn Fn(&mut Value)| facts_but(Some(&ignored), edit).fingerprint;
        let before = fingerprint(&|_| {});
        assert_ne!(before, facts(|_| {}).fingerprint);
        let kubectl = |fields: Value| {
            move |m: &mut Value| {
                let entry =
                    json!({"manager": "kubectl-edit", "operation": "Update", "fieldsV1": fields.clone()});
                m["managedFields"].as_array_mut().unwrap().push(entry);
            }
        };
        assert_eq!(
            fingerprint(&kubectl(json!({"f:spec": {"f:replicas": {}}}))),
            before
        );
        let taken = |m: &mut Value| {
            m["managedFields"][0]["fieldsV1"]
                .as_object_mut()
                .unwrap()
                .remove("f:spec");
        };
        assert_eq!(fingerprint(&taken), before);
        assert_ne!(fingerprint(&kubectl(json!({"f:spec": {"f:paused": {}}}))), before);
    }

    #[test]
    fn digests_do_not_depend_on_the_order_of_keys() {
        let a: Value = serde_json::from_str(r#"{"a": 1, "b": [true, null, "x"]}"#).unwrap();
        let b: Value = serde_json::from_str(r#"{"b": [true, null, "x"], "a": 1}"#).unwrap();
        assert_eq!(Digest::from_value(&a), Digest::from_value(&b));
        for other in [
            json!({"a": 1, "b": [true, "x", null]}),
            json!({"a": "1", "b": [true, null, "x"]}),
            json!([1]),
        ] {
            assert_ne!(Digest::from_value(&a), Digest::from_value(&other));
        }
    }
}
