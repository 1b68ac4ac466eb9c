//! The store's folders: names of files, and writing them so that a crash leaves a whole file or none.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use super::error::{Error, Result, What};
use super::temporary::Temporary;
use crate::{
    digest::{Digest, Hasher},
    tree::Directory,
};

/// Records are small; a greater file is none.
const MAX_RECORD_BYTES: u64 = 1024 * 1024;
/// A folder of 100,000 files with long names.
const MAX_DIRECTORY_BYTES: u64 = 64 * 1024 * 1024;

/// Files that are named by the digest of their content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Archive,
    Blob,
    Directory,
}

impl Kind {
    pub(super) const ALL: [Self; 3] = [Self::Archive, Self::Blob, Self::Directory];

    fn folder(self) -> &'static str {
        match self {
            Self::Archive => "archives",
            Self::Blob => "blobs",
            Self::Directory => "directories",
        }
    }

    fn suffix(self) -> &'static str {
        if self == Self::Archive { ".tar.gz" } else { "" }
    }

    fn what(self) -> What {
        match self {
            Self::Archive => What::Archive,
            Self::Blob => What::Blob,
            Self::Directory => What::Directory,
        }
    }
}

/// The folders of a store.
#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    /// Free space on the disk.
    #[cfg(test)]
    pub(super) room: super::temporary::Room,
}

/// The bytes of a blob or archive, from the offset that was asked for.
#[derive(Debug)]
pub struct Content {
    /// Bytes of the whole.
    pub size: u64,
    file: File,
}

impl Content {
    /// The open file, at the offset. It stays readable when the store forgets the content.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read(buffer)
    }
}

impl Files {
    /// Creates the folders that are missing and deletes temporary files, whose number it returns.
    pub(super) fn prepare(root: &Path) -> Result<(Self, usize)> {
        let files = Self {
            root: root.to_owned(),
            #[cfg(test)]
            room: super::temporary::Room::default(),
        };
        let folders = Kind::ALL
            .iter()
            .map(|kind| kind.folder())
            .chain(["records", "temporary"]);
        for folder in folders {
            fs::create_dir_all(root.join(folder)).map_err(Error::io("create a folder"))?;
        }
        sync_folder(root)?;
        let mut swept = 0;
        for path in list(&root.join("temporary"))? {
            fs::remove_file(path).map_err(Error::io("delete a temporary file"))?;
            swept += 1;
        }
        Ok((files, swept))
    }

    /// The folder of all folders.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// A new file to write to. It is deleted when it is dropped without being put in its place.
    pub(super) fn temporary(&self) -> Result<Temporary> {
        let folder = self.root.join("temporary");
        let created = Temporary::create(
            &folder,
            #[cfg(test)]
            &self.room,
        );
        created.map_err(Error::io("create a temporary file"))
    }

    /// Renames a written file to its place; an equal file there is replaced by it.
    pub(super) fn place(&self, file: Temporary, kind: Kind, digest: &Digest) -> Result<()> {
        file.place(&self.path(kind, digest))
            .map_err(Error::io("rename a file"))
    }

    /// Makes the renames into the folder of the kind durable.
    pub(super) fn sync(&self, kind: Kind) -> Result<()> {
        sync_folder(&self.root.join(kind.folder()))
    }

    pub(super) fn content(&self, kind: Kind, digest: &Digest, offset: u64) -> Result<Content> {
        let what = kind.what();
        let mut file = match File::open(self.path(kind, digest)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NotFound {
                    what,
                    digest: *digest,
                });
            }
            Err(error) => return Err(Error::io("open a file")(error)),
        };
        let size = file.metadata().map_err(Error::io("read a file"))?.len();
        if offset > size {
            return Err(Error::Offset {
                what,
                digest: *digest,
                offset,
                size,
            });
        }
        if offset > 0 {
            file.seek(SeekFrom::Start(offset))
                .map_err(Error::io("read a file"))?;
        }
        Ok(Content { size, file })
    }

    pub(super) fn directory(&self, digest: &Digest) -> Result<Directory> {
        let content = self.content(Kind::Directory, digest, 0)?;
        let corrupt = || Error::Corrupt {
            what: What::Directory,
            digest: *digest,
        };
        if content.size > MAX_DIRECTORY_BYTES {
            return Err(corrupt());
        }
        let mut text = Vec::new();
        content
            .take(MAX_DIRECTORY_BYTES)
            .read_to_end(&mut text)
            .map_err(Error::io("read a file"))?;
        if Digest::from_content(&text) != *digest {
            return Err(corrupt());
        }
        let text = String::from_utf8(text).map_err(|_| corrupt())?;
        Directory::parse(&text).map_err(|_| corrupt())
    }

    /// Returns whether the file is there with this size and content. Reads it whole.
    pub(super) fn is_intact(&self, kind: Kind, digest: &Digest, size: u64) -> Result<bool> {
        let mut content = match self.content(kind, digest, 0) {
            Ok(content) => content,
            Err(Error::NotFound { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        if content.size != size {
            return Ok(false);
        }
        let mut hasher = Hasher::new();
        // An unreadable block is damage like any other.
        Ok(io::copy(&mut content, &mut hasher).is_ok() && hasher.finish() == *digest)
    }

    /// Deletes a file that no one needs. One that cannot be deleted is garbage until the next start.
    pub(super) fn remove(&self, kind: Kind, digest: &Digest) {
        if let Err(error) = fs::remove_file(self.path(kind, digest)) {
            tracing::warn!(%digest, %error, "failed to delete a file that no artifact needs");
        }
    }

    /// Deletes the files that `needed` does not want, and returns how many there were.
    pub(super) fn sweep(&self, needed: impl Fn(Kind, &Digest) -> bool) -> Result<usize> {
        let mut swept = 0;
        for kind in Kind::ALL {
            for path in list(&self.root.join(kind.folder()))? {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let digest = name
                    .strip_suffix(kind.suffix())
                    .and_then(|hex| Digest::from_hex(hex).ok());
                if !digest.is_some_and(|digest| needed(kind, &digest)) {
                    fs::remove_file(&path).map_err(Error::io("delete a file"))?;
                    swept += 1;
                }
            }
        }
        Ok(swept)
    }

    /// Writes a record and syncs it, but does not put it in its place yet.
    pub(super) fn write_record(&self, json: &[u8]) -> Result<Temporary> {
        let mut file = self.temporary()?;
        file.write_all(json).map_err(Error::io("write a record"))?;
        file.sync().map_err(Error::io("sync a record"))?;
        Ok(file)
    }

    pub(super) fn place_record(&self, file: Temporary, path: &str) -> Result<()> {
        file.place(&self.record_path(path))
            .map_err(Error::io("rename a record"))
    }

    pub(super) fn sync_records(&self) -> Result<()> {
        sync_folder(&self.root.join("records"))
    }

    pub(super) fn remove_record(&self, path: &str) -> Result<()> {
        remove_if_there(&self.record_path(path)).map_err(Error::io("delete a record"))
    }

    /// Name and text of each record's file; None for a text that is too long or cannot be read.
    pub(super) fn records(&self) -> Result<Vec<(PathBuf, Option<Vec<u8>>)>> {
        let read = |path: &Path| -> io::Result<Option<Vec<u8>>> {
            let mut text = Vec::new();
            File::open(path)?
                .take(MAX_RECORD_BYTES + 1)
                .read_to_end(&mut text)?;
            Ok((text.len() as u64 <= MAX_RECORD_BYTES).then_some(text))
        };
        let paths = list(&self.root.join("records"))?;
        Ok(paths
            .into_iter()
            .map(|path| (path.clone(), read(&path).ok().flatten()))
            .collect())
    }

    /// The file of the record of a path: paths are too long for names and need escaping, their digest is neither.
    pub(super) fn record_path(&self, path: &str) -> PathBuf {
        self.root
            .join("records")
            .join(Digest::from_content(path.as_bytes()).hex() + ".json")
    }

    fn path(&self, kind: Kind, digest: &Digest) -> PathBuf {
        self.root.join(kind.folder()).join(digest.hex() + kind.suffix())
    }
}

pub(super) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn sync_folder(folder: &Path) -> Result<()> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(Error::io("sync a folder"))
}

fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    Ok(entries
        .map_err(Error::io("list a folder"))?
        .iter()
        .map(fs::DirEntry::path)
        .collect())
}
