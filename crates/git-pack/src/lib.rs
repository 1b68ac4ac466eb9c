//! Packs as a Git server sends them: received into a file, indexed, and read object by object; and packs as we send them.
//!
//! In: the stream of a pack that needs nothing beside it (the answer to a client that has nothing), or one that builds upon
//! objects which the client has ([`Pack::receive_over`]). Out: the objects by their names. Memory does not grow with the pack: 32 bytes for each object are held, and the bytes of one object and
//! the bases of its delta while it is read; what is large among these is held for one pack of the process at a time, see
//! [`Memory`]. An object that is no delta is read as a stream. Nothing is mapped into memory, because what is mapped
//! counts as the memory of the process. The stream is hostile: counts and sizes are bounded by [`Limits`], and a name is
//! only ever the hash of the object's content, with the detection of collisions that Git has.
//!
//! The format is described in gitformat-pack(5).
//!
//! ```no_run
//! # fn receive(mut stream: impl std::io::BufRead, id: gix_hash::ObjectId) -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::File::options().read(true).write(true).create_new(true).open("received.pack")?;
//! let pack = git_pack::Pack::receive(&mut stream, file, &git_pack::Settings::default())?;
//! let mut content = Vec::new();
//! let kind = pack.read(&id, 1 << 20, &mut content)?;
//! # Ok(()) }
//! ```

mod delta;
mod entry;
mod error;
mod inflate;
mod memory;
mod receive;
mod resolve;
mod stream;
mod write;

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gix_hash::ObjectId;

pub use entry::Kind;
pub use error::Error;
pub use memory::Memory;
pub use receive::Find;
pub use stream::Content;
pub use write::{Object, write};

use entry::{Base, Header};
use inflate::{At, Inflater};
use memory::Share;

/// Limits for a stream.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of objects; 32 bytes of memory each.
    pub objects: u32,
    /// Bytes of one object, inflated.
    pub object_bytes: u64,
    /// Bytes of an object that is a delta, of the object that it is made of, and of what it says: all three are in memory
    /// while one is made.
    pub delta_bytes: u64,
    /// Bytes of all objects together, inflated: it bounds the work that a small stream can cause.
    pub inflated_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            objects: 500_000,
            object_bytes: 256 << 20,
            delta_bytes: 100 << 20,
            inflated_bytes: 4 << 30,
        }
    }
}

/// How packs are received and read.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Limits for the pack.
    pub limits: Limits,
    /// Shared by all packs of the process.
    pub memory: Memory,
    /// Ends receiving and reading with [`Error::Cancelled`] when it becomes true.
    pub cancelled: Arc<AtomicBool>,
}

/// A received pack. Clones share its file and its index.
#[derive(Debug, Clone)]
pub struct Pack {
    file: Arc<File>,
    /// Sorted by name.
    objects: Arc<Vec<(ObjectId, u64)>>,
    bytes: u64,
    settings: Settings,
}

/// An object at the end of a chain: what it is made of, and the deltas from the last to the first.
type Chain = (Header<Kind>, Vec<Header<Base>>);

impl Pack {
    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Bytes that were received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Ends reading with [`Error::Cancelled`] when this becomes true, and no longer when another did: a pack may be kept for
    /// more than one task.
    pub fn cancelled_by(&mut self, cancelled: Arc<AtomicBool>) {
        self.settings.cancelled = cancelled;
    }

    /// The names of all objects, sorted.
    pub fn names(&self) -> impl Iterator<Item = &ObjectId> {
        self.objects.iter().map(|(name, _)| name)
    }

    /// Returns whether there is an object of that name.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.offset(id).is_some()
    }

    /// Reads an object of up to `limit` bytes, made of none that is larger, into the buffer, over what is in it. None when
    /// there is none of that name.
    pub fn read(&self, id: &ObjectId, limit: u64, buffer: &mut Vec<u8>) -> Result<Option<Kind>, Error> {
        buffer.clear();
        let Some(offset) = self.offset(id) else {
            return Ok(None);
        };
        let chain = self.chain(offset)?;
        let limit = limit.min(self.settings.limits.object_bytes);
        self.make(&chain, limit, &mut self.settings.memory.share(), buffer)?;
        Ok(Some(chain.0.kind))
    }

    /// Opens an object as a stream. Only one that is a delta is in memory as a whole. None when there is no object of
    /// that name.
    pub fn open(&self, id: &ObjectId) -> Result<Option<(Kind, Content<'_>)>, Error> {
        let Some(offset) = self.offset(id) else {
            return Ok(None);
        };
        let chain = self.chain(offset)?;
        let kind = chain.0.kind;
        if chain.1.is_empty() {
            let input = At::new(&self.file, chain.0.data);
            return Ok(Some((kind, Content::packed(input, chain.0.size))));
        }
        let (mut share, mut bytes) = (self.settings.memory.share(), Vec::new());
        self.make(&chain, self.settings.limits.delta_bytes, &mut share, &mut bytes)?;
        Ok(Some((kind, Content::made(bytes, share))))
    }

    fn offset(&self, id: &ObjectId) -> Option<u64> {
        let place = self.objects.binary_search_by(|(name, _)| name.cmp(id)).ok()?;
        Some(self.objects[place].1)
    }

    fn chain(&self, mut offset: u64) -> Result<Chain, Error> {
        let mut deltas = Vec::new();
        loop {
            let base = match entry::read(&mut At::new(&self.file, offset), offset)? {
                entry::Entry::Whole(header) => return Ok((header, deltas)),
                entry::Entry::Delta(header) => {
                    let base = header.kind;
                    deltas.push(header);
                    base
                }
            };
            // That chains end was seen when the pack was received.
            offset = match base {
                Base::Offset(offset) => offset,
                Base::Name(name) => self.offset(&name).ok_or(Error::FindBase { offset, name })?,
            };
        }
    }

    /// Makes an object of what it is made of.
    fn make(
        &self,
        (whole, deltas): &Chain,
        limit: u64,
        share: &mut Share,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let cancelled = &self.settings.cancelled;
        self.inflate_into(whole, limit, 0, share, buffer)?;
        let (mut instructions, mut result) = (Vec::new(), Vec::new());
        for delta in deltas.iter().rev() {
            let held = buffer.len() as u64;
            instructions.clear();
            self.inflate_into(delta, limit, held, share, &mut instructions)?;
            let problem = |problem| Error::delta(delta.offset, problem);
            let size = delta::size_of_result(&instructions).map_err(problem)?;
            check_size(size, limit)?;
            share.hold(held + instructions.len() as u64 + size, cancelled)?;
            delta::apply(buffer, &instructions, limit, &mut result).map_err(problem)?;
            std::mem::swap(buffer, &mut result);
            if cancelled.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }

    fn inflate_into<K>(
        &self,
        header: &Header<K>,
        limit: u64,
        held: u64,
        share: &mut Share,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        check_size(header.size, limit)?;
        share.hold(held + header.size, &self.settings.cancelled)?;
        reserve(buffer, header.size);
        let mut input = At::new(&self.file, header.data);
        Inflater::default().run(&mut input, header.offset, header.size, &mut |bytes| {
            buffer.extend_from_slice(bytes);
            Ok(())
        })
    }
}

/// Makes room for exactly so many bytes: what grows by doubling takes up to twice of what was accounted for.
fn reserve(buffer: &mut Vec<u8>, bytes: u64) {
    buffer.reserve_exact(usize::try_from(bytes).unwrap_or_default());
}

fn check_size(size: u64, limit: u64) -> Result<(), Error> {
    let what = "the size in bytes of an object, or of one that it is made of,";
    if size > limit {
        return Err(Error::TooLarge { what, limit });
    }
    Ok(())
}
