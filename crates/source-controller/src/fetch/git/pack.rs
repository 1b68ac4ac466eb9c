//! One commit's files in a pack on disk, read without a work tree.
//!
//! In: packs that were received. Out: a walk over the tree, and the content of one blob at a time. The content is hostile:
//! names that would lead out of the tree are refused, depth and number of entries are bounded. A depth-1 pack holds all
//! that it needs, or the blobs lie in further packs beside it, so no object database is opened.

use git_pack::Kind;
use gix::ObjectId;
use gix::objs::bstr::ByteSlice;
use gix::objs::tree::EntryKind;
use gix::objs::{CommitRef, TreeRefIter};

/// Trees may share subtrees, so that a small pack can unfold into any number of paths.
const MAX_ENTRIES: usize = 2_000_000;
/// Longer paths cannot be stored on any file system.
const MAX_PATH_BYTES: usize = 4096;
pub(super) const SHA1: gix::hash::Kind = gix::hash::Kind::Sha1;

/// Content that cannot be read, or must not be.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It is no pack, or one that nobody should send.
    #[error(transparent)]
    Receive(#[from] git_pack::Error),
    /// An object is not in the pack, or broken.
    #[error("failed to read object {id}: {problem}")]
    ReadObject {
        /// Which one.
        id: ObjectId,
        /// What is wrong with it.
        problem: String,
    },
    /// A name that would lead elsewhere.
    #[error("failed to read tree {tree}: '{name}' is not a valid file name")]
    RefuseName {
        /// Where it stands.
        tree: ObjectId,
        /// The name, readable.
        name: String,
    },
    /// More than any repository has.
    #[error("failed to read the tree: {0}")]
    RefuseTree(&'static str),
}

/// A received commit.
pub(crate) struct Pack {
    /// The one with the commit first.
    packs: Vec<git_pack::Pack>,
    commit: ObjectId,
    tree: ObjectId,
    message: Vec<u8>,
    committed_at: Option<i64>,
}

/// One entry of the commit's tree. The path is relative, with `/` between names that are safe to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) path: &'a str,
    pub(crate) kind: Node,
    pub(crate) id: ObjectId,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// A folder.
    Directory,
    /// A file.
    File {
        /// Whether it may be executed.
        executable: bool,
    },
    /// A link, with its target as content.
    Symlink,
    /// A place where another repository belongs; its content is not in this one.
    Submodule,
}

impl Pack {
    pub(super) fn open(received: git_pack::Pack, commit: ObjectId) -> Result<Self, Error> {
        let mut pack = Self {
            packs: vec![received],
            commit,
            tree: commit,
            message: Vec::new(),
            committed_at: None,
        };
        let mut buffer = Vec::new();
        pack.read(commit, Kind::Commit, &mut buffer)?;
        let problem = |error: gix::Error| Error::ReadObject {
            id: commit,
            problem: super::chain(&error),
        };
        let decoded = CommitRef::from_bytes(&buffer, SHA1).map_err(problem)?;
        pack.tree = decoded.tree();
        pack.message = decoded.message.to_vec();
        pack.committed_at = decoded.time().ok().map(|time| time.seconds);
        Ok(pack)
    }

    /// Takes in another pack, with more of the same commit.
    pub(super) fn add(&mut self, received: git_pack::Pack) {
        self.packs.push(received);
    }

    /// Objects and bytes that came over the wire.
    #[cfg(test)]
    pub(super) fn received(&self) -> (usize, u64) {
        let sum = |(objects, bytes), pack: &git_pack::Pack| (objects + pack.len(), bytes + pack.bytes());
        self.packs.iter().fold((0, 0), sum)
    }

    /// First line of the commit message.
    pub(crate) fn subject(&self) -> String {
        self.message
            .lines()
            .next()
            .unwrap_or_default()
            .to_str_lossy()
            .into_owned()
    }

    /// When the commit was made, in seconds of Unix, if it can be read.
    pub(crate) fn committed_at(&self) -> Option<i64> {
        self.committed_at
    }

    /// The commit as it lies in the repository.
    pub(crate) fn commit(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = Vec::new();
        self.read(self.commit, Kind::Commit, &mut buffer)?;
        Ok(buffer)
    }

    /// An annotated tag as it lies in the repository.
    pub(crate) fn tag(&self, id: ObjectId) -> Result<Vec<u8>, Error> {
        let mut buffer = Vec::new();
        self.read(id, Kind::Tag, &mut buffer)?;
        Ok(buffer)
    }

    /// What there is at a path; None when there is nothing, or something of it is no folder.
    pub(crate) fn entry(&self, path: &str) -> Result<Option<(Node, ObjectId)>, Error> {
        let mut tree = self.tree;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let entries = self.tree_entries(tree)?;
            let found = entries.into_iter().find(|(entry, ..)| entry == name);
            match found {
                Some((_, kind, id)) if names.peek().is_none() => return Ok(Some((kind, id))),
                Some((_, Node::Directory, id)) => tree = id,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Visits all entries, folders before what is in them, in the order of Git. The visitor says of a folder whether
    /// to go into it.
    pub(crate) fn walk<E: From<Error>>(
        &self,
        mut visit: impl FnMut(Entry<'_>) -> Result<bool, E>,
    ) -> Result<(), E> {
        let mut path = String::new();
        let mut count = 0;
        let mut open = vec![(0, self.tree_entries(self.tree)?.into_iter())];
        while let Some((length, entries)) = open.last_mut() {
            path.truncate(*length);
            let Some((name, kind, id)) = entries.next() else {
                open.pop();
                continue;
            };
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&name);
            count += 1;
            if count > MAX_ENTRIES {
                return Err(Error::RefuseTree("it has too many entries").into());
            }
            if path.len() > MAX_PATH_BYTES {
                return Err(Error::RefuseTree("a path is too long").into());
            }
            if visit(Entry {
                path: &path,
                kind,
                id,
            })? && kind == Node::Directory
            {
                let entries = self.tree_entries(id)?;
                open.push((path.len(), entries.into_iter()));
            }
        }
        Ok(())
    }

    /// Reads the content of a file or link into the buffer, over what is in it.
    pub(crate) fn read_blob(&self, id: ObjectId, buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.read(id, Kind::Blob, buffer)
    }

    fn tree_entries(&self, tree: ObjectId) -> Result<Vec<(String, Node, ObjectId)>, Error> {
        let mut buffer = Vec::new();
        self.read(tree, Kind::Tree, &mut buffer)?;
        let mut entries = Vec::new();
        for entry in TreeRefIter::from_bytes(&buffer, SHA1) {
            let entry = entry.map_err(|error| Error::ReadObject {
                id: tree,
                problem: super::chain(&error),
            })?;
            let name = entry.filename.to_str().ok().filter(|name| is_safe(name));
            let name = name.ok_or_else(|| Error::RefuseName {
                tree,
                name: entry.filename.to_str_lossy().escape_debug().to_string(),
            })?;
            let kind = match entry.mode.kind() {
                EntryKind::Tree => Node::Directory,
                EntryKind::Blob => Node::File { executable: false },
                EntryKind::BlobExecutable => Node::File { executable: true },
                EntryKind::Link => Node::Symlink,
                EntryKind::Commit => Node::Submodule,
            };
            entries.push((name.to_owned(), kind, entry.oid.to_owned()));
        }
        Ok(entries)
    }

    fn read(&self, id: ObjectId, kind: Kind, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let problem = |problem: String| Error::ReadObject { id, problem };
        for pack in &self.packs {
            match pack.read(&id, buffer)? {
                Some(found) if found == kind => return Ok(()),
                Some(found) => {
                    let (found, kind) = (found.word(), kind.word());
                    return Err(problem(format!("it is a {found} where a {kind} is expected")));
                }
                None => {}
            }
        }
        Err(problem("it was not sent".to_owned()))
    }
}

/// Whether the name is one name, and not one that Git keeps for itself.
fn is_safe(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0']) && !name.eq_ignore_ascii_case(".git")
}

#[cfg(test)]
mod tests {
    use super::is_safe;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["", ".", "..", "a/b", "/", "a\0b", ".git", ".GIT"] {
            assert!(!is_safe(name), "{name:?}");
        }
        for name in ["a", "...", ".gitignore", "a\\b", "ü", " "] {
            assert!(is_safe(name), "{name:?}");
        }
    }
}
