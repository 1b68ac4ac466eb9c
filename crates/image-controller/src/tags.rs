//! The tags of images, by ImageRepository: in memory, and in a folder if there is one.
//!
//! Kept by object, not by image: two objects may exclude different tags of one image. A file is written whole and put in its
//! place, so that one that is there can be trusted; one that cannot be read is as good as none.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller_kit::ObjectKey;
use serde::{Deserialize, Serialize};

/// What one scan found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tags {
    /// UID of the ImageRepository: one of the same name that was made anew has no tags.
    pub(crate) uid: String,
    /// Canonical name of the image.
    pub(crate) image: String,
    /// Sorted.
    pub(crate) tags: Vec<String>,
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
            tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
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
        assert_eq!(again.get(&key, "1", image).unwrap().tags, ["a", "b"]);
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
    fn a_file_that_cannot_be_read_is_none() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("apps_web.json"), "{\"uid\":").unwrap();
        std::fs::write(folder.path().join("unrelated"), "x").unwrap();
        let store = Store::open(Some(folder.path().to_owned())).unwrap();
        assert!(store.get(&ObjectKey::new("apps", "web"), "", "").is_none());
    }
}
