//! The artifact in the making: paths and digests in memory, with the rules of a file system.
//!
//! Copy operations were defined by what `cp` does to a folder on disk: a folder is made with its parents, a file takes the
//! place of a file and never that of a folder, and nothing leads out of the artifact.

use std::collections::BTreeMap;

use artifact::Digest;

/// Files and folders of one artifact, as in archives.
const MAX_ENTRIES: usize = 100_000;
/// Deeper paths cannot stand in a tree.
const MAX_DEPTH: usize = 128;

/// Why something cannot be put where it should go.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    #[error("'{0}' escapes from the artifact")]
    Escapes(String),
    #[error("'{0}' is a directory")]
    IsFolder(String),
    #[error("'{0}': not a directory")]
    NotFolder(String),
    #[error("'{0}' is deeper than {MAX_DEPTH} directories")]
    Depth(String),
    #[error("more than {MAX_ENTRIES} files and directories in one artifact")]
    TooMany,
}

/// A file by its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct File {
    pub(super) executable: bool,
    pub(super) digest: Digest,
    pub(super) size: u64,
}

/// Entry at a path.
#[derive(Debug)]
pub(super) enum Node {
    File(File),
    Folder(Folder),
}

#[derive(Debug, Default)]
pub(super) struct Folder(BTreeMap<String, Node>);

/// All that the copy operations have made so far.
#[derive(Debug, Default)]
pub(super) struct Stage {
    root: Folder,
    entries: usize,
}

impl Stage {
    /// Returns the file at a path; the root is a folder and is answered by `is_folder` only.
    pub(super) fn file(&self, path: &str) -> Option<File> {
        match self.node(path)? {
            Node::File(file) => Some(*file),
            Node::Folder(_) => None,
        }
    }

    pub(super) fn is_folder(&self, path: &str) -> bool {
        path == "." || matches!(self.node(path), Some(Node::Folder(_)))
    }

    fn node(&self, path: &str) -> Option<&Node> {
        let mut names = path.split('/').peekable();
        let mut folder = &self.root;
        loop {
            let node = folder.0.get(names.next()?)?;
            if names.peek().is_none() {
                return Some(node);
            }
            match node {
                Node::Folder(below) => folder = below,
                Node::File(_) => return None,
            }
        }
    }

    /// Makes a folder and those above it. A file at the path itself is left alone, as source-watcher does.
    pub(super) fn make_folder(&mut self, path: &str) -> Result<(), Error> {
        if self.file(path).is_some() {
            return Ok(());
        }
        self.descend(path).map(drop)
    }

    /// Puts a file at a clean path.
    pub(super) fn put(&mut self, path: &str, file: File) -> Result<(), Error> {
        if self.is_folder(path) {
            return Err(Error::IsFolder(path.to_owned()));
        }
        let (above, name) = path.rsplit_once('/').unwrap_or((".", path));
        let folder = self.descend(above)?;
        let is_new = folder.0.insert(name.to_owned(), Node::File(file)).is_none();
        self.count(usize::from(is_new))
    }

    fn descend(&mut self, path: &str) -> Result<&mut Folder, Error> {
        if path.split('/').count() > MAX_DEPTH {
            return Err(Error::Depth(path.chars().take(80).collect()));
        }
        let mut made = 0;
        let mut folder = &mut self.root;
        for name in path.split('/').filter(|name| *name != ".") {
            let node = folder.0.entry(name.to_owned()).or_insert_with(|| {
                made += 1;
                Node::Folder(Folder::default())
            });
            match node {
                Node::Folder(below) => folder = below,
                Node::File(_) => return Err(Error::NotFolder(path.to_owned())),
            }
        }
        self.entries += made;
        if self.entries > MAX_ENTRIES {
            return Err(Error::TooMany);
        }
        Ok(folder)
    }

    fn count(&mut self, made: usize) -> Result<(), Error> {
        self.entries += made;
        if self.entries > MAX_ENTRIES {
            return Err(Error::TooMany);
        }
        Ok(())
    }

    /// All folders and files with their paths, each folder before what is in it. A folder has no file.
    pub(super) fn entries(&self) -> Vec<(String, Option<File>)> {
        let mut all = Vec::with_capacity(self.entries);
        collect(&self.root, "", &mut all);
        all
    }
}

fn collect(folder: &Folder, path: &str, all: &mut Vec<(String, Option<File>)>) {
    for (name, node) in &folder.0 {
        let path = super::source::joined(path, name);
        match node {
            Node::File(file) => all.push((path, Some(*file))),
            Node::Folder(below) => {
                all.push((path.clone(), None));
                collect(below, &path, all);
            }
        }
    }
}

/// A path as Go's path.Clean has it, if it does not lead out: no `.` and `..`, no doubled slashes; "." for nothing.
pub(super) fn clean(path: &str) -> Result<String, Error> {
    let escapes = || Error::Escapes(path.chars().take(200).collect());
    if path.starts_with('/') {
        return Err(escapes());
    }
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop().ok_or_else(escapes)?;
            }
            name => names.push(name),
        }
    }
    Ok(if names.is_empty() {
        ".".to_owned()
    } else {
        names.join("/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> File {
        File {
            executable: false,
            digest: Digest::from_content(text.as_bytes()),
            size: text.len() as u64,
        }
    }

    #[test]
    fn files_replace_files_and_never_folders() {
        let mut stage = Stage::default();
        stage.put("a/b", file("1")).unwrap();
        stage.put("a/b", file("2")).unwrap();
        assert_eq!(stage.file("a/b"), Some(file("2")));
        assert_eq!(stage.put("a", file("x")), Err(Error::IsFolder("a".to_owned())));
        assert_eq!(
            stage.put("a/b/c", file("x")),
            Err(Error::NotFolder("a/b".to_owned()))
        );
        assert_eq!(stage.make_folder("a/b"), Ok(()));
        assert!(stage.make_folder("a/b/c/d").is_err());
        stage.make_folder("e/f").unwrap();
        let paths: Vec<_> = stage.entries().into_iter().map(|(path, _)| path).collect();
        assert_eq!(paths, ["a", "a/b", "e", "e/f"]);
    }

    #[test]
    fn no_path_leads_out() {
        for (path, expected) in [
            ("a/../b", "b"),
            ("", "."),
            ("./", "."),
            ("a//b/", "a/b"),
            ("...", "..."),
        ] {
            assert_eq!(clean(path).as_deref(), Ok(expected));
        }
        for path in ["..", "../a", "a/../../b", "/etc", "//a"] {
            assert!(clean(path).is_err(), "{path}");
        }
    }

    #[test]
    fn an_artifact_has_a_bounded_number_of_entries() {
        let mut stage = Stage::default();
        let failed = (0..=MAX_ENTRIES).find_map(|index| stage.put(&format!("f{index}"), file("")).err());
        assert_eq!(failed, Some(Error::TooMany));
        assert!(matches!(
            stage.put(&"a/".repeat(200), file("")),
            Err(Error::Depth(_) | Error::TooMany)
        ));
    }
}
