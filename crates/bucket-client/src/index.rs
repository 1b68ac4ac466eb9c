//! The index of a bucket: which objects there are, and the etag of each. Its digest is the revision, as in Flux.
//!
//! The index of the stored artifact is kept in a file, so that after a restart, too, only changed objects are fetched.
//! The file is a memory and no more: it counts only when the store has the artifact of the revision that it names, and
//! without it everything is fetched again.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use artifact::digest::{Digest, Hasher};
use artifact::ignore::IGNORE_FILE;
use artifact::store::{ObjectKey, Store};
use artifact::tree::EntryKind;
use cloud_identity::aws::encode;

/// The kind whose indexes these are.
const KIND: &str = "Bucket";

/// Etags by name of object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Index {
    pub(super) etags: BTreeMap<String, String>,
}

impl Index {
    /// `sha256:` and the digest of the lines "name etag". The ignore file is not one of them.
    pub(super) fn revision(&self) -> String {
        let mut hasher = Hasher::new();
        for (key, etag) in self.etags.iter().filter(|(key, _)| *key != IGNORE_FILE) {
            hasher.update(format!("{key} {etag}\n").as_bytes());
        }
        hasher.finish().to_string()
    }

    /// Number of objects in the revision.
    pub fn count(&self) -> usize {
        self.etags.len() - usize::from(self.etags.contains_key(IGNORE_FILE))
    }
}

/// Where the index of an object's artifact is kept, and the store that has the artifact.
#[derive(Clone)]
pub struct Memory {
    file: PathBuf,
    object: ObjectKey,
    store: Store,
}

/// The stored artifact: etags by name of object, blobs by path.
#[derive(Default)]
pub(super) struct Known {
    pub(super) etags: BTreeMap<String, String>,
    pub(super) blobs: BTreeMap<String, Digest>,
}

impl Memory {
    /// That of one object, in the folder of all.
    pub fn new(folder: &Path, namespace: &str, name: &str, store: Store) -> Self {
        let object = ObjectKey::new(KIND, namespace, name);
        Self {
            file: folder.join(file_name(&object)),
            object,
            store,
        }
    }

    /// The store with the blobs.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Reads what is known of the stored artifact; empty if there is none or if the file belongs to another
    /// one. Blocks.
    pub(super) fn recall(&self) -> Known {
        self.try_recall().unwrap_or_default()
    }

    fn try_recall(&self) -> Option<Known> {
        let record = self
            .store
            .current(&self.object.kind, &self.object.namespace, &self.object.name)?;
        let text = std::fs::read_to_string(&self.file).ok()?;
        let mut lines = text.lines();
        if lines.next() != Some(record.revision.as_str()) {
            return None;
        }
        let mut known = Known::default();
        for line in lines {
            let (etag, key) = line.split_once(' ')?;
            known.etags.insert(decoded(key), decoded(etag));
        }
        let mut folders = vec![(String::new(), record.tree)];
        while let Some((path, digest)) = folders.pop() {
            for entry in self.store.directory(&digest).ok()?.entries() {
                let path = if path.is_empty() {
                    entry.name.clone()
                } else {
                    format!("{path}/{}", entry.name)
                };
                if entry.kind == EntryKind::Directory {
                    folders.push((path, entry.digest));
                } else {
                    known.blobs.insert(path, entry.digest);
                }
            }
        }
        Some(known)
    }

    /// Keeps the index of an artifact that is about to be stored. Blocks.
    pub fn keep(&self, index: &Index) -> std::io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let mut writer = std::io::BufWriter::new(&mut file);
        writeln!(writer, "{}", index.revision())?;
        for (key, etag) in &index.etags {
            writeln!(writer, "{} {}", encode(etag, true), encode(key, true))?;
        }
        writer.flush()?;
        drop(writer);
        file.persist(&self.file)?;
        Ok(())
    }
}

/// Deletes the files in the folder whose object has no artifact any more. Blocks.
pub fn sweep(folder: &Path, store: &Store) -> std::io::Result<()> {
    let needed: Vec<String> = store
        .current_records()
        .iter()
        .map(ObjectKey::from_record)
        .map(|object| file_name(&object))
        .collect();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if !needed.iter().any(|name| entry.file_name() == **name) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn file_name(object: &ObjectKey) -> String {
    // Neither part can hold a slash.
    Digest::from_content(format!("{}/{}/{}", object.kind, object.namespace, object.name).as_bytes()).hex()
}

/// Undoes the percent-encoding of [`encode`].
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = (*first == b'%' && tail.len() >= 2)
            .then(|| std::str::from_utf8(&tail[..2]).ok())
            .flatten();
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(pairs: &[(&str, &str)]) -> Index {
        let owned = |(key, etag): &(&str, &str)| ((*key).to_owned(), (*etag).to_owned());
        Index {
            etags: pairs.iter().map(owned).collect(),
        }
    }

    /// The digests are those of Flux's `internal/index` for the same entries.
    #[test]
    fn the_revision_is_that_of_flux() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(index(&[]).revision(), empty);
        assert_eq!(index(&[(".sourceignore", "x")]).revision(), empty);
        assert_eq!(
            index(&[("b", "2"), ("a/c", "1"), (".sourceignore", "x")]).revision(),
            format!("{}", Digest::from_content(b"a/c 1\nb 2\n"))
        );
    }

    #[test]
    fn names_survive_being_written() {
        for text in ["a b", "a\nb", "100%", "ä/ö", "%2F", "\"0x8D\""] {
            assert_eq!(decoded(&encode(text, true)), text);
        }
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
