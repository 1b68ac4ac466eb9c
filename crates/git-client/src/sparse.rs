//! Parts of a commit: which folders are wanted, such as those of `spec.sparseCheckout`, and which blobs are to be fetched for
//! that.

use std::collections::BTreeSet;

use gix::ObjectId;

use super::pack::{self, Node, Pack};

/// Filter that leaves out the contents of files.
pub(super) const NO_BLOBS: &str = "blob:none";
/// Blobs that are asked for at once: a request of 250 kB, which proxies let through.
pub(super) const BATCH: usize = 5000;
/// Needed for submodules, whichever folders are wanted.
const SUBMODULES: &str = ".gitmodules";

/// The folders that are wanted; all when there are none.
#[derive(Debug, Clone)]
pub struct Sparse {
    folders: Vec<String>,
    /// Which files in them.
    is_wanted: Option<fn(&str) -> bool>,
    found: BTreeSet<String>,
}

impl Sparse {
    /// Takes folders, such as those of `spec.sparseCheckout`. A file counts as one.
    pub fn new(folders: &[String]) -> Self {
        let clean = |folder: &String| {
            let folder = folder.trim_start_matches("./").trim_matches('/');
            if folder == "." {
                String::new()
            } else {
                folder.to_owned()
            }
        };
        Self {
            folders: folders.iter().map(clean).collect(),
            is_wanted: None,
            found: BTreeSet::new(),
        }
    }

    /// Wants only some files of these folders, by their paths.
    #[must_use]
    pub fn files(mut self, is_wanted: fn(&str) -> bool) -> Self {
        self.is_wanted = Some(is_wanted);
        self
    }

    /// Returns whether nothing is left out.
    pub(super) fn is_everything(&self) -> bool {
        self.is_wanted.is_none() && (self.folders.is_empty() || self.folders.iter().any(String::is_empty))
    }

    /// The contents of files that are wanted and not here, each once.
    pub(super) fn blobs(&self, pack: &Pack) -> Result<Vec<ObjectId>, pack::Error> {
        let mut sparse = self.clone();
        let mut blobs = BTreeSet::new();
        pack.walk(|entry| {
            let (wanted, descend) = sparse.look_at(entry.path, entry.kind);
            let is_file = matches!(entry.kind, Node::File { .. } | Node::Symlink);
            let wanted = wanted && sparse.is_wanted.is_none_or(|is_wanted| is_wanted(entry.path));
            if is_file && (wanted || entry.path == SUBMODULES) && !pack.has(&entry.id) {
                blobs.insert(entry.id);
            }
            Ok::<_, pack::Error>(descend)
        })?;
        Ok(blobs.into_iter().collect())
    }

    /// Returns whether the entry belongs to the artifact, and whether something below it may.
    pub fn look_at(&mut self, path: &str, kind: Node) -> (bool, bool) {
        if self.folders.is_empty() {
            return (true, true);
        }
        let below = |path: &str, folder: &str| {
            let rest = path.strip_prefix(folder);
            folder.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(exact) = self.folders.iter().find(|folder| *folder == path) {
            self.found.insert(exact.clone());
        }
        let wanted = self.folders.iter().any(|folder| below(path, folder));
        let above = kind == Node::Directory && self.folders.iter().any(|folder| below(folder, path));
        (wanted, wanted || above)
    }

    /// The first folder that was not there.
    pub fn missing(&self) -> Option<String> {
        let wanted = self.folders.iter().filter(|folder| !folder.is_empty());
        wanted
            .into_iter()
            .find(|folder| !self.found.contains(*folder))
            .cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_folders_are_taken_with_what_is_below_them() {
        let mut sparse = Sparse::new(&["./deploy/a".to_owned(), "charts/".to_owned()]);
        let directory = Node::Directory;
        let file = Node::File { executable: false };
        assert_eq!(sparse.look_at("deploy", directory), (false, true));
        assert_eq!(sparse.look_at("deploy/a", directory), (true, true));
        assert_eq!(sparse.look_at("deploy/a/x.yaml", file), (true, true));
        assert_eq!(sparse.look_at("deploy/ab", directory), (false, false));
        assert_eq!(sparse.look_at("README.md", file), (false, false));
        assert_eq!(sparse.missing().as_deref(), Some("charts"));
        assert_eq!(sparse.look_at("charts", directory), (true, true));
        assert_eq!(sparse.missing(), None);
        let mut all = Sparse::new(&[]);
        assert_eq!(all.look_at("x", file), (true, true));
        assert_eq!(all.missing(), None);
    }
}
