//! A folder of the machine's file system as a tree that nothing can leave.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{DirEntry, FileKind, FileSystem, FsError};

/// The most that one file may have. Larger ones are data, not manifests; kustomize would hold them several times over.
const FILE_LIMIT: u64 = 64 << 20;

/// A folder on disk. Symbolic links are followed as long as they stay inside.
#[derive(Clone, Debug)]
pub struct DirectoryFs {
    root: PathBuf,
}

impl DirectoryFs {
    /// Opens a folder as a tree.
    pub fn new(root: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self {
            root: root.as_ref().canonicalize()?,
        })
    }

    fn join(&self, path: &str) -> Result<PathBuf, FsError> {
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Err(FsError::OutsideRoot);
        }
        Ok(self.root.join(path))
    }

    /// Finds a place that can be opened: links need no second look when nothing is outside.
    fn place(&self, path: &str) -> Result<PathBuf, FsError> {
        if self.root == Path::new("/") {
            self.join(path)
        } else {
            self.resolve(path)
        }
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, FsError> {
        let resolved = self.join(path)?.canonicalize().map_err(|error| of_io(&error))?;
        if resolved.starts_with(&self.root) {
            Ok(resolved)
        } else {
            Err(FsError::OutsideRoot)
        }
    }
}

fn kind_of(resolved: &Path) -> Result<Option<FileKind>, FsError> {
    let kind = fs::metadata(resolved).map_err(|error| of_io(&error))?.file_type();
    Ok(if kind.is_dir() {
        Some(FileKind::Directory)
    } else {
        // Sockets and devices are not part of a tree.
        kind.is_file().then_some(FileKind::File)
    })
}

fn of_io(error: &io::Error) -> FsError {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FsError::NotFound,
        _ => FsError::Io(error.to_string()),
    }
}

impl FileSystem for DirectoryFs {
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError> {
        let file = fs::File::open(self.place(path)?).map_err(|error| of_io(&error))?;
        // With room for all of it and one byte for the end, one look is enough.
        let size = file.metadata().map_or(0, |found| found.len().min(FILE_LIMIT));
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        file.take(FILE_LIMIT + 1)
            .read_to_end(&mut content)
            .map_err(|error| of_io(&error))?;
        if content.len() as u64 > FILE_LIMIT {
            return Err(FsError::TooLarge { limit: FILE_LIMIT });
        }
        Ok(content)
    }

    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError> {
        let answer = self.place(path).and_then(|place| kind_of(&place));
        match answer {
            Err(FsError::NotFound) => Ok(None),
            answer => answer,
        }
    }

    fn locate(&self, path: &str) -> Result<Option<(String, FileKind)>, FsError> {
        let resolved = match self.resolve(path) {
            Err(FsError::NotFound) => return Ok(None),
            answer => answer?,
        };
        let found = resolved
            .strip_prefix(&self.root)
            .map_err(|_| FsError::OutsideRoot)?;
        let found = found
            .to_str()
            .ok_or_else(|| FsError::Io("the path is not UTF-8".to_owned()))?;
        Ok(kind_of(&resolved)?.map(|kind| (found.to_owned(), kind)))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.place(path)?).map_err(|error| of_io(&error))? {
            let entry = entry.map_err(|error| of_io(&error))?;
            let Ok(name) = entry.file_name().into_string() else {
                continue;
            };
            let below = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}/{name}")
            };
            match self.kind(&below) {
                Ok(Some(kind)) => entries.push(DirEntry { name, kind }),
                Ok(None) | Err(FsError::OutsideRoot) => {}
                Err(error) => return Err(error),
            }
        }
        entries.sort();
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_folder_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(folder.path().join("secret"), "x").unwrap();
        fs::write(root.join("a/f"), "inside").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("out")).unwrap();
        std::os::unix::fs::symlink("a/f", root.join("in")).unwrap();
        let tree = DirectoryFs::new(&root).unwrap();
        assert_eq!(tree.read("in"), Ok(b"inside".to_vec()));
        assert_eq!(tree.read("out"), Err(FsError::OutsideRoot));
        assert_eq!(tree.read("../secret"), Err(FsError::OutsideRoot));
        assert_eq!(tree.kind("nothing"), Ok(None));
        assert_eq!(tree.kind("a/f/g"), Ok(None));
        let names: Vec<String> = tree.list("").unwrap().into_iter().map(|e| e.name).collect();
        assert_eq!(names, ["a", "in"]);
    }
}
