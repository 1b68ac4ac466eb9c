//! A pack as it arrives: onto the disk, and indexed there.
//!
//! In: the bytes of a server, which are hostile. Out: the path of the index. What a small pack can unfold into is bounded
//! before it unfolds: the number of objects by what the pack says in its first bytes, the size of each object and of all of
//! them together by what each one says before it is inflated, and the memory by the sizes along each chain of deltas, since
//! an object stays in memory until those made of it are done.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::bufread::ZlibDecoder;
use gix::DynNestedProgress;
use gix::odb::pack;
use gix::odb::pack::data::entry::Header;
use gix::odb::pack::data::input::{BytesToEntriesIter, EntryDataMode, Mode};
use gix::odb::pack::data::{Entry, EntryRange};

use super::pack::SHA1;

/// What a pack may unfold into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Objects. Each takes some hundred bytes of memory while the pack is indexed.
    pub(super) objects: u64,
    /// Bytes of a single object, which must fit into memory.
    pub(super) object: u64,
    /// Bytes of all objects.
    pub(super) all: u64,
    /// Bytes of an object and of all that it is made of.
    pub(super) chain: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            objects: 2_000_000,
            object: 512 << 20,
            all: 8 << 30,
            chain: 1 << 30,
        }
    }
}

/// A limit that a pack does not keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Excess {
    /// What of it, with its verb.
    pub(super) what: &'static str,
    /// The limit.
    pub(super) limit: u64,
}

/// Where the reason of a refusal is left for the caller: gix's errors have no place for it.
pub(super) type Refusal = Arc<Mutex<Option<Excess>>>;

/// Receives a pack into the directory and indexes it. Answers the path of the index; None for a pack without objects.
pub(super) fn receive(
    bytes: &mut dyn BufRead,
    directory: &Path,
    limits: Limits,
    refusal: &Refusal,
    progress: &mut dyn DynNestedProgress,
    interrupt: &AtomicBool,
) -> gix::Result<Option<PathBuf>> {
    let taken = std::fs::read_dir(directory)
        .map_err(gix::Error::from_error)?
        .count();
    let path = directory.join(format!("pack-{taken}.pack"));
    let index_path = path.with_extension("idx");
    let file = File::create(&path).map_err(gix::Error::from_error)?;
    let arriving = BufReader::with_capacity(64 << 10, Arriving { bytes, file });
    let entries = BytesToEntriesIter::new_from_header(arriving, Mode::Verify, EntryDataMode::Crc32, SHA1)?;
    let version = entries.version();
    let meter = Meter::new(limits, refusal.clone());
    match entries.size_hint().0 as u64 {
        0 => return Ok(None),
        objects if !meter.allows_objects(objects) => return Err(refused()),
        _ => {}
    }
    // Each one is inflated as it arrives, to find where it ends, and forgotten.
    let mut inflated = 0_u64;
    let mut entries = entries.map(|entry| {
        let entry = entry?;
        inflated = inflated.saturating_add(entry.decompressed_size);
        if meter.allows_all(inflated) {
            Ok(entry)
        } else {
            Err(refused())
        }
    });
    let open = || {
        let file = pack::data::File::at(&path, SHA1).map_err(io::Error::other)?;
        Ok((resolver(meter.clone()), file))
    };
    let mut index = BufWriter::new(File::create(&index_path).map_err(gix::Error::from_error)?);
    pack::index::write_data_iter_to_stream(
        pack::index::Version::default(),
        open,
        &mut entries,
        Some(1), // many objects are fetched at once already
        progress,
        &mut index,
        interrupt,
        SHA1,
        usize::try_from(limits.object).ok(),
        version,
    )?;
    index.flush().map_err(gix::Error::from_error)?;
    Ok(Some(index_path))
}

fn refused() -> gix::Error {
    gix::Error::from_error(io::Error::other("the pack is too large"))
}

fn resolver(
    meter: Meter,
) -> impl for<'a> Fn(EntryRange, &'a pack::data::File) -> Option<&'a [u8]> + Send + Clone {
    move |range, file| resolve(&meter, range, file)
}

/// The bytes of an object, as they lie in the pack, unless it is too large.
fn resolve<'a>(meter: &Meter, range: EntryRange, file: &'a pack::data::File) -> Option<&'a [u8]> {
    let bytes = file.entry_slice(range.clone())?;
    let entry = Entry::from_bytes(bytes, range.start, SHA1).ok()?;
    let base = match entry.header {
        Header::OfsDelta { base_distance } => Base::At(range.start.checked_sub(base_distance)?),
        Header::RefDelta { .. } => Base::Somewhere,
        _ => Base::None,
    };
    let size = match base {
        Base::None => entry.decompressed_size,
        _ => size_of_delta(bytes.get(entry.header_size()..)?)?,
    };
    meter.allows_object(range.start, base, size).then_some(bytes)
}

/// The size of what a delta makes, which stands at its beginning after the size of what it is made of.
fn size_of_delta(deflated: &[u8]) -> Option<u64> {
    // Two numbers of at most ten bytes each.
    let mut start = Vec::new();
    let mut inflating = ZlibDecoder::new(deflated).take(20);
    let _ = inflating.read_to_end(&mut start); // what is there counts: gix tells of what is broken
    let mut bytes = start.into_iter();
    let mut number = || {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = bytes.next()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    };
    number()?;
    number()
}

/// What an object is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Base {
    /// It stands for itself.
    None,
    /// The object at this place.
    At(u64),
    /// An object by its name, wherever that is.
    Somewhere,
}

/// Measures objects before they are inflated.
#[derive(Debug, Clone)]
struct Meter {
    limits: Limits,
    refusal: Refusal,
    measured: Arc<Mutex<Measured>>,
}

#[derive(Debug, Default)]
struct Measured {
    all: u64,
    /// Sizes of objects with all that they are made of, by place; of those only that take a notable amount of memory.
    chains: HashMap<u64, u64>,
    /// Sizes of all objects that name what they are made of: any of them may be made of any other. Servers that say where
    /// it is, as all do that speak to Git of this century, send none.
    named: u64,
}

/// Smaller chains are not remembered.
const NOTABLE: u64 = 1 << 20;

impl Meter {
    fn new(limits: Limits, refusal: Refusal) -> Self {
        Self {
            limits,
            refusal,
            measured: Arc::default(),
        }
    }

    fn allows_objects(&self, count: u64) -> bool {
        self.keeps(count, self.limits.objects, "the number of its objects is")
    }

    fn allows_all(&self, bytes: u64) -> bool {
        self.keeps(bytes, self.limits.all, "the size in bytes of all its objects is")
    }

    fn allows_object(&self, place: u64, base: Base, size: u64) -> bool {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        let below = match base {
            Base::None => 0,
            Base::At(place) => measured.chains.get(&place).copied().unwrap_or_default(),
            Base::Somewhere => measured.named,
        };
        let chain = below.saturating_add(size);
        measured.all = measured.all.saturating_add(size);
        if chain > NOTABLE {
            measured.chains.insert(place, chain);
        }
        if base == Base::Somewhere {
            measured.named = chain;
        }
        self.keeps(
            size,
            self.limits.object,
            "the size in bytes of one of its objects is",
        ) && self.keeps(
            chain,
            self.limits.chain,
            "the size in bytes of objects that are made of each other is",
        ) && self.allows_all(measured.all)
    }

    fn keeps(&self, number: u64, limit: u64, what: &'static str) -> bool {
        if number > limit {
            let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
            refusal.get_or_insert(Excess { what, limit });
        }
        number <= limit
    }
}

/// The bytes of the pack on their way to the disk.
struct Arriving<'a> {
    bytes: &'a mut dyn BufRead,
    file: File,
}

impl Read for Arriving<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.bytes.read(buffer)?;
        self.file.write_all(&buffer[..read])?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests;
