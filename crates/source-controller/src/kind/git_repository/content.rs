//! Content of the artifact: the tree of a commit, the trees of its submodules below it, and what is included
//! from other artifacts.
//!
//! In: packs and stored trees, each with the folder where it belongs. Out: one walk over all of them, and an ingest filled
//! with what is not ignored. Nothing is unpacked on the way, so memory does not grow with the content.

use std::io::Read;

use artifact::archive::Limits;
use artifact::digest::Digest;
use artifact::ignore::{self, IGNORE_FILE, Matcher};
use artifact::store::{self, Ingest, Store};
use artifact::tree::{Directory, EntryKind};
use git_client::ObjectId;
use git_client::pack::{self, Node, Pack};
use git_client::reference::Resolved;
use git_client::sparse::Sparse;
use transport::stop::Stop;

use super::include::{self, Inclusion};
use crate::error::{Error, GitError};

/// A stored tree has less; this ends a walk over one that does not.
const MAX_DEPTH: usize = 2048;
/// A larger `.sourceignore` file is refused; of one in a stored artifact no more is read.
const MAX_IGNORE_BYTES: u64 = 1 << 20;

/// A commit, and what of it becomes the artifact.
pub(crate) struct Content {
    pub(super) resolved: Resolved,
    /// The commit first, then its submodules, then what is included.
    pub(super) parts: Vec<Part>,
    pub(super) ignore: Option<String>,
    pub(super) sparse: Sparse,
    pub(super) inclusions: Vec<Inclusion>,
    pub(super) stop: Stop,
}

/// Some content and where it belongs.
pub(super) struct Part {
    /// Folder in the artifact; empty for its root.
    pub(super) prefix: String,
    pub(super) source: Source,
}

/// Where content lies.
pub(super) enum Source {
    /// A commit that was received.
    Commit(Box<Pack>),
    /// A folder of a stored artifact.
    Folder(Store, Digest),
    /// A file of a stored artifact.
    File {
        store: Store,
        blob: Digest,
        executable: bool,
    },
}

/// An entry, and where its bytes are.
pub(super) struct Entry<'a> {
    path: &'a str,
    kind: Node,
    blob: Blob<'a>,
}

enum Blob<'a> {
    Git(&'a Pack, ObjectId),
    Stored(&'a Store, Digest),
}

impl Content {
    /// The commit itself.
    pub(super) fn commit(&self) -> Option<&Pack> {
        match &self.parts.first()?.source {
            Source::Commit(pack) => Some(pack),
            _ => None,
        }
    }

    /// Puts everything that is not ignored into an artifact. Blocks.
    pub(super) fn fill(mut self, ingest: &mut Ingest) -> Result<(), Error> {
        for inclusion in std::mem::take(&mut self.inclusions) {
            let part = include::place(&inclusion, &self.parts, &mut self.sparse)?;
            self.parts.push(part);
        }
        let matcher = self.load_ignore()?;
        let mut room = Room::default();
        let Self {
            parts, sparse, stop, ..
        } = &mut self;
        for (index, part) in parts.iter().enumerate() {
            add_ancestors(&part.prefix, &matcher, ingest)?;
            part.walk(|entry| {
                stop.check()?;
                let (wanted, descend) = look_at(sparse, index, &entry);
                let is_directory = matches!(entry.kind, Node::Directory | Node::Submodule);
                if wanted && !matcher.is_ignored(entry.path, is_directory) {
                    add(&entry, ingest, &mut room)?;
                }
                Ok(descend)
            })?;
        }
        match sparse.missing() {
            Some(missing) => Err(Error::Git(GitError::SparseCheckout(missing))),
            None => Ok(()),
        }
    }

    /// Reads all `.sourceignore` files first: a file deep in the tree can be ruled by one that comes later in its order.
    fn load_ignore(&mut self) -> Result<Matcher, Error> {
        ignore::warn_of_malformed("spec.ignore", self.ignore.as_deref().unwrap_or_default());
        let mut matcher = Matcher::new(self.ignore.as_deref());
        let mut bytes = Vec::new();
        let Self {
            parts, sparse, stop, ..
        } = self;
        for (index, part) in parts.iter().enumerate() {
            part.walk(|entry| {
                stop.check()?;
                let (wanted, descend) = look_at(sparse, index, &entry);
                let (folder, name) = entry.path.rsplit_once('/').unwrap_or(("", entry.path));
                if wanted && name == IGNORE_FILE && matches!(entry.kind, Node::File { .. }) {
                    entry.blob.read(&mut bytes)?;
                    let text = String::from_utf8_lossy(&bytes);
                    ignore::warn_of_malformed(&format!("'{}'", entry.path), &text);
                    matcher.add_file(folder, &text).map_err(Error::LoadIgnore)?;
                }
                Ok(descend)
            })?;
        }
        Ok(matcher)
    }
}

/// Only the repository's own tree is made sparse; what is included is wanted as a whole.
fn look_at(sparse: &mut Sparse, part: usize, entry: &Entry<'_>) -> (bool, bool) {
    if part == 0 {
        sparse.look_at(entry.path, entry.kind)
    } else {
        (true, true)
    }
}

fn add_ancestors(prefix: &str, matcher: &Matcher, ingest: &mut Ingest) -> Result<(), Error> {
    for (end, _) in prefix.match_indices('/') {
        let folder = &prefix[..end];
        if !matcher.is_ignored(folder, true) {
            ingest.add_directory(folder)?;
        }
    }
    Ok(())
}

/// Remaining room for the artifact: as much as an archive may hold.
struct Room {
    limits: Limits,
    entries: u64,
    bytes: u64,
}

impl Default for Room {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            entries: limits.max_entries,
            bytes: limits.max_total_bytes,
            limits,
        }
    }
}

impl Room {
    fn entry(&mut self) -> Result<(), Error> {
        let left = self.entries.checked_sub(1);
        let limit = self.limits.max_entries;
        self.entries = left.ok_or_else(|| {
            Error::Git(GitError::ContentTooLarge(format!(
                "it has more than {limit} entries"
            )))
        })?;
        Ok(())
    }

    fn file(&mut self, path: &str, size: u64) -> Result<(), Error> {
        let limit = self.limits.max_file_bytes;
        if size > limit {
            let problem = format!("'{path}' has more than {limit} bytes");
            return Err(Error::Git(GitError::ContentTooLarge(problem)));
        }
        let left = self.bytes.checked_sub(size);
        let limit = self.limits.max_total_bytes;
        self.bytes = left.ok_or_else(|| {
            Error::Git(GitError::ContentTooLarge(format!(
                "it has more than {limit} bytes"
            )))
        })?;
        Ok(())
    }
}

fn add(entry: &Entry<'_>, ingest: &mut Ingest, room: &mut Room) -> Result<(), Error> {
    room.entry()?;
    match (entry.kind, &entry.blob) {
        // Flux's checkout leaves an empty folder where another repository belongs.
        (Node::Directory | Node::Submodule, _) => ingest.add_directory(entry.path)?,
        // As in Flux's archives: a link would point out of the artifact, or to what is in it anyway.
        (Node::Symlink, _) => {}
        (Node::File { executable }, Blob::Git(pack, id)) => {
            let (content, size) = pack.open_blob(*id)?;
            room.file(entry.path, size)?;
            ingest.add_file(entry.path, executable, content)?;
        }
        (Node::File { executable }, Blob::Stored(store, digest)) => {
            let content = store.read_blob(digest, 0)?;
            room.file(entry.path, content.size)?;
            ingest.add_file(entry.path, executable, content.into_file())?;
        }
    }
    Ok(())
}

impl Blob<'_> {
    /// Reads an ignore file.
    fn read(&self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        match self {
            Self::Git(pack, id) => pack.read_blob(*id, MAX_IGNORE_BYTES, bytes)?,
            Self::Stored(store, digest) => {
                bytes.clear();
                let mut content = store.read_blob(digest, 0)?.into_file().take(MAX_IGNORE_BYTES);
                content
                    .read_to_end(bytes)
                    .map_err(|source| store::Error::ReadSource {
                        path: IGNORE_FILE.to_owned(),
                        source,
                    })?;
            }
        }
        Ok(())
    }
}

impl Part {
    /// Visits all entries, folders before what is in them. The visitor says of a folder whether to go into it.
    fn walk(&self, mut visit: impl FnMut(Entry<'_>) -> Result<bool, Error>) -> Result<(), Error> {
        let below = |path: &str| {
            if self.prefix.is_empty() {
                path.to_owned()
            } else {
                format!("{}/{path}", self.prefix)
            }
        };
        match &self.source {
            Source::Commit(pack) => pack.walk(|pack::Entry { path, kind, id }| {
                visit(Entry {
                    path: &below(path),
                    kind,
                    blob: Blob::Git(pack, id),
                })
            }),
            Source::Folder(store, root) => {
                let entry = Entry {
                    path: &self.prefix,
                    kind: Node::Directory,
                    blob: Blob::Stored(store, *root),
                };
                if self.prefix.is_empty() || visit(entry)? {
                    walk_stored(store, *root, |path, kind, digest| {
                        visit(Entry {
                            path: &below(path),
                            kind,
                            blob: Blob::Stored(store, digest),
                        })
                    })?;
                }
                Ok(())
            }
            Source::File {
                store,
                blob,
                executable,
            } => visit(Entry {
                path: &self.prefix,
                kind: Node::File {
                    executable: *executable,
                },
                blob: Blob::Stored(store, *blob),
            })
            .map(drop),
        }
    }

    /// Returns the entry at a path below the prefix.
    pub(super) fn entry(&self, path: &str) -> Result<Option<Node>, Error> {
        Ok(match &self.source {
            Source::Commit(pack) => pack.entry(path)?.map(|(kind, _)| kind),
            Source::Folder(store, root) => stored_entry(store, *root, path)?.map(|(kind, _)| kind),
            Source::File { .. } => None,
        })
    }
}

/// Returns the entry at a path of a stored folder; the folder itself at the empty path.
pub(super) fn stored_entry(
    store: &Store,
    root: Digest,
    path: &str,
) -> Result<Option<(Node, Digest)>, store::Error> {
    let mut found = (Node::Directory, root);
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if found.0 != Node::Directory {
            return Ok(None);
        }
        let directory = store.directory(&found.1)?;
        let Some(entry) = directory.entry(name) else {
            return Ok(None);
        };
        found = (node(entry.kind), entry.digest);
    }
    Ok(Some(found))
}

fn walk_stored(
    store: &Store,
    root: Digest,
    mut visit: impl FnMut(&str, Node, Digest) -> Result<bool, Error>,
) -> Result<(), Error> {
    let open = |digest: &Digest| -> Result<_, Error> {
        let directory: Directory = store.directory(digest)?;
        Ok(directory.entries().to_vec().into_iter())
    };
    let mut path = String::new();
    let mut stack = vec![(0, open(&root)?)];
    while let Some((length, entries)) = stack.last_mut() {
        path.truncate(*length);
        let Some(entry) = entries.next() else {
            stack.pop();
            continue;
        };
        if !path.is_empty() {
            path.push('/');
        }
        path.push_str(&entry.name);
        let descend = visit(&path, node(entry.kind), entry.digest)?;
        if descend && entry.kind.is_directory() && stack.len() < MAX_DEPTH {
            let entries = open(&entry.digest)?;
            stack.push((path.len(), entries));
        }
    }
    Ok(())
}

fn node(kind: EntryKind) -> Node {
    match kind {
        EntryKind::Directory => Node::Directory,
        EntryKind::File => Node::File { executable: false },
        EntryKind::Executable => Node::File { executable: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_becomes_part_of_an_artifact_as_of_an_archive() {
        let limits = Limits {
            max_entries: 3,
            max_total_bytes: 100,
            max_file_bytes: 60,
            ..Limits::default()
        };
        let mut room = Room {
            entries: limits.max_entries,
            bytes: limits.max_total_bytes,
            limits,
        };
        let said = |result: Result<(), Error>| result.map_err(|error| error.message());
        let refused = |problem: &str| {
            Err(format!(
                "refused the content of the repository: {problem}; leave out what is not needed with spec.ignore"
            ))
        };
        assert_eq!(said(room.file("a", 60)), Ok(()));
        assert_eq!(
            said(room.file("a/b", 61)),
            refused("'a/b' has more than 60 bytes")
        );
        assert_eq!(said(room.file("c", 40)), Ok(()));
        assert_eq!(said(room.file("d", 1)), refused("it has more than 100 bytes"));
        for _ in 0..3 {
            assert_eq!(said(room.entry()), Ok(()));
        }
        assert_eq!(said(room.entry()), refused("it has more than 3 entries"));
    }
}
