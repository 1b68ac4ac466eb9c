//! The files of a source, to be looked at: folders come from the store one by one as they are asked for.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use artifact::Digest;
use artifact::store::{self, Store};
use artifact::tree::{Directory, Entry, Tree};

/// A tree of files, in the store or just unpacked into it.
pub(super) struct Source {
    root: Digest,
    origin: Origin,
    known: RefCell<HashMap<Digest, Rc<Directory>>>,
}

enum Origin {
    /// An artifact of the store.
    Store(Store),
    /// An archive that was downloaded, whose files are in the store.
    Unpacked(Tree),
}

/// Entry at a path.
pub(super) enum Found {
    Folder(Rc<Directory>),
    File(Entry),
    /// Nothing; or something below a file, which is no folder.
    Nothing {
        below_a_file: bool,
    },
}

impl Source {
    pub(super) fn stored(store: Store, root: Digest) -> Self {
        Self::new(root, Origin::Store(store))
    }

    pub(super) fn unpacked(tree: Tree) -> Self {
        Self::new(tree.root(), Origin::Unpacked(tree))
    }

    fn new(root: Digest, origin: Origin) -> Self {
        Self {
            root,
            origin,
            known: RefCell::default(),
        }
    }

    /// The folder of this digest.
    pub(super) fn directory(&self, digest: &Digest) -> store::Result<Rc<Directory>> {
        if let Some(known) = self.known.borrow().get(digest) {
            return Ok(known.clone());
        }
        let directory = match &self.origin {
            Origin::Store(store) => store.directory(digest)?,
            Origin::Unpacked(tree) => {
                let what = store::What::Directory;
                let digest = *digest;
                let found = tree.directory(&digest).cloned();
                found.ok_or(store::Error::NotFound { what, digest })?
            }
        };
        let directory = Rc::new(directory);
        self.known.borrow_mut().insert(*digest, directory.clone());
        Ok(directory)
    }

    /// Returns the entry at a clean path; "." is the root.
    pub(super) fn look_up(&self, path: &str) -> store::Result<Found> {
        let mut folder = self.directory(&self.root)?;
        let mut names = path
            .split('/')
            .filter(|name| !matches!(*name, "" | "."))
            .peekable();
        while let Some(name) = names.next() {
            let Some(entry) = folder.entry(name).cloned() else {
                return Ok(Found::Nothing { below_a_file: false });
            };
            if entry.kind.is_directory() {
                folder = self.directory(&entry.digest)?;
            } else if names.peek().is_some() {
                return Ok(Found::Nothing { below_a_file: true });
            } else {
                return Ok(Found::File(entry));
            }
        }
        Ok(Found::Folder(folder))
    }

    /// Shows everything below a folder to `visit`, each folder before what is in it, in the order of the names. What is in
    /// a folder is left out when `visit` says false. Trees are no deeper than paths are long.
    pub(super) fn walk<E: From<store::Error>>(
        &self,
        folder: &Directory,
        path: &str,
        visit: &mut impl FnMut(&str, &Entry) -> Result<bool, E>,
    ) -> Result<(), E> {
        for entry in folder.entries() {
            let path = joined(path, &entry.name);
            if visit(&path, entry)? && entry.kind.is_directory() {
                let below = self.directory(&entry.digest)?;
                self.walk(&below, &path, visit)?;
            }
        }
        Ok(())
    }
}

/// A name in a folder; the root is "." or empty.
pub(super) fn joined(folder: &str, name: &str) -> String {
    if matches!(folder, "" | ".") {
        name.to_owned()
    } else {
        format!("{folder}/{name}")
    }
}
