//! From a flat list of files to a tree.
//!
//! Files come in any order. A later file replaces an earlier one of the same path, as when an archive with
//! duplicate names is unpacked; a path that is a file and a folder at once is refused.

use std::collections::{BTreeMap, HashMap, btree_map};

use super::{Directory, Entry, EntryKind, PathError, Tree, clean_path};
use crate::digest::Digest;

/// Collects the files of one tree. Holds paths and digests, no content.
#[derive(Debug, Default)]
pub struct Builder {
    root: Folder,
}

/// Why a file cannot be added.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The path cannot stand in a tree.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The path, or a part of it, is there already as the other kind of thing.
    #[error("failed to add {0:?}: it is a file and a folder at once")]
    Conflict(String),
}

#[derive(Debug, Default)]
struct Folder {
    children: BTreeMap<String, Node>,
}

#[derive(Debug)]
enum Node {
    File {
        executable: bool,
        digest: Digest,
        size: u64,
    },
    Folder(Folder),
}

impl Builder {
    /// A builder of an empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces the one of the same path, whose digest is returned.
    ///
    /// # Errors
    /// When the path is refused, or is a folder or below a file.
    pub fn file(
        &mut self,
        path: &str,
        executable: bool,
        digest: Digest,
        size: u64,
    ) -> Result<Option<Digest>, BuildError> {
        let conflict = || BuildError::Conflict(path.to_owned());
        let clean = clean_path(path)?;
        let (folder, name) = clean.rsplit_once('/').unwrap_or(("", &clean));
        if name.is_empty() {
            return Err(conflict());
        }
        let folder = self.root.descend(folder).ok_or_else(conflict)?;
        let file = Node::File {
            executable,
            digest,
            size,
        };
        match folder.children.entry(name.to_owned()) {
            btree_map::Entry::Vacant(place) => {
                place.insert(file);
                Ok(None)
            }
            btree_map::Entry::Occupied(mut place) => {
                let Node::File { digest, .. } = place.get() else {
                    return Err(conflict());
                };
                let replaced = *digest;
                place.insert(file);
                Ok(Some(replaced))
            }
        }
    }

    /// Adds a folder and those above it, where they are not there yet.
    ///
    /// # Errors
    /// When the path is refused, or is a file or below one.
    pub fn folder(&mut self, path: &str) -> Result<(), BuildError> {
        let clean = clean_path(path)?;
        self.root
            .descend(&clean)
            .map(|_| ())
            .ok_or_else(|| BuildError::Conflict(path.to_owned()))
    }

    /// Drops what the predicate refuses; it is asked with the path and whether that is a folder. A refused folder
    /// stays as long as something below it does, because each file decides for itself (see [`crate::ignore`]).
    pub fn retain(&mut self, mut keep: impl FnMut(&str, bool) -> bool) {
        self.root.retain("", &mut keep);
    }

    /// Number of files.
    #[must_use]
    pub fn file_count(&self) -> usize {
        self.root.file_count()
    }

    /// The tree, and its folders in an order in which children come before their parents.
    #[must_use]
    pub fn finish(&self) -> (Tree, Vec<Digest>) {
        let mut directories = HashMap::new();
        let mut order = Vec::new();
        let root = self.root.finish(&mut directories, &mut order);
        (Tree { root, directories }, order)
    }
}

/// Recursion is bounded by the length of a path, see [`clean_path`].
impl Folder {
    fn descend(&mut self, path: &str) -> Option<&mut Self> {
        let mut folder = self;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let child = folder
                .children
                .entry(name.to_owned())
                .or_insert_with(|| Node::Folder(Self::default()));
            let Node::Folder(below) = child else { return None };
            folder = below;
        }
        Some(folder)
    }

    fn retain(&mut self, path: &str, keep: &mut impl FnMut(&str, bool) -> bool) {
        self.children.retain(|name, node| {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            match node {
                Node::File { .. } => keep(&path, false),
                Node::Folder(folder) => {
                    folder.retain(&path, keep);
                    !folder.children.is_empty() || keep(&path, true)
                }
            }
        });
    }

    fn file_count(&self) -> usize {
        let count = |node: &Node| match node {
            Node::File { .. } => 1,
            Node::Folder(folder) => folder.file_count(),
        };
        self.children.values().map(count).sum()
    }

    fn finish(&self, directories: &mut HashMap<Digest, Directory>, order: &mut Vec<Digest>) -> Digest {
        let mut entries = Vec::with_capacity(self.children.len());
        for (name, node) in &self.children {
            let (kind, digest, size) = match node {
                Node::File {
                    executable,
                    digest,
                    size,
                } => (EntryKind::of_file(*executable), *digest, *size),
                Node::Folder(folder) => (EntryKind::Directory, folder.finish(directories, order), 0),
            };
            entries.push(Entry {
                kind,
                name: name.clone(),
                digest,
                size,
            });
        }
        // Names are keys of a sorted map and came through clean_path, so the checks of Directory::new hold.
        let directory = Directory { entries };
        let digest = directory.digest();
        if directories.insert(digest, directory).is_none() {
            order.push(digest);
        }
        digest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(builder: &mut Builder, path: &str) -> Result<Option<Digest>, BuildError> {
        let content = path.trim_start_matches("./").as_bytes();
        builder.file(path, false, Digest::from_content(content), content.len() as u64)
    }

    #[test]
    fn equal_files_in_any_order_are_the_same_tree() {
        let paths = ["a/b/c", "z", "a.b", "a-b/c", "b/c"];
        let mut forward = Builder::new();
        let mut backward = Builder::new();
        for path in paths {
            file(&mut forward, path).unwrap();
        }
        for path in paths.iter().rev() {
            file(&mut backward, &format!("./{path}")).unwrap();
        }
        let (tree, order) = forward.finish();
        assert_eq!(tree.root(), backward.finish().0.root());
        assert_eq!(order.last(), Some(&tree.root()));
        assert_eq!(
            tree.entry("a/b/c").unwrap().digest,
            Digest::from_content(b"a/b/c")
        );
        assert_eq!(tree.folder("a/b").unwrap().entries()[0].name, "c");
        assert!(tree.entry("").is_none() && tree.entry("a/x").is_none() && tree.folder("z").is_none());
        let names: Vec<_> = tree
            .folder("")
            .unwrap()
            .entries()
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        assert_eq!(names, ["a", "a-b", "a.b", "b", "z"]);
        assert!(Directory::new(tree.folder("").unwrap().entries().to_vec()).is_ok());
    }

    #[test]
    fn the_last_of_equal_paths_stays_and_conflicts_are_refused() {
        let mut builder = Builder::new();
        assert_eq!(
            builder.file("a/b", false, Digest::from_content(b"1"), 1),
            Ok(None)
        );
        assert_eq!(
            builder.file("a//b", true, Digest::from_content(b"2"), 1),
            Ok(Some(Digest::from_content(b"1")))
        );
        assert_eq!(file(&mut builder, "a"), Err(BuildError::Conflict("a".to_owned())));
        assert_eq!(
            file(&mut builder, "a/b/c"),
            Err(BuildError::Conflict("a/b/c".to_owned()))
        );
        assert_eq!(builder.folder("a/b"), Err(BuildError::Conflict("a/b".to_owned())));
        assert_eq!(file(&mut builder, "."), Err(BuildError::Conflict(".".to_owned())));
        assert!(matches!(file(&mut builder, "../x"), Err(BuildError::Path(_))));
        let (tree, _) = builder.finish();
        assert_eq!(tree.entry("a/b").unwrap().kind, EntryKind::Executable);
        assert_eq!(builder.file_count(), 1);
    }

    #[test]
    fn retain_asks_for_each_file_and_keeps_folders_that_hold_something() {
        let mut builder = Builder::new();
        for path in ["keep/a", "drop/a", "drop/keep", "gone/x"] {
            file(&mut builder, path).unwrap();
        }
        builder.folder("empty").unwrap();
        builder.retain(|path, folder| {
            if folder {
                path == "empty"
            } else {
                path.ends_with("keep") || path.starts_with("keep/")
            }
        });
        let (tree, _) = builder.finish();
        let names: Vec<_> = tree
            .folder("")
            .unwrap()
            .entries()
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        assert_eq!(names, ["drop", "empty", "keep"]);
        assert!(tree.entry("drop/keep").is_some() && tree.entry("drop/a").is_none());
    }
}
