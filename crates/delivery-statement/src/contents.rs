//! The objects of a delivery, by digest.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// Bytes of the list of objects in a statement, and of what was fetched; a longer one is left out. All watchers of a status read it.
const MAX_LIST: usize = 4096;
/// Images that are subjects of a statement.
const MAX_IMAGES: usize = 20;

/// The objects of a delivery, by digest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    pub(crate) count: usize,
    pub(crate) list: Option<Value>,
    pub(crate) images: BTreeMap<String, String>,
    /// None if there is too much of it.
    pub(crate) fetched: Option<BTreeMap<String, String>>,
    pub(crate) fetched_count: usize,
}

impl Contents {
    /// Of objects: their names as in inventories (`namespace_name_group_Kind`), their content, and whether a digest of that might give
    /// away what is secret.
    pub fn of<'a>(objects: impl IntoIterator<Item = (String, &'a Map<String, Value>, bool)>) -> Self {
        let (mut count, mut length) = (0, 0);
        let mut list = Some(Vec::new());
        for (id, object, is_secret) in objects {
            count += 1;
            let entry = match is_secret {
                true => json!({"id": id}),
                false => json!({"id": id, "digest": digest(object)}),
            };
            length += entry.to_string().len();
            match &mut list {
                Some(entries) if length <= MAX_LIST => entries.push(entry),
                _ => list = None,
            }
        }
        Self {
            count,
            list: list.map(Value::Array),
            images: BTreeMap::new(),
            fetched: None,
            fetched_count: 0,
        }
    }

    /// With what the build has fetched beside its source: addresses, and for each the revision or the digest of a file. The author of
    /// the source chooses how long they are.
    #[must_use]
    pub fn with_fetched(self, fetched: BTreeMap<String, String>) -> Self {
        let length: usize = fetched
            .iter()
            .map(|(address, revision)| address.len() + revision.len())
            .sum();
        Self {
            fetched_count: fetched.len(),
            fetched: (length <= MAX_LIST).then_some(fetched),
            ..self
        }
    }

    /// With the images that the objects name by digest: repositories and digests. Some of many.
    #[must_use]
    pub fn with_images(self, images: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            images: images.into_iter().take(MAX_IMAGES).collect(),
            ..self
        }
    }

    /// As an earlier statement tells them.
    #[must_use]
    pub fn of_statement(predicate: &Value) -> Option<Self> {
        let objects = predicate.get("objects")?;
        Some(Self {
            count: usize::try_from(objects.get("count")?.as_u64()?).ok()?,
            list: objects.get("list").cloned(),
            images: serde_json::from_value(objects.get("images").cloned().unwrap_or_default())
                .unwrap_or_default(),
            fetched: serde_json::from_value(predicate.get("fetched").cloned().unwrap_or_default())
                .unwrap_or_default(),
            fetched_count: predicate
                .get("fetchedCount")
                .and_then(Value::as_u64)
                .and_then(|count| usize::try_from(count).ok())
                .unwrap_or_default(),
        })
    }
}

/// Digest of the JSON of an object, its keys sorted, without white space.
fn digest(object: &Map<String, Value>) -> String {
    let mut hasher = Sha256::new();
    hash_fields(object, &mut hasher);
    let digest = hasher.finalize();
    digest
        .iter()
        .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

fn hash_fields(fields: &Map<String, Value>, hasher: &mut Sha256) {
    let sorted: BTreeMap<_, _> = fields.iter().collect();
    hasher.update("{");
    for (number, (key, value)) in sorted.into_iter().enumerate() {
        hasher.update(if number == 0 { "" } else { "," });
        hasher.update(Value::String(key.clone()).to_string());
        hasher.update(":");
        hash(value, hasher);
    }
    hasher.update("}");
}

fn hash(value: &Value, hasher: &mut Sha256) {
    match value {
        Value::Object(fields) => hash_fields(fields, hasher),
        Value::Array(items) => {
            hasher.update("[");
            for (number, item) in items.iter().enumerate() {
                hasher.update(if number == 0 { "" } else { "," });
                hash(item, hasher);
            }
            hasher.update("]");
        }
        other => hasher.update(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn a_digest_is_that_of_sorted_json() {
        let one = map(json!({"b": [1, {"d": null, "c": "x\"y"}], "a": 1.5}));
        let text = r#"{"a":1.5,"b":[1,{"c":"x\"y","d":null}]}"#;
        let expected = Sha256::digest(text);
        let expected = expected
            .iter()
            .fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"));
        assert_eq!(digest(&one), expected);
    }

    #[test]
    fn secrets_have_no_digest_and_long_lists_are_left_out() {
        let (map_, secret) = (map(json!({"kind": "ConfigMap"})), map(json!({"kind": "Secret"})));
        let objects = [
            ("n_a__ConfigMap".to_owned(), &map_, false),
            ("n_b__Secret".to_owned(), &secret, true),
        ];
        let contents = Contents::of(objects);
        let list = contents.list.unwrap();
        assert!(
            list[0]["digest"].is_string() && list[1].get("digest").is_none(),
            "{list}"
        );
        let many = (0..1000).map(|number| (format!("n_{number}__ConfigMap"), &map_, false));
        let contents = Contents::of(many);
        assert_eq!((contents.count, contents.list), (1000, None));
    }
}
