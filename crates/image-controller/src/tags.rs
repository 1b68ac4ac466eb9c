//! The tags of images, by ImageRepository: in memory, and in a folder if there is one.
//!
//! Kept by object, not by image: two objects may exclude different tags of one image. A file is written whole and put in its
//! place, so that one that is there can be trusted; one that cannot be read is as good as none.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller_kit::ObjectKey;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What one scan found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tags {
    /// UID of the ImageRepository: one of the same name that was made anew has no tags.
    pub(crate) uid: String,
    /// Canonical name of the image.
    pub(crate) image: String,
    /// Sorted.
    pub(crate) tags: TagList,
}

/// Tags in one piece of memory, one a line: a million of them are a matter of megabytes then, not of a hundred.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TagList(Box<str>);

impl TagList {
    /// The tags, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.lines()
    }
}

/// What has a line break is no tag.
impl<'t> FromIterator<&'t str> for TagList {
    fn from_iter<T: IntoIterator<Item = &'t str>>(tags: T) -> Self {
        let mut lines = String::new();
        for tag in tags.into_iter().filter(|tag| !tag.contains(['\n', '\r'])) {
            lines.push_str(tag);
            lines.push('\n');
        }
        Self(lines.into_boxed_str())
    }
}

impl Serialize for TagList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for TagList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let tags = Vec::<String>::deserialize(deserializer)?;
        Ok(tags.iter().map(String::as_str).collect())
    }
}

/// The tags of all images. Clones are handles to the same.
#[derive(Clone, Default)]
pub(crate) struct Store {
    all: Arc<Mutex<HashMap<ObjectKey, Arc<Tags>>>>,
    folder: Option<Arc<PathBuf>>,
}

impl Store {
    /// Opens a folder, with what is in it; None keeps tags in memory only.
    pub(crate) fn open(folder: Option<PathBuf>) -> std::io::Result<Self> {
        let store = Self {
            all: Arc::default(),
            folder: folder.map(Arc::new),
        };
        if let Some(folder) = &store.folder {
            std::fs::create_dir_all(&**folder)?;
            for entry in std::fs::read_dir(&**folder)? {
                let path = entry?.path();
                if let Some(key) = key_of(&path)
                    && let Some(tags) = read(&path)
                {
                    store.lock().insert(key, Arc::new(tags));
                }
            }
        }
        Ok(store)
    }

    /// The tags of an object, if it and its image are those that were scanned: tags of one image say nothing of another.
    pub(crate) fn get(&self, key: &ObjectKey, uid: &str, image: &str) -> Option<Arc<Tags>> {
        let found = self.lock().get(key).cloned();
        found.filter(|tags| tags.uid == uid && tags.image == image)
    }

    /// Keeps what a scan found. It counts from now on, whether it can be written or not.
    pub(crate) fn put(&self, key: &ObjectKey, tags: Tags) -> std::io::Result<()> {
        let written = match &self.folder {
            Some(folder) => write(folder, key, &tags),
            None => Ok(()),
        };
        self.lock().insert(key.clone(), Arc::new(tags));
        written
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
        if let Some(folder) = &self.folder {
            // What is left is overwritten by an object of the same name, or does not count because of its UID.
            let _ = std::fs::remove_file(folder.join(file_name(key)));
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ObjectKey, Arc<Tags>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names of Kubernetes have no underscore.
fn file_name(key: &ObjectKey) -> String {
    format!("{}_{}.json", key.namespace, key.name)
}

fn key_of(path: &Path) -> Option<ObjectKey> {
    let (namespace, name) = path
        .file_name()?
        .to_str()?
        .strip_suffix(".json")?
        .split_once('_')?;
    Some(ObjectKey::new(namespace, name))
}

fn read(path: &Path) -> Option<Tags> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

fn write(folder: &Path, key: &ObjectKey, tags: &Tags) -> std::io::Result<()> {
    let file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(std::io::BufWriter::new(&file), tags)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(file_name(key)))
        .map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(uid: &str, tags: &[&str]) -> Tags {
        Tags {
            uid: uid.to_owned(),
            image: "ghcr.io/org/app".to_owned(),
            tags: tags.iter().copied().collect(),
        }
    }

    #[test]
    fn tags_survive_a_restart_and_belong_to_one_object() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(Some(folder.path().to_owned())).unwrap();
        let key = ObjectKey::new("apps", "web.server");
        open().put(&key, tags("1", &["a", "b"])).unwrap();
        let again = open();
        let image = "ghcr.io/org/app";
        let found = again.get(&key, "1", image).unwrap();
        assert_eq!(found.tags.iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(
            again.get(&key, "2", image).is_none(),
            "another object of the same name"
        );
        assert!(
            again.get(&key, "1", "ghcr.io/org/other").is_none(),
            "another image of the same object"
        );
        again.forget(&key);
        assert!(open().get(&key, "1", image).is_none());
    }

    #[test]
    fn a_registry_cannot_make_two_tags_of_one() {
        let list: TagList = ["a", "b\nc", "d\r", "e"].into_iter().collect();
        assert_eq!(list.iter().collect::<Vec<_>>(), ["a", "e"]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("apps_web.json"), "{\"uid\":").unwrap();
        std::fs::write(folder.path().join("unrelated"), "x").unwrap();
        let store = Store::open(Some(folder.path().to_owned())).unwrap();
        assert!(store.get(&ObjectKey::new("apps", "web"), "", "").is_none());
    }
}
