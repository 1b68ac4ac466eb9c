//! The artifact of another source, in our own store, as the files that a chart is taken from. Nothing is unpacked: folders
//! and blobs are read where they are, and each is checked against its digest.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Read};
use std::rc::Rc;

use artifact::digest::{Digest, Hasher};
use artifact::store::Store;
use artifact::tree::{Directory, Entry as TreeEntry};
use helm_package::{Entry, Files, What};

/// A tree in the store. Blocks on the disk.
pub(crate) struct Tree {
    store: Store,
    root: Digest,
    /// Folders that were read.
    folders: RefCell<HashMap<Digest, Rc<Directory>>>,
}

impl Tree {
    /// The tree below a folder.
    pub(crate) fn new(store: Store, root: Digest) -> Self {
        let folders = RefCell::default();
        Self { store, root, folders }
    }

    fn directory(&self, digest: &Digest) -> io::Result<Rc<Directory>> {
        if let Some(known) = self.folders.borrow().get(digest) {
            return Ok(known.clone());
        }
        let directory = Rc::new(self.store.directory(digest).map_err(io::Error::other)?);
        self.folders.borrow_mut().insert(*digest, directory.clone());
        Ok(directory)
    }

    fn folder(&self, path: &str) -> io::Result<Option<Rc<Directory>>> {
        let mut folder = self.directory(&self.root)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let Some(entry) = folder.entry(name).filter(|entry| entry.kind.is_directory()) else {
                return Ok(None);
            };
            let digest = entry.digest;
            folder = self.directory(&digest)?;
        }
        Ok(Some(folder))
    }

    fn entry(&self, path: &str) -> io::Result<Option<TreeEntry>> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let folder = self.folder(folder)?;
        Ok(folder.and_then(|folder| folder.entry(name).cloned()))
    }
}

impl Files for Tree {
    fn what(&self, path: &str) -> io::Result<Option<What>> {
        if path.is_empty() {
            return Ok(Some(What::Folder));
        }
        Ok(self.entry(path)?.as_ref().map(what))
    }

    fn entries(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let folder = self.folder(folder)?.ok_or(io::ErrorKind::NotFound)?;
        let entries = folder.entries().iter();
        let entries = entries.map(|entry| Entry {
            name: entry.name.clone(),
            what: what(entry),
        });
        Ok(entries.collect())
    }

    fn open(&self, path: &str) -> io::Result<Box<dyn Read + '_>> {
        let entry = self.entry(path)?.filter(|entry| !entry.kind.is_directory());
        let entry = entry.ok_or(io::ErrorKind::NotFound)?;
        let content = self.store.read_blob(&entry.digest, 0).map_err(io::Error::other)?;
        Ok(Box::new(Verified {
            content,
            hasher: Some(Hasher::new()),
            expected: entry.digest,
        }))
    }
}

fn what(entry: &TreeEntry) -> What {
    match entry.kind.is_directory() {
        true => What::Folder,
        false => What::File(entry.size),
    }
}

/// A blob that is refused at its end if it is not what its digest says.
struct Verified<R> {
    content: R,
    /// None once the end was checked.
    hasher: Option<Hasher>,
    expected: Digest,
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        if read > 0 {
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&buffer[..read]);
            }
        } else if !buffer.is_empty()
            && let Some(hasher) = self.hasher.take()
            && hasher.finish() != self.expected
        {
            let text = format!("failed to verify blob {}", self.expected);
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use artifact::store::{Options, RecordMeta};

    use super::*;

    #[test]
    fn files_of_an_artifact_are_read_from_the_store() {
        let directory = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(directory.path(), Options::default()).unwrap();
        let mut ingest = store.ingest();
        for (path, text) in [("charts/app/Chart.yaml", "name: app"), ("a.yaml", "1")] {
            ingest.add_file(path, false, text.as_bytes()).unwrap();
        }
        let meta = RecordMeta {
            kind: "GitRepository".to_owned(),
            namespace: "n".to_owned(),
            name: "x".to_owned(),
            filename: "f".to_owned(),
            ..RecordMeta::default()
        };
        let record = ingest.finish(meta).unwrap();
        let tree = Tree::new(store, record.tree);
        assert_eq!(tree.what("").unwrap(), Some(What::Folder));
        assert_eq!(tree.what("charts/app").unwrap(), Some(What::Folder));
        assert_eq!(tree.what("charts/app/Chart.yaml").unwrap(), Some(What::File(9)));
        assert_eq!(tree.what("charts/none/x").unwrap(), None);
        let names: Vec<String> = tree
            .entries("")
            .unwrap()
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        assert_eq!(names, ["a.yaml", "charts"]);
        let mut text = String::new();
        tree.open("charts/app/Chart.yaml")
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "name: app");
        assert!(tree.open("charts").is_err());
    }

    #[test]
    fn a_blob_that_is_not_what_it_should_be_is_refused() {
        let read = |text: &str| {
            let mut verified = Verified {
                content: text.as_bytes(),
                hasher: Some(Hasher::new()),
                expected: Digest::from_content(b"right"),
            };
            verified.read_to_end(&mut Vec::new()).is_ok()
        };
        assert!(read("right"));
        assert!(!read("wrong"));
    }
}
