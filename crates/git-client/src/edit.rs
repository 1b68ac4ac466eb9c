//! Files of a commit changed without a checkout: the objects that are new, and the tree that holds them.
//!
//! In: a received commit, and the new contents of some of its files. Out: a tree that differs in just these, and the blobs and
//! trees that the server does not have yet. Folders that are not on the way to a changed file are referred to, not read.

use std::collections::BTreeMap;

use git_pack::{Kind, Object};
use gix::ObjectId;
use gix::objs::bstr::BString;
use gix::objs::tree::{EntryKind, EntryMode};
use gix::objs::{TreeRef, TreeRefIter};

use crate::pack::{self, MAX_META_BYTES, Pack, SHA1, is_safe};

/// New contents by path; None deletes the file. Paths are relative, with `/`.
pub type Changes = BTreeMap<String, Option<Content>>;

/// What a file is to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// What another commit of the repository has: nothing of it is read or sent.
    Stored {
        /// Its blob.
        id: ObjectId,
        /// Whether the file may be executed.
        executable: bool,
    },
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

/// Why files cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The commit that is changed cannot be read.
    #[error(transparent)]
    Read(#[from] pack::Error),
    /// An object cannot be named.
    #[error(transparent)]
    Object(#[from] git_pack::Error),
    /// The path is not valid in a tree.
    #[error("failed to change '{0}': it is not a valid path")]
    RefusePath(String),
    /// Something else than a file is there.
    #[error("failed to change '{path}': it is {found}, not a file")]
    NotAFile {
        /// The path.
        path: String,
        /// Kind of what is there.
        found: &'static str,
    },
}

/// A tree with the changes in it.
#[derive(Debug)]
pub struct Edited {
    /// Its root.
    pub tree: ObjectId,
    /// Blobs and trees that are new.
    pub objects: Vec<Object>,
}

/// Changes files of the commit in the pack.
///
/// A file that is given bytes keeps its mode; a new one is not executable. Folders appear with their first file and go with their last.
///
/// # Errors
/// When a folder on the way cannot be read, or a path leads to something else than a file.
pub fn edit(pack: &Pack, changes: Changes) -> Result<Edited, Error> {
    edit_root(Some(pack), changes)
}

/// Makes the tree of a first commit, which holds these files only.
///
/// # Errors
/// When a path is not valid.
pub fn create(files: Changes) -> Result<Edited, Error> {
    edit_root(None, files)
}

fn edit_root(pack: Option<&Pack>, changes: Changes) -> Result<Edited, Error> {
    for path in changes.keys() {
        if !path.split('/').all(is_safe) {
            return Err(Error::RefusePath(path.clone()));
        }
    }
    let mut objects = Vec::new();
    let changes = changes.into_iter().collect();
    let root = edit_folder(pack, pack.map(Pack::tree), "", changes, &mut objects)?;
    let tree = match root {
        Some(tree) => tree,
        None => add(Kind::Tree, Vec::new(), &mut objects)?,
    };
    Ok(Edited { tree, objects })
}

/// One entry of a folder.
struct Entry {
    mode: EntryMode,
    id: ObjectId,
}

/// Changes below one folder, sorted; the paths begin with the name of an entry of it.
type Below = Vec<(String, Option<Content>)>;

/// Makes the folder anew; None when nothing is left in it.
fn edit_folder(
    pack: Option<&Pack>,
    folder: Option<ObjectId>,
    at: &str,
    changes: Below,
    objects: &mut Vec<Object>,
) -> Result<Option<ObjectId>, Error> {
    let mut entries = match (pack, folder) {
        (Some(pack), Some(folder)) => read(pack, folder)?,
        _ => BTreeMap::new(),
    };
    for (name, below) in by_first_name(changes) {
        let path = if at.is_empty() {
            name.clone()
        } else {
            format!("{at}/{name}")
        };
        let key = BString::from(name);
        let found = entries.remove(&key);
        let changed = match below {
            Change::File(content) => edit_file(&path, found, content, objects)?,
            Change::Folder(below) => {
                let folder = match found {
                    Some(Entry { mode, id }) if mode.is_tree() => Some(id),
                    Some(Entry { mode, .. }) => return Err(not_a_folder(path, mode)),
                    None => None,
                };
                let mode = EntryKind::Tree.into();
                edit_folder(pack, folder, &path, below, objects)?.map(|id| Entry { mode, id })
            }
        };
        if let Some(entry) = changed {
            entries.insert(key, entry);
        }
    }
    if entries.is_empty() {
        return Ok(None);
    }
    add(Kind::Tree, written(&entries), objects).map(Some)
}

fn edit_file(
    path: &str,
    found: Option<Entry>,
    content: Option<Content>,
    objects: &mut Vec<Object>,
) -> Result<Option<Entry>, Error> {
    let mode = match &found {
        Some(Entry { mode, .. }) if mode.is_blob() => *mode,
        Some(Entry { mode, .. }) => {
            return Err(Error::NotAFile {
                path: path.to_owned(),
                found: kind_of(*mode),
            });
        }
        None => EntryKind::Blob.into(),
    };
    Ok(match content {
        None => None,
        Some(Content::Bytes(bytes)) => {
            let id = add(Kind::Blob, bytes, objects)?;
            Some(Entry { mode, id })
        }
        Some(Content::Stored { id, executable }) => {
            let kind = if executable {
                EntryKind::BlobExecutable
            } else {
                EntryKind::Blob
            };
            let mode = kind.into();
            Some(Entry { mode, id })
        }
    })
}

fn add(kind: Kind, content: Vec<u8>, objects: &mut Vec<Object>) -> Result<ObjectId, Error> {
    let object = Object::new(kind, content)?;
    let id = object.id();
    if !objects.iter().any(|known| known.id() == id) {
        objects.push(object);
    }
    Ok(id)
}

/// Changes to one entry of a folder.
enum Change {
    File(Option<Content>),
    Folder(Below),
}

fn by_first_name(changes: Below) -> BTreeMap<String, Change> {
    let mut by_name = BTreeMap::new();
    for (path, content) in changes {
        match path.split_once('/') {
            None => {
                by_name.insert(path, Change::File(content));
            }
            Some((name, rest)) => {
                let below = (rest.to_owned(), content);
                match by_name
                    .entry(name.to_owned())
                    .or_insert(Change::Folder(Vec::new()))
                {
                    Change::Folder(all) => all.push(below),
                    // A file and what lies below it: the longer path comes later and is the one that can stay.
                    file => *file = Change::Folder(vec![below]),
                }
            }
        }
    }
    by_name
}

fn read(pack: &Pack, folder: ObjectId) -> Result<BTreeMap<BString, Entry>, Error> {
    let mut bytes = Vec::new();
    pack.read(folder, Kind::Tree, MAX_META_BYTES, &mut bytes)?;
    let mut entries = BTreeMap::new();
    for entry in TreeRefIter::from_bytes(&bytes, SHA1) {
        let entry = entry.map_err(|error| pack::Error::ReadObject {
            id: folder,
            problem: error_chain::chain(&error),
        })?;
        let (mode, id) = (entry.mode, entry.oid.to_owned());
        entries.insert(entry.filename.to_owned(), Entry { mode, id });
    }
    Ok(entries)
}

/// The bytes of a tree. Git sorts a folder as if its name ended in `/`.
fn written(entries: &BTreeMap<BString, Entry>) -> Vec<u8> {
    let mut tree = TreeRef {
        entries: entries
            .iter()
            .map(|(name, Entry { mode, id })| gix::objs::tree::EntryRef {
                mode: *mode,
                filename: name.as_ref(),
                oid: id,
            })
            .collect(),
    };
    tree.entries.sort();
    let mut bytes = Vec::new();
    for entry in tree.entries {
        let mut buffer = [0; 6];
        bytes.extend_from_slice(entry.mode.as_bytes(&mut buffer));
        bytes.push(b' ');
        bytes.extend_from_slice(entry.filename);
        bytes.push(0);
        bytes.extend_from_slice(entry.oid.as_bytes());
    }
    bytes
}

fn not_a_folder(path: String, mode: EntryMode) -> Error {
    let found = if mode.is_blob() {
        "a file with something below it"
    } else {
        kind_of(mode)
    };
    Error::NotAFile { path, found }
}

fn kind_of(mode: EntryMode) -> &'static str {
    match mode.kind() {
        EntryKind::Tree => "a folder",
        EntryKind::Blob | EntryKind::BlobExecutable => "a file",
        EntryKind::Link => "a symbolic link",
        EntryKind::Commit => "a submodule",
    }
}
