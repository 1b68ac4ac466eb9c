//! The tags of images, by ImageRepository, and since when they point to what: in memory, and in a folder if there is one.
//!
//! Kept by object, not by image: two objects may exclude different tags of one image. A file is written whole and put in its
//! place, so that one that is there can be trusted; one that cannot be read is as good as none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use controller_kit::ObjectKey;
use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Looks that are kept of one object; of more the oldest are forgotten, and their tags count as new again.
const MAX_LOOKS: usize = 1000;

/// What is known of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tags {
    /// UID of the ImageRepository: one of the same name that was made anew has no tags.
    pub(crate) uid: String,
    /// Canonical name of the image.
    pub(crate) image: String,
    /// Those that the last scan found, sorted.
    pub(crate) tags: TagList,
    /// What tags pointed to when someone looked, by tag.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    looks: BTreeMap<String, Look>,
    /// Of the list that the tags are from. It is not written: after a restart all is listed once.
    #[serde(skip)]
    mark: Option<Mark>,
}

/// How the registry marked a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Its `ETag`.
    pub(crate) text: String,
    /// `spec.exclusionList`, with which the tags were taken from the list.
    pub(crate) exclusions: Vec<String>,
}

/// What a tag points to, and since when that is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Look {
    /// Digest of the manifest.
    pub(crate) digest: String,
    /// When a look found this digest first. A tag that moves, or goes and comes back, is new.
    pub(crate) since: Timestamp,
}

impl Tags {
    /// What was found when someone last looked where the tag points to.
    pub(crate) fn look(&self, tag: &str) -> Option<&Look> {
        self.looks.get(tag)
    }

    /// The mark of the list, if the same tags would be taken from it today.
    pub(crate) fn mark(&self, exclusions: &[String]) -> Option<&str> {
        let mark = self.mark.as_ref()?;
        (mark.exclusions == exclusions).then_some(&*mark.text)
    }
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
    /// One file is written at a time, with what is known by then: the last one never holds less than one before.
    writing: Arc<Mutex<()>>,
}

impl Store {
    /// Opens a folder, with what is in it; None keeps tags in memory only.
    pub(crate) fn open(folder: Option<PathBuf>) -> std::io::Result<Self> {
        let store = Self {
            all: Arc::default(),
            folder: folder.map(Arc::new),
            writing: Arc::default(),
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
    pub(crate) fn put(
        &self,
        key: &ObjectKey,
        uid: &str,
        image: &str,
        tags: TagList,
        mark: Option<Mark>,
    ) -> std::io::Result<()> {
        let known = self.get(key, uid, image);
        let mut looks = known.map(|known| known.looks.clone()).unwrap_or_default();
        if !looks.is_empty() {
            let listed: HashSet<&str> = tags.iter().collect();
            looks.retain(|tag, _| listed.contains(&**tag));
        }
        let tags = Tags {
            uid: uid.to_owned(),
            image: image.to_owned(),
            tags,
            looks,
            mark,
        };
        self.lock().insert(key.clone(), Arc::new(tags));
        self.write(key)
    }

    /// Records what a tag points to now. Returns since when that is known; it counts whether it can be written or not.
    pub(crate) fn look(
        &self,
        key: &ObjectKey,
        tag: &str,
        digest: &str,
        now: Timestamp,
    ) -> (Timestamp, std::io::Result<()>) {
        {
            let mut all = self.lock();
            let Some(known) = all.get_mut(key) else {
                return (now, Ok(()));
            };
            if let Some(look) = known.look(tag).filter(|look| look.digest == digest) {
                return (look.since, Ok(()));
            }
            let look = Look {
                digest: digest.to_owned(),
                since: now,
            };
            let looks = &mut Arc::make_mut(known).looks;
            looks.insert(tag.to_owned(), look);
            if looks.len() > MAX_LOOKS {
                let oldest = looks.iter().min_by_key(|(_, look)| look.since);
                let oldest = oldest.map(|(tag, _)| tag.clone());
                oldest.map(|tag| looks.remove(&tag));
            }
        }
        (now, self.write(key))
    }

    /// Forgets an object that is gone.
    pub(crate) fn forget(&self, key: &ObjectKey) {
        let _alone = self.alone();
        self.lock().remove(key);
        if let Some(folder) = &self.folder {
            // What is left is overwritten by an object of the same name, or does not count because of its UID.
            let _ = std::fs::remove_file(folder.join(file_name(key)));
        }
    }

    fn write(&self, key: &ObjectKey) -> std::io::Result<()> {
        let Some(folder) = &self.folder else {
            return Ok(());
        };
        let _alone = self.alone();
        let known = self.lock().get(key).cloned();
        known.map_or(Ok(()), |tags| write(folder, key, &tags))
    }

    fn alone(&self) -> MutexGuard<'_, ()> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
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

    const IMAGE: &str = "ghcr.io/org/app";

    fn put(store: &Store, key: &ObjectKey, uid: &str, tags: &[&str]) {
        store
            .put(key, uid, IMAGE, tags.iter().copied().collect(), None)
            .unwrap();
    }

    #[test]
    fn tags_survive_a_restart_and_belong_to_one_object() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(Some(folder.path().to_owned())).unwrap();
        let key = ObjectKey::new("apps", "web.server");
        put(&open(), &key, "1", &["a", "b"]);
        let again = open();
        let found = again.get(&key, "1", IMAGE).unwrap();
        assert_eq!(found.tags.iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(
            again.get(&key, "2", IMAGE).is_none(),
            "another object of the same name"
        );
        assert!(
            again.get(&key, "1", "ghcr.io/org/other").is_none(),
            "another image of the same object"
        );
        again.forget(&key);
        assert!(open().get(&key, "1", IMAGE).is_none());
    }

    #[test]
    fn what_a_tag_points_to_is_as_old_as_the_first_look_at_it() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Store::open(Some(folder.path().to_owned())).unwrap();
        let key = ObjectKey::new("apps", "web");
        let look = |tag, digest, now| {
            let now = Timestamp::from_second(now).unwrap();
            let (since, written) = open().look(&key, tag, digest, now);
            written.unwrap();
            since.as_second()
        };
        assert_eq!(
            look("a", "sha256:1", 5),
            5,
            "an image that was not scanned has no memory"
        );
        put(&open(), &key, "1", &["a", "b"]);
        assert_eq!(look("a", "sha256:1", 20), 20);
        assert_eq!(look("a", "sha256:1", 30), 20);
        assert_eq!(look("b", "sha256:1", 30), 30, "each tag has its own age");
        assert_eq!(look("a", "sha256:2", 40), 40, "a tag that moves is new");
        assert_eq!(look("a", "sha256:1", 50), 50, "and new again when it moves back");
        put(&open(), &key, "1", &["b", "c"]);
        put(&open(), &key, "1", &["a", "b"]);
        assert_eq!(look("a", "sha256:1", 80), 80, "a tag that was gone is new");
        assert_eq!(look("b", "sha256:1", 80), 30);
        put(&open(), &key, "2", &["a", "b"]);
        assert_eq!(
            look("b", "sha256:1", 90),
            90,
            "another object of the same name has seen nothing"
        );
    }

    #[test]
    fn looks_are_bounded() {
        let store = Store::default();
        let key = ObjectKey::new("apps", "web");
        let tags: Vec<String> = (0..=MAX_LOOKS).map(|number| format!("t{number}")).collect();
        let listed: Vec<&str> = tags.iter().map(String::as_str).collect();
        put(&store, &key, "1", &listed);
        for (second, tag) in (0..).zip(&tags) {
            let now = Timestamp::from_second(second).unwrap();
            store.look(&key, tag, "sha256:1", now).1.unwrap();
        }
        let known = store.get(&key, "1", IMAGE).unwrap();
        assert_eq!(known.looks.len(), MAX_LOOKS);
        assert!(known.look("t0").is_none() && known.look("t1").is_some());
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
