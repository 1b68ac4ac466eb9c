//! Writing the reproducible archive of a tree.
//!
//! The same tree gives the same bytes for ever: entries in the order of the tree, times 0, owner 0, modes 0600,
//! 0700 and 0750 as Flux sets them (files, executable files, folders), a gzip header without name and time, one
//! fixed compression level, and blocks of one fixed size for the compressor, because what it finds may depend
//! on how its input is cut. Like Flux's, the archive starts with the folder "." and has an entry for every folder.
//!
//! The compressor's version is part of the format: a test pins the digest of a known tree, and when an update
//! changes it, sources get a new artifact digest for unchanged content (which consumers survive: it is as if
//! each source had a new revision).

use std::{
    borrow::Cow,
    error::Error as StdError,
    io::{self, Read, Write},
};

use flate2::{Compression, GzBuilder, write::GzEncoder};
use tar::{EntryType, Header};

use crate::{
    digest::{Digest, Hasher},
    tree::{self, Directory, EntryKind},
};

const LEVEL: u32 = 6;
const BLOCK: usize = 64 * 1024;
const FILE_MODE: u32 = 0o600;
const EXECUTABLE_MODE: u32 = 0o700;
const DIRECTORY_MODE: u32 = 0o750;
/// The name field of a header; longer paths go to an extension record.
const NAME_FIELD: usize = 100;

/// Where the folders and blobs of a tree come from.
pub trait Content {
    /// Why something could not be given.
    type Error: StdError + Send + Sync + 'static;
    /// The bytes of a file.
    type Blob: Read;

    /// The folder of this digest.
    ///
    /// # Errors
    /// When it cannot be given.
    fn directory(&self, digest: &Digest) -> Result<Cow<'_, Directory>, Self::Error>;

    /// The file of this digest.
    ///
    /// # Errors
    /// When it cannot be given.
    fn blob(&self, digest: &Digest) -> Result<Self::Blob, Self::Error>;
}

/// Summary of a written archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Digest of the compressed archive.
    pub digest: Digest,
    /// Bytes of the compressed archive.
    pub size: u64,
}

/// Why an archive could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A folder or blob is not there.
    #[error("failed to get {path:?} of the tree")]
    Content {
        /// Path in the tree; empty for the root.
        path: String,
        /// Error of the content's reader.
        source: Box<dyn StdError + Send + Sync>,
    },
    /// The output, or the reader of a blob, failed.
    #[error("failed to write {path:?} to the archive")]
    Write {
        /// Path in the tree; empty for the root or the archive's end.
        path: String,
        /// Error of the writer or reader.
        source: io::Error,
    },
    /// A blob has more or fewer bytes than its entry says.
    #[error("failed to write {path:?} to the archive: {actual} bytes instead of {expected}")]
    Size {
        /// Path in the tree.
        path: String,
        /// Bytes according to the entry.
        expected: u64,
        /// Bytes that came.
        actual: u64,
    },
}

/// Writes the tree below `root` as tar.gz.
///
/// # Errors
/// When the content is not complete or the output fails. The output is then useless.
pub fn write<W: Write, C: Content>(output: W, root: &Digest, content: &C) -> Result<Written, Error> {
    let output = Digesting {
        inner: output,
        hasher: Hasher::new(),
        size: 0,
    };
    let gzip = GzBuilder::new().mtime(0).write(output, Compression::new(LEVEL));
    let mut tar = tar::Builder::new(Blocks {
        inner: gzip,
        pending: Vec::with_capacity(BLOCK),
    });
    append_directory(&mut tar, "")?;
    let mut open = vec![(String::new(), entries_of(content, "", root)?)];
    while let Some((folder, entries)) = open.last_mut() {
        let Some(entry) = entries.next() else {
            open.pop();
            continue;
        };
        let path = if folder.is_empty() {
            entry.name.clone()
        } else {
            format!("{folder}/{}", entry.name)
        };
        if entry.kind.is_directory() {
            append_directory(&mut tar, &path)?;
            let below = entries_of(content, &path, &entry.digest)?;
            open.push((path, below));
        } else {
            append_file(&mut tar, &path, &entry, content)?;
        }
    }
    finish(tar).map_err(|source| Error::Write {
        path: String::new(),
        source,
    })
}

type Tar<W> = tar::Builder<Blocks<GzEncoder<Digesting<W>>>>;

fn entries_of<C: Content>(
    content: &C,
    path: &str,
    digest: &Digest,
) -> Result<std::vec::IntoIter<tree::Entry>, Error> {
    let directory = content.directory(digest).map_err(|source| Error::Content {
        path: path.to_owned(),
        source: source.into(),
    })?;
    Ok(directory.entries().to_vec().into_iter())
}

fn append_directory<W: Write>(tar: &mut Tar<W>, path: &str) -> Result<(), Error> {
    let mut header = header(EntryType::Directory, DIRECTORY_MODE, 0);
    append(
        tar,
        &mut header,
        if path.is_empty() { "." } else { path },
        io::empty(),
    )
    .map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })
}

fn append_file<W: Write, C: Content>(
    tar: &mut Tar<W>,
    path: &str,
    entry: &tree::Entry,
    content: &C,
) -> Result<(), Error> {
    let blob = content.blob(&entry.digest).map_err(|source| Error::Content {
        path: path.to_owned(),
        source: source.into(),
    })?;
    let mode = if entry.kind == EntryKind::Executable {
        EXECUTABLE_MODE
    } else {
        FILE_MODE
    };
    let mut header = header(EntryType::Regular, mode, entry.size);
    // One byte more, so that a blob that is too long is seen and never cut.
    let mut blob = Counted {
        inner: blob.take(entry.size.saturating_add(1)),
        count: 0,
    };
    append(tar, &mut header, path, &mut blob).map_err(|source| Error::Write {
        path: path.to_owned(),
        source,
    })?;
    if blob.count != entry.size {
        return Err(Error::Size {
            path: path.to_owned(),
            expected: entry.size,
            actual: blob.count,
        });
    }
    Ok(())
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header
}

/// Appends with an extension record for a path that is too long or not ASCII, as Go writes it.
fn append<W: Write>(tar: &mut Tar<W>, header: &mut Header, path: &str, data: impl Read) -> io::Result<()> {
    let fits = path.len() <= NAME_FIELD && path.is_ascii();
    if !fits {
        tar.append_pax_extensions([("path", path.as_bytes())])?;
    }
    let field: String = path.chars().filter(char::is_ascii).take(NAME_FIELD).collect();
    let bytes = &mut header.as_old_mut().name;
    bytes[..field.len()].copy_from_slice(field.as_bytes());
    header.set_cksum();
    tar.append(header, data)
}

fn finish<W: Write>(tar: Tar<W>) -> io::Result<Written> {
    let mut blocks = tar.into_inner()?;
    blocks.flush_pending()?;
    let mut output = blocks.inner.finish()?;
    output.flush()?;
    Ok(Written {
        digest: output.hasher.finish(),
        size: output.size,
    })
}

/// Hands on blocks of one size, whatever the sizes of the writes were.
struct Blocks<W> {
    inner: W,
    pending: Vec<u8>,
}

impl<W: Write> Blocks<W> {
    fn flush_pending(&mut self) -> io::Result<()> {
        self.inner.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

impl<W: Write> Write for Blocks<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let taken = data.len().min(BLOCK - self.pending.len());
        self.pending.extend_from_slice(&data[..taken]);
        if self.pending.len() == BLOCK {
            self.flush_pending()?;
        }
        Ok(taken)
    }

    /// Does nothing: a flush of the compressor would change its output.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Computes digest and size of what is written.
struct Digesting<W> {
    inner: W,
    hasher: Hasher,
    size: u64,
}

impl<W: Write> Write for Digesting<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(data)?;
        self.hasher.update(&data[..written]);
        self.size += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

struct Counted<R> {
    inner: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count += read as u64;
        Ok(read)
    }
}
