//! One commit's files in a pack on disk, read without a work tree.
//!
//! In: packs that were received. Out: a walk over the tree, and the content of one blob at a time. The content is hostile:
//! names that would lead out of the tree are refused, depth and number of entries are bounded. A depth-1 pack holds all
//! that it needs, or the blobs lie in further packs beside it, so no object database is opened.

use std::io::Read;
use std::path::Path;

use git_pack::Kind;
use gix::ObjectId;
use gix::objs::bstr::ByteSlice;
use gix::objs::tree::EntryKind;
use gix::objs::{CommitRef, TreeRefIter};

use transport::http::TimedOut;
use transport::stop::Stop;

/// Trees may share subtrees, so that a small pack can unfold into any number of paths.
const MAX_ENTRIES: usize = 2_000_000;
/// A commit, a tag or one folder; a folder of this size has some 200,000 entries. In bytes.
pub(super) const MAX_META_BYTES: u64 = 8 << 20;
/// All folders from the root to where a walk is, in bytes.
const MAX_OPEN_BYTES: usize = 16 << 20;
/// More of a commit's message is not kept, in bytes: a repository may have hundreds of submodules.
const MAX_SUBJECT_BYTES: usize = 1024;
/// Longer paths cannot be stored on any file system.
const MAX_PATH_BYTES: usize = 4096;
pub(super) const SHA1: gix::hash::Kind = gix::hash::Kind::Sha1;

/// Content that cannot be read, or must not be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It is no pack, or one that no one should send.
    #[error(transparent)]
    Receive(git_pack::Error),
    /// The time is over.
    #[error("timed out: failed to read the commit in time")]
    Wait(#[from] TimedOut),
    /// An object is not in the pack, or broken.
    #[error("failed to read object {id}: {problem}")]
    ReadObject {
        /// Which one.
        id: ObjectId,
        /// The problem.
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

impl From<git_pack::Error> for Error {
    fn from(error: git_pack::Error) -> Self {
        match error {
            git_pack::Error::Cancelled => Self::Wait(TimedOut),
            error => Self::Receive(error),
        }
    }
}

/// A received commit. Clones share what is on the disk.
#[derive(Clone)]
pub struct Pack {
    /// The one with the commit first.
    packs: Vec<git_pack::Pack>,
    commit: ObjectId,
    tree: ObjectId,
    subject: String,
    author: String,
    committed_at: Option<i64>,
    stop: Stop,
}

/// One entry of the commit's tree. The path is relative, with `/` between names that are safe to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it is.
    pub path: &'a str,
    /// Its type.
    pub kind: Node,
    /// The object that holds its content.
    pub id: ObjectId,
}

/// Type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// A folder.
    Directory,
    /// A file.
    File {
        /// True if it may be executed.
        executable: bool,
    },
    /// A link, with its target as content.
    Symlink,
    /// A place where another repository belongs; its content is not in this one.
    Submodule,
}

impl Pack {
    pub(super) fn open(received: git_pack::Pack, commit: ObjectId, stop: Stop) -> Result<Self, Error> {
        let pack = Self {
            packs: vec![received],
            commit,
            tree: commit,
            subject: String::new(),
            author: String::new(),
            committed_at: None,
            stop,
        };
        pack.at(commit)
    }

    /// The same objects, seen from a commit among them.
    fn at(mut self, commit: ObjectId) -> Result<Self, Error> {
        let mut buffer = Vec::new();
        self.read(commit, Kind::Commit, MAX_META_BYTES, &mut buffer)?;
        let problem = |error: gix::Error| Error::ReadObject {
            id: commit,
            problem: error_chain::chain(&error),
        };
        let decoded = CommitRef::from_bytes(&buffer, SHA1).map_err(problem)?;
        self.commit = commit;
        self.tree = decoded.tree();
        let subject = decoded.message.lines().next().unwrap_or_default();
        self.subject = subject[..subject.len().min(MAX_SUBJECT_BYTES)]
            .to_str_lossy()
            .into_owned();
        let author = decoded.author().ok().map(|author| author.name);
        let author = author.unwrap_or_default();
        self.author = author[..author.len().min(MAX_SUBJECT_BYTES)]
            .to_str_lossy()
            .into_owned();
        self.committed_at = decoded.time().ok().map(|time| time.seconds);
        Ok(self)
    }

    /// Goes on to a commit that was made over this one, with the objects that are new in it. They go to the disk, too, into
    /// the directory.
    ///
    /// # Errors
    /// When they cannot be written, or the commit is not among them.
    pub fn advance(
        mut self,
        commit: ObjectId,
        objects: &[git_pack::Object],
        directory: &Path,
    ) -> Result<Self, Error> {
        let stream = git_pack::write(objects)?;
        let file = tempfile::tempfile_in(directory).map_err(git_pack::Error::Write)?;
        let made = git_pack::Pack::receive(&mut stream.as_slice(), file, &git_pack::Settings::default())?;
        self.add(made);
        self.at(commit)
    }

    /// Lets another task end what reads it, and no longer the one that received it.
    #[must_use]
    pub fn stopped_by(mut self, stop: Stop) -> Self {
        for pack in &mut self.packs {
            pack.cancelled_by(stop.flag().clone());
        }
        self.stop = stop;
        self
    }

    /// Bytes on the disk.
    pub fn bytes(&self) -> u64 {
        self.packs.iter().map(git_pack::Pack::bytes).sum()
    }

    /// How many times it went on to another commit.
    pub fn advances(&self) -> usize {
        self.packs.len().saturating_sub(1)
    }

    /// Goes on to a commit that was received over this one: what has not changed is here.
    ///
    /// # Errors
    /// When the commit is neither here nor there.
    pub(super) fn over(
        mut self,
        received: git_pack::Pack,
        commit: ObjectId,
        stop: Stop,
    ) -> Result<Self, Error> {
        self.packs.insert(0, received);
        self.stopped_by(stop).at(commit)
    }

    /// Fails unless all files are here.
    ///
    /// # Errors
    /// With the first file that is not.
    pub(super) fn check_whole(&self) -> Result<(), Error> {
        self.walk(|entry| {
            let is_file = matches!(entry.kind, Node::File { .. } | Node::Symlink);
            if is_file && !self.has(&entry.id) {
                Err(not_sent(entry.id))
            } else {
                Ok(true)
            }
        })
    }

    /// Returns whether an object is here.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.packs.iter().any(|pack| pack.contains(id))
    }

    /// The commit that this is.
    pub(super) fn id(&self) -> ObjectId {
        self.commit
    }

    /// Reads an object of any kind, for deltas that are made of it.
    pub(super) fn find(&self, id: &ObjectId, limit: u64) -> Result<Option<(Kind, Vec<u8>)>, git_pack::Error> {
        let mut content = Vec::new();
        for pack in &self.packs {
            if let Some(kind) = pack.read(id, limit, &mut content)? {
                return Ok(Some((kind, content)));
            }
        }
        Ok(None)
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

    /// The commit's tree.
    pub(crate) fn tree(&self) -> ObjectId {
        self.tree
    }

    /// First line of the commit message.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Name of the commit's author; empty if it cannot be read.
    pub fn author(&self) -> &str {
        &self.author
    }

    /// When the commit was made, in seconds of Unix, if it can be read.
    pub fn committed_at(&self) -> Option<i64> {
        self.committed_at
    }

    /// The commit as it lies in the repository.
    pub fn commit(&self) -> Result<Vec<u8>, Error> {
        let mut buffer = Vec::new();
        self.read(self.commit, Kind::Commit, MAX_META_BYTES, &mut buffer)?;
        Ok(buffer)
    }

    /// An annotated tag as it lies in the repository.
    pub fn tag(&self, id: ObjectId) -> Result<Vec<u8>, Error> {
        let mut buffer = Vec::new();
        self.read(id, Kind::Tag, MAX_META_BYTES, &mut buffer)?;
        Ok(buffer)
    }

    /// Returns the entry at a path; None if nothing is there, or if a part of the path is no folder.
    pub fn entry(&self, path: &str) -> Result<Option<(Node, ObjectId)>, Error> {
        let mut tree = self.tree;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let mut entries = self.folder(tree)?;
            let found = loop {
                match entries.next()? {
                    Some((found, kind, id)) if found == name => break Some((kind, id)),
                    Some(_) => {}
                    None => break None,
                }
            };
            match found {
                Some((kind, id)) if names.peek().is_none() => return Ok(Some((kind, id))),
                Some((Node::Directory, id)) => tree = id,
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Lists a folder, in the order of Git; None if there is none at the path. The root is the empty path.
    ///
    /// # Errors
    /// When a folder on the way cannot be read, or has a name that leads elsewhere.
    pub fn list(&self, path: &str) -> Result<Option<Vec<(String, Node)>>, Error> {
        let tree = match path {
            "" => self.tree,
            path => match self.entry(path)? {
                Some((Node::Directory, id)) => id,
                _ => return Ok(None),
            },
        };
        let mut folder = self.folder(tree)?;
        let mut entries = Vec::new();
        while let Some((name, kind, _)) = folder.next()? {
            entries.push((name.to_owned(), kind));
        }
        Ok(Some(entries))
    }

    /// Visits all entries, folders before what is in them, in the order of Git. The visitor says of a folder whether
    /// to go into it.
    pub fn walk<E: From<Error>>(&self, mut visit: impl FnMut(Entry<'_>) -> Result<bool, E>) -> Result<(), E> {
        let mut path = String::new();
        let mut count = 0;
        let mut open = vec![(0, self.folder(self.tree)?)];
        let mut open_bytes = open[0].1.bytes.len();
        while let Some((length, folder)) = open.last_mut() {
            self.stop.check().map_err(Error::Wait)?;
            path.truncate(*length);
            let Some((name, kind, id)) = folder.next()? else {
                open_bytes -= folder.bytes.len();
                open.pop();
                continue;
            };
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(name);
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
                let folder = self.folder(id)?;
                open_bytes += folder.bytes.len();
                if open_bytes > MAX_OPEN_BYTES {
                    return Err(
                        Error::RefuseTree("a folder and those above it have too many entries").into(),
                    );
                }
                open.push((path.len(), folder));
            }
        }
        Ok(())
    }

    /// Reads the content of a file or link into the buffer, over what is in it, if it has no more bytes than that.
    pub fn read_blob(&self, id: ObjectId, limit: u64, buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.read(id, Kind::Blob, limit, buffer)
    }

    /// Opens the content of a file, and says how many bytes it has.
    pub fn open_blob(&self, id: ObjectId) -> Result<(impl Read, u64), Error> {
        for pack in &self.packs {
            if let Some((found, content)) = pack.open(&id)? {
                is_kind(id, found, Kind::Blob)?;
                let size = content.left();
                return Ok((content, size));
            }
        }
        Err(not_sent(id))
    }

    /// Objects that came over the wire.
    pub fn objects(&self) -> usize {
        self.packs.iter().map(git_pack::Pack::len).sum()
    }

    fn folder(&self, tree: ObjectId) -> Result<Folder, Error> {
        let mut bytes = Vec::new();
        self.read(tree, Kind::Tree, MAX_META_BYTES, &mut bytes)?;
        bytes.shrink_to_fit();
        Ok(Folder { tree, bytes, next: 0 })
    }

    pub(crate) fn read(
        &self,
        id: ObjectId,
        kind: Kind,
        limit: u64,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        for pack in &self.packs {
            let found = pack.read(&id, limit, buffer).map_err(|error| match error {
                git_pack::Error::TooLarge { limit, .. } => Error::ReadObject {
                    id,
                    problem: format!("it, or what it is made of, has more than {limit} bytes"),
                },
                error => error.into(),
            });
            if let Some(found) = found? {
                return is_kind(id, found, kind);
            }
        }
        Err(not_sent(id))
    }
}

fn is_kind(id: ObjectId, found: Kind, expected: Kind) -> Result<(), Error> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (found.word(), expected.word());
    let problem = format!("it is a {found} where a {expected} is expected");
    Err(Error::ReadObject { id, problem })
}

fn not_sent(id: ObjectId) -> Error {
    let problem = "it was not sent".to_owned();
    Error::ReadObject { id, problem }
}

/// The entries of a folder, as they lie in its tree: two thirds of what a list of them takes.
struct Folder {
    tree: ObjectId,
    bytes: Vec<u8>,
    next: usize,
}

impl Folder {
    fn next(&mut self) -> Result<Option<(&str, Node, ObjectId)>, Error> {
        let rest = &self.bytes[self.next..];
        let mut entries = TreeRefIter::from_bytes(rest, SHA1);
        let Some(entry) = entries.next() else {
            return Ok(None);
        };
        let tree = self.tree;
        let entry = entry.map_err(|error| Error::ReadObject {
            id: tree,
            problem: error_chain::chain(&error),
        })?;
        self.next += entries.offset_to_next_entry(rest);
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
        Ok(Some((name, kind, entry.oid.to_owned())))
    }
}

/// Returns whether the name is one name, and not one that Git keeps for itself.
pub(crate) fn is_safe(name: &str) -> bool {
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
