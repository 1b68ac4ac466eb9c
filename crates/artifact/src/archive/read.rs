//! Reading an archive that someone else made.
//!
//! What Flux's unpacking accepts is accepted, with these exceptions, each of which it gets wrong: a hard link
//! (it writes an empty file), a global header (it writes a file of that name), a sparse file (expanded
//! without a byte in the archive to pay for it), and `..` as the last component. Symbolic links are skipped, as
//! every Flux controller does when it unpacks an artifact. Owners, times and all mode bits but "executable" are
//! dropped.
//!
//! Everything is bounded: entries, bytes of one file and of all, length of paths, the headers between two files,
//! and the ratio of unpacked to packed bytes. What follows the end of the tar is not read, so neither is gzip's
//! checksum: whether these are the right bytes is for the caller to know, by their digest.

use std::{
    cell::Cell,
    error::Error as StdError,
    io::{self, Read},
    rc::Rc,
};

use flate2::read::MultiGzDecoder;
use tar::EntryType;

use crate::tree::{PathError, clean_path};

/// Long names and extension records of one entry: far more than a path of 4096 bytes needs.
const MAX_HEADER_BYTES: u64 = 128 * 1024;
const BLOCK: u64 = 512;
/// Below this the ratio says nothing: a small file of zeros is harmless.
const RATIO_FREE_BYTES: u64 = 16 * 1024 * 1024;

/// Limits for the contents of an archive. Exceeding a limit is an error, never a truncated result.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Entries, skipped ones included.
    pub max_entries: u64,
    /// Unpacked bytes of all files.
    pub max_total_bytes: u64,
    /// Unpacked bytes of one file.
    pub max_file_bytes: u64,
    /// Unpacked bytes per packed byte, once 16 MiB are unpacked. Text compresses 5 to 30 times, deflate can 1032 times.
    pub max_ratio: u64,
    /// Handling of symbolic links.
    pub symlinks: Symlinks,
}

/// Handling of symbolic links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Symlinks {
    /// Leave them out, as Flux does for artifacts.
    Skip,
    /// Refuse the archive.
    Refuse,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_entries: 100_000,
            max_total_bytes: 1024 * 1024 * 1024,
            max_file_bytes: 256 * 1024 * 1024,
            max_ratio: 250,
            symlinks: Symlinks::Skip,
        }
    }
}

/// One entry, handed to the caller of [`read`].
pub struct Entry<'a> {
    /// Canonical path (see [`clean_path`]), never empty.
    pub path: &'a str,
    /// The content.
    pub content: EntryContent<'a>,
}

/// Content at a path.
pub enum EntryContent<'a> {
    /// A file. What the caller leaves unread is skipped.
    File {
        /// True if any execute bit is set.
        executable: bool,
        /// Bytes that `reader` will give, or fail.
        size: u64,
        /// The bytes.
        reader: &'a mut dyn Read,
    },
    /// A folder. Archives may leave out the folders of their files.
    Directory,
}

/// Summary of an archive's contents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files handed on.
    pub files: u64,
    /// Their unpacked bytes.
    pub bytes: u64,
    /// Symbolic links and global headers that were left out.
    pub skipped: u64,
}

/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not gzip, not tar, cut off, or the reader failed.
    #[error("failed to read the archive after {entries} entries")]
    Read {
        /// Entries read before.
        entries: u64,
        /// Error of the decoder or the reader.
        source: io::Error,
    },
    /// A path that leaves the archive's folder or is no path.
    #[error("failed to accept an archive entry")]
    Path(#[source] PathError),
    /// A path with a backslash, a root that is a file, or a name that is not UTF-8.
    #[error("failed to accept archive entry {0:?}: invalid name")]
    Name(String),
    /// A link.
    #[error("failed to accept archive entry {0:?}: it is a link")]
    Link(String),
    /// A device, a pipe, a sparse file or something unknown.
    #[error("failed to accept archive entry {0:?}: it is not a file, folder or link")]
    Special(String),
    /// A limit is exceeded.
    #[error("failed to accept archive entry {entry:?}: {limit}")]
    Limit {
        /// The entry that went over.
        entry: String,
        /// The limit in words.
        limit: String,
    },
    /// The caller's function failed.
    #[error("failed to take archive entry {entry:?}")]
    Sink {
        /// The entry that it was given.
        entry: String,
        /// Error of the function.
        source: Box<dyn StdError + Send + Sync>,
    },
}

/// Reads a gzip-compressed tar and hands each file and folder to `sink`, in the order of the archive.
///
/// # Errors
/// At the first entry that is refused; entries before it have been handed on. An error of the sink ends the
/// reading too.
pub fn read<R, S>(archive: R, limits: &Limits, mut sink: S) -> Result<Summary, Error>
where
    R: Read,
    S: FnMut(Entry<'_>) -> Result<(), Box<dyn StdError + Send + Sync>>,
{
    let packed = Meter::new(archive);
    let packed_bytes = packed.count.clone();
    let unpacked = Meter::new(MultiGzDecoder::new(packed));
    let (unpacked_bytes, end) = (unpacked.count.clone(), unpacked.end.clone());
    let mut tar = tar::Archive::new(unpacked);

    let mut reading = Reading {
        limits,
        entries: 0,
        summary: Summary::default(),
    };
    let mut iterator = tar
        .entries()
        .map_err(|source| Error::Read { entries: 0, source })?;
    loop {
        // Until the next entry is known only headers may be read, and the padding before them.
        end.set(unpacked_bytes.get() + MAX_HEADER_BYTES);
        let Some(entry) = iterator.next() else {
            return Ok(reading.summary);
        };
        let mut entry = entry.map_err(|source| reading.failed(source))?;
        end.set(
            unpacked_bytes
                .get()
                .saturating_add(entry.size())
                .saturating_add(BLOCK),
        );
        let name = reading.take(&mut entry, &mut sink)?;
        // The rest of the entry is read here, so that it does not count as headers of the next one.
        io::copy(&mut entry, &mut io::sink()).map_err(|source| reading.failed(source))?;
        reading.check_ratio(&name, packed_bytes.get(), unpacked_bytes.get())?;
    }
}

/// How far the reading is.
struct Reading<'a> {
    limits: &'a Limits,
    entries: u64,
    summary: Summary,
}

/// Handling of an entry.
enum Class {
    File,
    Directory,
    Skip,
}

impl Reading<'_> {
    /// Checks one entry and hands it on. Returns its name for messages.
    fn take<R, S>(&mut self, entry: &mut tar::Entry<'_, R>, sink: &mut S) -> Result<String, Error>
    where
        R: Read,
        S: FnMut(Entry<'_>) -> Result<(), Box<dyn StdError + Send + Sync>>,
    {
        self.entries += 1;
        let name = shorten(&String::from_utf8_lossy(&entry.path_bytes()));
        self.check_limits(&name, entry.size())?;
        let class = self.classify(entry, &name)?;
        if matches!(class, Class::Skip) {
            self.summary.skipped += 1;
            return Ok(name);
        }
        let path = path_of(entry, &name)?;
        let mut file;
        let content = match class {
            Class::File if path.is_empty() => return Err(Error::Name(name)),
            Class::File => {
                let (size, mode) = (entry.size(), entry.header().mode().unwrap_or(0));
                self.summary.files += 1;
                self.summary.bytes += size;
                file = Exact {
                    inner: entry,
                    remaining: size,
                };
                EntryContent::File {
                    executable: mode & 0o111 != 0,
                    size,
                    reader: &mut file,
                }
            }
            // The root itself, which needs no entry.
            _ if path.is_empty() => return Ok(name),
            _ => EntryContent::Directory,
        };
        match sink(Entry { path: &path, content }) {
            Ok(()) => Ok(name),
            Err(source) => Err(Error::Sink { entry: name, source }),
        }
    }

    fn classify<R: Read>(&self, entry: &mut tar::Entry<'_, R>, name: &str) -> Result<Class, Error> {
        match entry.header().entry_type() {
            EntryType::Regular | EntryType::Continuous if has_sparse_map(entry) => {
                Err(Error::Special(name.to_owned()))
            }
            EntryType::Regular | EntryType::Continuous => Ok(Class::File),
            EntryType::Directory => Ok(Class::Directory),
            EntryType::XGlobalHeader => Ok(Class::Skip),
            EntryType::Symlink if self.limits.symlinks == Symlinks::Skip => Ok(Class::Skip),
            EntryType::Symlink | EntryType::Link => Err(Error::Link(name.to_owned())),
            _ => Err(Error::Special(name.to_owned())),
        }
    }

    fn check_limits(&self, name: &str, size: u64) -> Result<(), Error> {
        let limits = self.limits;
        let limit = if self.entries > limits.max_entries {
            format!("more than {} entries", limits.max_entries)
        } else if size > limits.max_file_bytes {
            format!(
                "{size} bytes are more than the {} of one file",
                limits.max_file_bytes
            )
        } else if self.summary.bytes.saturating_add(size) > limits.max_total_bytes {
            format!("more than {} bytes in all files", limits.max_total_bytes)
        } else {
            return Ok(());
        };
        Err(Error::Limit {
            entry: name.to_owned(),
            limit,
        })
    }

    fn check_ratio(&self, name: &str, packed: u64, unpacked: u64) -> Result<(), Error> {
        if unpacked <= RATIO_FREE_BYTES || unpacked / packed.max(1) <= self.limits.max_ratio {
            return Ok(());
        }
        let limit = format!(
            "more than {} unpacked bytes per packed byte",
            self.limits.max_ratio
        );
        Err(Error::Limit {
            entry: name.to_owned(),
            limit,
        })
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Read {
            entries: self.entries,
            source,
        }
    }
}

/// The canonical path of an entry. Flux refuses backslashes, because they separate folders on other systems.
fn path_of<R: Read>(entry: &tar::Entry<'_, R>, name: &str) -> Result<String, Error> {
    let invalid = || Error::Name(name.to_owned());
    let bytes = entry.path_bytes();
    let text = std::str::from_utf8(&bytes).map_err(|_| invalid())?;
    if text.is_empty() || text.contains('\\') {
        return Err(invalid());
    }
    clean_path(text).map_err(Error::Path)
}

/// Returns whether extension records describe a sparse file, which the tar crate would hand on as its raw parts.
fn has_sparse_map<R: Read>(entry: &mut tar::Entry<'_, R>) -> bool {
    let Ok(Some(mut records)) = entry.pax_extensions() else {
        return false;
    };
    records.any(|record| record.is_ok_and(|record| record.key_bytes().starts_with(b"GNU.sparse.")))
}

/// Shortens a name for messages, since its length is not ours to choose.
fn shorten(name: &str) -> String {
    name.chars().take(200).collect()
}

/// Counts the bytes that pass, and fails at the end that is set for them.
struct Meter<R> {
    inner: R,
    count: Rc<Cell<u64>>,
    end: Rc<Cell<u64>>,
}

impl<R> Meter<R> {
    fn new(inner: R) -> Self {
        Self {
            inner,
            count: Rc::default(),
            end: Rc::new(Cell::new(u64::MAX)),
        }
    }
}

impl<R: Read> Read for Meter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.end.get().saturating_sub(self.count.get());
        if left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("the headers of an entry are too long"));
        }
        let wanted = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.inner.read(&mut buffer[..wanted])?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// Gives exactly the bytes that the header promises, or fails: a file that is cut off must not look like a
/// shorter one.
struct Exact<R> {
    inner: R,
    remaining: u64,
}

impl<R: Read> Read for Exact<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if read == 0 && !buffer.is_empty() && self.remaining > 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file is cut off",
            ));
        }
        self.remaining -= read as u64;
        Ok(read)
    }
}
