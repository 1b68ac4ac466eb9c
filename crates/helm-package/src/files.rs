//! The files of a source, as this crate sees them: a tree of folders and regular files, without links.
//!
//! Paths are joined as if the tree were the whole file system: `..` above the root stays at the root, so that no path leaves
//! it, whatever a chart or a spec says.

use std::io::{self, Read};

/// Type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A file of so many bytes.
    File(u64),
    /// A folder.
    Folder,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in the folder.
    pub name: String,
    /// Its type.
    pub what: What,
}

/// The tree that a chart is taken from. Paths are those that [`within`] returns; the empty one is the root.
pub trait Files {
    /// Returns the type of the file at a path; None for nothing.
    ///
    /// # Errors
    /// When that cannot be found out.
    fn what(&self, path: &str) -> io::Result<Option<What>>;

    /// The entries of a folder, in byte order of their names.
    ///
    /// # Errors
    /// When they cannot be read.
    fn entries(&self, folder: &str) -> io::Result<Vec<Entry>>;

    /// The bytes of a file.
    ///
    /// # Errors
    /// When they cannot be read.
    fn open(&self, path: &str) -> io::Result<Box<dyn Read + '_>>;
}

/// The path of what stands at `path` seen from `folder`. It never leaves the root.
pub fn within(folder: &str, path: &str) -> String {
    clean(&format!("{folder}/{path}"))
}

/// A path without `.`, `..`, empty parts, or a slash at its ends.
pub(crate) fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Reads a file of no more than `limit` bytes.
pub(crate) fn read(files: &dyn Files, path: &str, limit: u64) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    files.open(path)?.take(limit + 1).read_to_end(&mut data)?;
    if data.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("size of '{path}' exceeds '{limit}' bytes limit"),
        ));
    }
    Ok(data)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Files in memory.
    #[derive(Default)]
    pub(crate) struct Memory(pub(crate) BTreeMap<String, Vec<u8>>);

    impl Memory {
        pub(crate) fn new(files: &[(&str, &str)]) -> Self {
            let files = files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), (*text).into()));
            Self(files.collect())
        }
    }

    impl Files for Memory {
        fn what(&self, path: &str) -> io::Result<Option<What>> {
            if let Some(data) = self.0.get(path) {
                return Ok(Some(What::File(data.len() as u64)));
            }
            let is_folder = path.is_empty() || self.0.keys().any(|key| key.starts_with(&format!("{path}/")));
            Ok(is_folder.then_some(What::Folder))
        }

        fn entries(&self, folder: &str) -> io::Result<Vec<Entry>> {
            let prefix = if folder.is_empty() {
                String::new()
            } else {
                format!("{folder}/")
            };
            let below = self
                .0
                .iter()
                .filter_map(|(path, data)| Some((path.strip_prefix(&prefix)?, data)));
            let mut entries: Vec<Entry> = below
                .map(|(path, data)| match path.split_once('/') {
                    Some((name, _)) => Entry {
                        name: name.to_owned(),
                        what: What::Folder,
                    },
                    None => Entry {
                        name: path.to_owned(),
                        what: What::File(data.len() as u64),
                    },
                })
                .collect();
            entries.dedup();
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(entries)
        }

        fn open(&self, path: &str) -> io::Result<Box<dyn Read + '_>> {
            let data = self.0.get(path).ok_or(io::ErrorKind::NotFound)?;
            Ok(Box::new(data.as_slice()))
        }
    }

    #[test]
    fn no_path_leaves_the_root() {
        let cases = [
            ("charts/app", "../common", "charts/common"),
            ("charts/app", "../../../etc/passwd", "etc/passwd"),
            ("", "./a//b/", "a/b"),
            ("a", "/b", "a/b"),
            ("a", "..", ""),
        ];
        for (folder, path, expected) in cases {
            assert_eq!(within(folder, path), expected, "{folder} {path}");
        }
    }

    #[test]
    fn a_file_that_is_larger_than_it_said_is_refused() {
        let files = Memory::new(&[("a", "12345")]);
        assert_eq!(read(&files, "a", 5).unwrap(), b"12345");
        let error = read(&files, "a", 4).unwrap_err().to_string();
        assert_eq!(error, "size of 'a' exceeds '4' bytes limit");
    }
}
