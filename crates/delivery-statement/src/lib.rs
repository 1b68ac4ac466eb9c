//! Statements of deliveries (ADR 35), as in-toto statements in DSSE envelopes: objects, source, account and outcome.
//!
//! In: the facts of a delivery that ended. Out: the statement, to be signed. And the other way round: a statement goes in, and out comes
//! whether it is about a delivery as a status shows it. Pure: keys and Secrets are the caller's matter.

mod contents;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use signature::cosign::{self, PublicKey};

pub use contents::Contents;

/// Type of the statements.
pub const PREDICATE_TYPE: &str = "https://windlass.dev/delivery/v1";
/// Where a status keeps them: entry in the metadata of its history.
pub const METADATA: &str = "windlass.dev/statement";
/// Entry in the metadata of a history: the remote bases and files that a build has fetched.
pub const FETCHED: &str = "windlass.dev/fetched";
/// Entry of the Secret with the private key.
pub const KEY: &str = "signing.key";

/// A delivery that ended.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery<'a> {
    /// The object that delivers, such as a Kustomization.
    pub object: Object<'a>,
    /// Name of the controller.
    pub controller: &'a str,
    /// The account that it impersonated: `system:serviceaccount:namespace:name`; None if it acted as itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<&'a str>,
    /// Whether the objects are in another cluster than the controller.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_remote: bool,
    /// The source: `GitRepository/namespace/name`.
    pub source: &'a str,
    /// Revision of the source.
    pub revision: &'a str,
    /// Revision at the origin of its artifact, such as the commit behind an OCI artifact, as the source says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<&'a str>,
    /// Digest of the artifact; None if the objects were kept of an earlier one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact: Option<&'a str>,
    /// Whether all is there, and healthy where that was asked for.
    pub succeeded: bool,
    /// Reason of the condition.
    pub reason: &'a str,
}

/// An object of the cluster.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Object<'a> {
    /// Its kind.
    pub kind: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
    /// Generation of its spec.
    pub generation: i64,
}

/// Makes the statement about a delivery of objects, which have a digest together (`sha256:…`).
#[must_use]
pub fn statement(
    delivery: &Delivery<'_>,
    digest: &str,
    contents: Option<&Contents>,
    (began, ended): (Timestamp, Timestamp),
) -> Value {
    let mut predicate = json!(delivery);
    predicate["objects"] = json!({"digest": digest});
    if let Some(contents) = contents {
        predicate["objects"]["count"] = json!(contents.count);
        if let Some(list) = &contents.list {
            predicate["objects"]["list"] = list.clone();
        }
        if !contents.images.is_empty() {
            predicate["objects"]["images"] = json!(contents.images);
        }
        if contents.fetched_count > 0 {
            predicate["fetchedCount"] = json!(contents.fetched_count);
            if let Some(fetched) = &contents.fetched {
                predicate["fetched"] = json!(fetched);
            }
        }
    }
    predicate["began"] = json!(began);
    predicate["ended"] = json!(ended);
    let mut subject = vec![named("objects", "sha256", hex(digest, "sha256:"))];
    if let Some(artifact) = delivery.artifact {
        subject.push(named("artifact", "sha256", hex(artifact, "sha256:")));
    }
    // An artifact's origin is its maker's word. It is in the predicate, and no subject.
    if let Some((_, commit)) = delivery.revision.rsplit_once("sha1:") {
        subject.push(named("commit", "gitCommit", commit));
    }
    let images = contents.iter().flat_map(|contents| &contents.images);
    subject.extend(images.map(|(image, digest)| named(image, "sha256", hex(digest, "sha256:"))));
    json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subject,
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    })
}

fn named(name: &str, algorithm: &str, hex: &str) -> Value {
    json!({"name": name, "digest": {algorithm: hex}})
}

fn hex<'a>(digest: &'a str, prefix: &str) -> &'a str {
    digest.strip_prefix(prefix).unwrap_or(digest)
}

/// Returns the predicate of a statement about objects with this digest, if one of the keys signed it.
///
/// # Errors
/// When it is none, is about something else, or was signed by another key.
pub fn open(envelope: &str, digest: &str, keys: &[PublicKey]) -> Result<Value, String> {
    let mut problem = "there is no key".to_owned();
    for key in keys {
        match cosign::attested(envelope.as_bytes(), digest, PREDICATE_TYPE, key) {
            Ok(predicate) => return Ok(predicate),
            Err(error) => problem = error.to_string(),
        }
    }
    Err(problem)
}

/// Returns whether an opened statement says the same of a delivery, its time aside.
#[must_use]
pub fn says(predicate: &Value, delivery: &Delivery<'_>) -> bool {
    let told = json!(delivery);
    let mut fields = told.as_object().into_iter().flatten();
    let is_absent = |field| told.get(field).is_none() && predicate.get(field).is_some();
    fields.all(|(field, value)| predicate.get(field) == Some(value))
        && !["account", "isRemote", "origin", "artifact"]
            .into_iter()
            .any(is_absent)
}

/// Compares an opened statement with the status of an object.
///
/// # Errors
/// With the first difference.
pub fn check(predicate: &Value, object: &Object<'_>, revision: &str) -> Result<(), String> {
    let text = |pointer: &str| {
        predicate
            .pointer(pointer)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let told = (
        text("/object/kind"),
        text("/object/namespace"),
        text("/object/name"),
        text("/object/uid"),
    );
    if told != (object.kind, object.namespace, object.name, object.uid) {
        return Err("it is about another object".to_owned());
    }
    if text("/revision") != revision {
        return Err(format!("it is about revision {}", shown(text("/revision"))));
    }
    match predicate["succeeded"] == json!(true) {
        true => Ok(()),
        false => Err("it says that the delivery failed".to_owned()),
    }
}

/// Returns whether an opened statement lists an object (`namespace_name_group_Kind`); None if it lists none.
#[must_use]
pub fn lists(predicate: &Value, id: &str) -> Option<bool> {
    let list = predicate.pointer("/objects/list")?.as_array()?;
    Some(list.iter().any(|one| one["id"] == id))
}

/// A text of who signed it, in one line.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests;
