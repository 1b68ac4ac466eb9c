//! Trees of files as canonical text, so that a folder's digest covers all that is below it.
//!
//! Every folder is a text with one line per entry, in byte order of the names:
//!
//! ```text
//! <kind> <digest> <size> <name>
//! ```
//!
//! with kind `f` (file), `x` (executable file) or `d` (folder), the digest with its `sha256:`, and the size in
//! decimal (bytes of a file, 0 for a folder). The digest of a folder is the digest of this text; it is the wire
//! format of proto/windlass/artifact/v1 too, so it cannot change.
//!
//! [`Builder`] turns a flat list of files into a [`Tree`]. Content of files is not here, only its digests.

mod builder;
mod path;

use std::collections::HashMap;

pub use self::{
    builder::{BuildError, Builder},
    path::{PathError, clean_path},
};
use crate::digest::Digest;

/// Type of a folder's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// A file.
    File,
    /// A file with an execute bit.
    Executable,
    /// A folder.
    Directory,
}

/// One entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its type.
    pub kind: EntryKind,
    /// Name within the folder.
    pub name: String,
    /// Digest of the file's bytes, or of the folder's canonical text.
    pub digest: Digest,
    /// Bytes of a file; 0 for a folder.
    pub size: u64,
}

/// One folder: entries in byte order of their names, each name once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directory {
    entries: Vec<Entry>,
}

/// A folder with all folders below it, by digest. Folders with equal content are there once.
#[derive(Debug, Clone)]
pub struct Tree {
    root: Digest,
    directories: HashMap<Digest, Directory>,
}

/// Why something is not a folder.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A line of the canonical text does not have the four parts.
    #[error("failed to parse line {line} of a folder")]
    ParseLine {
        /// Counted from 1.
        line: usize,
    },
    /// The name cannot stand in a folder.
    #[error("failed to accept the name {name:?} in a folder")]
    Name {
        /// The refused name.
        name: String,
    },
    /// Names are not in strictly ascending byte order.
    #[error("failed to accept a folder: {name:?} is out of order or twice there")]
    Order {
        /// The first name that is not greater than the one before it.
        name: String,
    },
    /// A folder's size is not 0.
    #[error("failed to accept a folder: its folder {name:?} has a size")]
    Size {
        /// The entry with the size.
        name: String,
    },
}

impl EntryKind {
    /// Returns whether the entry is a folder.
    #[must_use]
    pub fn is_directory(self) -> bool {
        self == Self::Directory
    }

    /// The kind of a file.
    #[must_use]
    pub fn of_file(executable: bool) -> Self {
        if executable { Self::Executable } else { Self::File }
    }

    fn letter(self) -> char {
        match self {
            Self::File => 'f',
            Self::Executable => 'x',
            Self::Directory => 'd',
        }
    }

    fn from_letter(letter: &str) -> Option<Self> {
        match letter {
            "f" => Some(Self::File),
            "x" => Some(Self::Executable),
            "d" => Some(Self::Directory),
            _ => None,
        }
    }
}

impl Directory {
    /// A folder of these entries, which come from outside and are checked.
    ///
    /// # Errors
    /// When names are not in strictly ascending byte order, a name is no file name, or a folder has a size.
    pub fn new(entries: Vec<Entry>) -> Result<Self, Error> {
        for entry in &entries {
            if !path::is_name(&entry.name) {
                return Err(Error::Name {
                    name: entry.name.clone(),
                });
            }
            if entry.kind.is_directory() && entry.size != 0 {
                return Err(Error::Size {
                    name: entry.name.clone(),
                });
            }
        }
        for pair in entries.windows(2) {
            if pair[0].name.as_bytes() >= pair[1].name.as_bytes() {
                return Err(Error::Order {
                    name: pair[1].name.clone(),
                });
            }
        }
        Ok(Self { entries })
    }

    /// Reads the canonical text.
    ///
    /// # Errors
    /// When it is not the canonical text of any folder.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let lines = text.split_terminator('\n').enumerate();
        let entries: Result<Vec<Entry>, Error> = lines
            .map(|(index, line)| parse_line(line).ok_or(Error::ParseLine { line: index + 1 }))
            .collect();
        let directory = Self::new(entries?)?;
        if directory.canonical_text() != text {
            // For example a missing last newline, or a size with leading zeros.
            return Err(Error::ParseLine {
                line: directory.entries.len(),
            });
        }
        Ok(directory)
    }

    /// The text that the digest is made of.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        let line = |entry: &Entry| {
            format!(
                "{} {} {} {}\n",
                entry.kind.letter(),
                entry.digest,
                entry.size,
                entry.name
            )
        };
        self.entries.iter().map(line).collect()
    }

    /// The digest of the canonical text.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::from_content(self.canonical_text().as_bytes())
    }

    /// The entries, in byte order of their names.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry of this name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        let found = self
            .entries
            .binary_search_by(|entry| entry.name.as_bytes().cmp(name.as_bytes()));
        found.ok().map(|index| &self.entries[index])
    }
}

impl Tree {
    /// The digest of the root folder.
    #[must_use]
    pub fn root(&self) -> Digest {
        self.root
    }

    /// The folder of this digest, if it is the root or below it.
    #[must_use]
    pub fn directory(&self, digest: &Digest) -> Option<&Directory> {
        self.directories.get(digest)
    }

    /// The entry at a path (see [`clean_path`]). None for the root, which is no entry of anything.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        let path = clean_path(path).ok()?;
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
        self.folder(folder)?.entry(name)
    }

    /// The folder at a path; the empty path is the root.
    #[must_use]
    pub fn folder(&self, path: &str) -> Option<&Directory> {
        let path = clean_path(path).ok()?;
        let mut folder = self.directories.get(&self.root)?;
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let entry = folder.entry(name).filter(|entry| entry.kind.is_directory())?;
            folder = self.directories.get(&entry.digest)?;
        }
        Some(folder)
    }
}

fn parse_line(line: &str) -> Option<Entry> {
    let mut parts = line.splitn(4, ' ');
    let kind = EntryKind::from_letter(parts.next()?)?;
    let digest = parts.next()?.parse().ok()?;
    let size = parts.next()?.parse().ok()?;
    Some(Entry {
        kind,
        name: parts.next()?.to_owned(),
        digest,
        size,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kind: EntryKind, name: &str, size: u64) -> Entry {
        Entry {
            kind,
            name: name.to_owned(),
            digest: Digest::from_content(name.as_bytes()),
            size,
        }
    }

    #[test]
    fn a_folder_is_its_canonical_text() {
        let entries = vec![
            entry(EntryKind::Directory, "B", 0),
            entry(EntryKind::Executable, "a b", 7),
            entry(EntryKind::File, "ä", 12),
        ];
        let directory = Directory::new(entries).unwrap();
        let text = format!(
            "d {} 0 B\nx {} 7 a b\nf {} 12 ä\n",
            Digest::from_content(b"B"),
            Digest::from_content(b"a b"),
            Digest::from_content("ä".as_bytes())
        );
        assert_eq!(directory.canonical_text(), text);
        assert_eq!(directory.digest(), Digest::from_content(text.as_bytes()));
        assert_eq!(Directory::parse(&text).unwrap(), directory);
        assert_eq!(directory.entry("a b").unwrap().size, 7);
        assert!(directory.entry("a").is_none());
        assert_eq!(Directory::parse("").unwrap().digest(), Digest::from_content(b""));
    }

    #[test]
    fn what_is_not_canonical_is_refused() {
        let digest = Digest::from_content(b"");
        let table = [
            (format!("f {digest} 1 a"), "line 1"),
            (format!("f {digest} 01 a\n"), "line 1"),
            (format!("f {digest} +1 a\n"), "line 1"),
            (format!("f {digest} -1 a\n"), "line 1"),
            (format!("q {digest} 1 a\n"), "line 1"),
            (format!("f {digest} 1 a\nf {digest} 1\n"), "line 2"),
            ("\n".to_owned(), "line 1"),
            (
                format!("f {digest} 1 b\nf {digest} 1 a\n"),
                "\"a\" is out of order",
            ),
            (
                format!("f {digest} 1 a\nd {digest} 0 a\n"),
                "\"a\" is out of order or twice",
            ),
            (format!("d {digest} 1 a\n"), "has a size"),
            (format!("f {digest} 1 ..\n"), "\"..\""),
            (format!("f {digest} 1 a/b\n"), "\"a/b\""),
            (format!("f {digest} 1 \n"), "\"\""),
        ];
        for (text, expected) in table {
            let error = Directory::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
