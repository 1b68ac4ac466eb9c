//! Names of objects in the bucket, and which there are.
//!
//! ```text
//! archives/<hex of the digest>.tar.gz                       an archive, as the store has it
//! trees/<hex of the digest>.tar.gz                          its files, for an archive that was taken as it is
//! records/<kind>/<namespace>/<name>/<spec>-<digest>.json    the record of an object's artifact, and for which spec it was made
//! ```

use std::collections::{BTreeMap, BTreeSet};

use artifact::digest::Digest;
use artifact::store::ObjectKey;

use crate::kind::Kind;

pub(super) const RECORDS: &str = "records/";
pub(super) const ARCHIVES: &str = "archives/";
pub(super) const TREES: &str = "trees/";
const ARCHIVE: &str = ".tar.gz";
const RECORD: &str = ".json";
/// Fields that say nothing about the content.
const WHEN: [&str; 3] = ["interval", "timeout", "suspend"];
/// Digits of a spec's digest: 64 bits tell specs of one object apart.
const DIGITS: usize = 16;

/// A spec, by its digest. Who has the same name and another spec has no right to the artifact.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Spec(String);

/// The name of a record, below its object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) spec: Spec,
    pub(super) digest: Digest,
}

/// The records in the bucket.
#[derive(Debug, Default)]
pub(super) struct Index(BTreeMap<ObjectKey, BTreeSet<Name>>);

impl Spec {
    /// The spec of an object; None if it has none.
    pub(super) fn of<K: Kind>(object: &K) -> Option<Self> {
        let mut object = serde_json::to_value(object).ok()?;
        let spec = object.get_mut("spec")?.as_object_mut()?;
        for field in WHEN {
            spec.remove(field);
        }
        // Whatever order the fields have.
        let fields: BTreeMap<_, _> = spec.iter().collect();
        let text = serde_json::to_vec(&fields).ok()?;
        Some(Self(Digest::from_content(&text).hex()[..DIGITS].to_owned()))
    }
}

impl Name {
    /// The object in the bucket, without the backup's prefix.
    pub(super) fn key(&self, of: &ObjectKey) -> String {
        let (Spec(spec), digest) = (&self.spec, self.digest.hex());
        format!("{}{spec}-{digest}{RECORD}", folder(of))
    }
}

/// Where the records of an object are.
pub(super) fn folder(of: &ObjectKey) -> String {
    let ObjectKey {
        kind,
        namespace,
        name,
    } = of;
    format!("{RECORDS}{kind}/{namespace}/{name}/")
}

/// The archive of this digest.
pub(super) fn archive(digest: &Digest) -> String {
    format!("{ARCHIVES}{}{ARCHIVE}", digest.hex())
}

/// The files of the archive of this digest.
pub(super) fn tree(digest: &Digest) -> String {
    format!("{TREES}{}{ARCHIVE}", digest.hex())
}

/// The digest in the name of an archive, or of the files of one.
pub(super) fn digest_of(key: &str) -> Option<Digest> {
    let name = key.strip_prefix(ARCHIVES).or_else(|| key.strip_prefix(TREES))?;
    Digest::from_hex(name.strip_suffix(ARCHIVE)?).ok()
}

/// The object and the name of a record's key.
pub(super) fn parse(key: &str) -> Option<(ObjectKey, Name)> {
    let mut parts = key.strip_prefix(RECORDS)?.split('/');
    let (kind, namespace, name) = (parts.next()?, parts.next()?, parts.next()?);
    let (spec, digest) = parts.next()?.strip_suffix(RECORD)?.split_once('-')?;
    let digest = Digest::from_hex(digest).ok()?;
    let is_spec = spec.len() == DIGITS && spec.bytes().all(|byte| byte.is_ascii_hexdigit());
    let spec = Spec(spec.to_owned());
    (is_spec && parts.next().is_none())
        .then(|| (ObjectKey::new(kind, namespace, name), Name { spec, digest }))
}

impl FromIterator<(ObjectKey, Name)> for Index {
    fn from_iter<T: IntoIterator<Item = (ObjectKey, Name)>>(all: T) -> Self {
        let mut index = Self::default();
        for (of, name) in all {
            index.insert(of, name);
        }
        index
    }
}

impl Index {
    pub(super) fn insert(&mut self, of: ObjectKey, name: Name) {
        self.0.entry(of).or_default().insert(name);
    }

    pub(super) fn remove(&mut self, of: &ObjectKey, name: &Name) {
        if let Some(names) = self.0.get_mut(of) {
            names.remove(name);
            if names.is_empty() {
                self.0.remove(of);
            }
        }
    }

    /// The records of an object, in no particular order.
    pub(super) fn of(&self, object: &ObjectKey) -> Vec<Name> {
        self.0.get(object).into_iter().flatten().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use api::source::GitRepository;
    use serde_json::json;

    use super::*;

    fn spec(overlay: &serde_json::Value) -> Spec {
        let mut object = json!({"metadata": {"name": "app", "namespace": "apps"},
            "spec": {"url": "https://example.com/app", "interval": "1m", "ref": {"branch": "main"}}});
        let fields = object["spec"].as_object_mut().unwrap();
        fields.extend(overlay.as_object().unwrap().clone());
        Spec::of(&serde_json::from_value::<GitRepository>(object).unwrap()).unwrap()
    }

    #[test]
    fn another_spec_is_another_and_another_interval_is_not() {
        let one = spec(&json!({}));
        assert_eq!(
            one,
            spec(&json!({"interval": "5m", "timeout": "3s", "suspend": true}))
        );
        for overlay in [
            json!({"url": "https://example.com/other"}),
            json!({"ref": {"branch": "other"}}),
            json!({"secretRef": {"name": "x"}}),
            json!({"verify": {"mode": "HEAD", "secretRef": {"name": "keys"}}}),
            json!({"ignore": "*"}),
        ] {
            assert_ne!(one, spec(&overlay), "{overlay}");
        }
    }

    #[test]
    fn names_are_read_as_they_were_written_and_others_are_no_records() {
        let of = ObjectKey::new("GitRepository", "apps", "app");
        let digest = Digest::from_content(b"x");
        let name = Name {
            spec: spec(&json!({})),
            digest,
        };
        let key = name.key(&of);
        assert!(key.starts_with("records/gitrepository/apps/app/"), "{key}");
        assert_eq!(parse(&key), Some((of.clone(), name.clone())));
        for other in [
            "records/gitrepository/apps/app/x.json",
            "records/gitrepository/apps/x.json",
            "other/x",
            &key.replace("app/", "app/more/"),
            &key.replace(".json", ""),
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
        assert_eq!(digest_of(&archive(&digest)), Some(digest));
        assert_eq!(digest_of(&tree(&digest)), Some(digest));
        assert_eq!(digest_of(&key), None);

        let mut index = Index::default();
        index.insert(of.clone(), name.clone());
        assert_eq!(index.of(&of), std::slice::from_ref(&name));
        index.remove(&of, &name);
        assert!(index.of(&of).is_empty() && index.0.is_empty());
    }
}
