//! A commit as a tree of files.

use git_client::pack::{Error, Node, Pack};
use kustomize_build::{DirEntry, FileKind, FileSystem, FsError};

/// No file that a build reads is larger.
const MAX_FILE: u64 = 32 << 20;
/// So many links may one path lead over, as on Linux.
const MAX_LINKS: usize = 40;

/// The files of a commit, read from its pack. Links are followed within the repository.
pub(crate) struct RepositoryTree {
    pack: Pack,
}

impl RepositoryTree {
    pub(crate) fn new(pack: Pack) -> Self {
        Self { pack }
    }

    fn node(&self, path: &str) -> Result<Option<Node>, FsError> {
        if path.is_empty() {
            return Ok(Some(Node::Directory));
        }
        let entry = self.pack.entry(path).map_err(|error| io(&error))?;
        Ok(entry.map(|(node, _)| node))
    }

    fn content(&self, path: &str) -> Result<Vec<u8>, FsError> {
        let entry = self.pack.entry(path).map_err(|error| io(&error))?;
        let (_, id) = entry.ok_or(FsError::NotFound)?;
        let mut bytes = Vec::new();
        self.pack
            .read_blob(id, MAX_FILE, &mut bytes)
            .map_err(|error| io(&error))?;
        Ok(bytes)
    }

    /// Follows the links on the way to a path; None if nothing is there.
    fn resolve(&self, path: &str) -> Result<Option<(String, Node)>, FsError> {
        let mut rest: Vec<String> = path.split('/').rev().map(str::to_owned).collect();
        let mut found: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    found.pop().ok_or(FsError::OutsideRoot)?;
                    continue;
                }
                _ => found.push(name),
            }
            let here = found.join("/");
            match self.node(&here)? {
                None => return Ok(None),
                Some(Node::Symlink) => {
                    links += 1;
                    let target = self.content(&here)?;
                    let target = String::from_utf8_lossy(&target).into_owned();
                    if target.starts_with('/') || links > MAX_LINKS {
                        return Err(FsError::OutsideRoot);
                    }
                    found.pop();
                    rest.extend(target.split('/').rev().map(str::to_owned));
                }
                Some(Node::Submodule) => return Err(submodule(&here)),
                Some(_) => {}
            }
        }
        let found = found.join("/");
        Ok(self.node(&found)?.map(|node| (found, node)))
    }
}

fn io(error: &Error) -> FsError {
    FsError::Io(error_chain::chain(error))
}

fn kind(node: Node) -> Option<FileKind> {
    match node {
        Node::Directory => Some(FileKind::Directory),
        Node::File { .. } => Some(FileKind::File),
        Node::Symlink | Node::Submodule => None,
    }
}

fn submodule(path: &str) -> FsError {
    FsError::Io(format!(
        "{path} is a submodule, which is not fetched for a remote base"
    ))
}

impl FileSystem for RepositoryTree {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        match self.resolve(path)? {
            Some((found, Node::File { .. })) => self.content(&found),
            Some(_) => Err(FsError::Io("is a directory".to_owned())),
            None => Err(FsError::NotFound),
        }
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        Ok(self.locate(path)?.map(|(_, kind)| kind))
    }

    fn locate(&self, path: &str) -> Result<Option<(String, FileKind)>, FsError> {
        let Some((found, node)) = self.resolve(path)? else {
            return Ok(None);
        };
        Ok(kind(node).map(|kind| (found, kind)))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        let (found, _) = self.resolve(path)?.ok_or(FsError::NotFound)?;
        let listed = self.pack.list(&found).map_err(|error| io(&error))?;
        let mut entries = Vec::new();
        for (name, node) in listed.ok_or(FsError::NotFound)? {
            let below = match found.as_str() {
                "" => name.clone(),
                folder => format!("{folder}/{name}"),
            };
            let node = match node {
                // A link that leads nowhere is as good as none.
                Node::Symlink => self.resolve(&below).ok().flatten().map(|(_, node)| node),
                node => Some(node),
            };
            if let Some(kind) = node.and_then(kind) {
                entries.push(DirEntry { name, kind });
            }
        }
        entries.sort();
        Ok(entries)
    }
}
