//! The trees that a build reads from.
//!
//! Paths are slash-separated, relative to the root, normalised, and never leave the root; the root itself is the
//! empty path. Implementations answer questions and keep no state of a build.

mod directory;
mod memory;
mod overlay;

pub use directory::DirectoryFs;
pub use memory::MemoryFs;
pub use overlay::OverlayFs;

/// A tree of files.
pub trait FileSystem {
    /// Reads a file whole.
    fn read(&self, path: &str) -> Result<Vec<u8>, FsError>;

    /// Says what is at a path; None when nothing is there.
    fn kind(&self, path: &str) -> Result<Option<FileKind>, FsError>;

    /// Finds where a path leads when symbolic links are followed, and what is there. Paths of a kustomization are
    /// relative to where it really is. A tree without links need not implement it.
    fn locate(&self, path: &str) -> Result<Option<(String, FileKind)>, FsError> {
        Ok(self.kind(path)?.map(|kind| (path.to_owned(), kind)))
    }

    /// Lists a folder, in order of names.
    fn list(&self, path: &str) -> Result<Vec<DirEntry>, FsError>;
}

/// Type of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Directory,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DirEntry {
    /// The entry's name, without its folder.
    pub name: String,
    /// Its type.
    pub kind: FileKind,
}

impl PartialOrd for FileKind {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FileKind {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (*self as u8).cmp(&(*other as u8))
    }
}

/// Why a tree did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FsError {
    /// Nothing is at the path.
    #[error("no such file or directory")]
    NotFound,
    /// The path leads out of the tree, for example through a symbolic link.
    #[error("the path leads out of the tree")]
    OutsideRoot,
    /// The file is larger than the tree allows.
    #[error("the file is larger than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: u64,
    },
    /// Something else.
    #[error("failed to read from the file system: {0}")]
    Io(String),
}
