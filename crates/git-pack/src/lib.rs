//! Packs as a Git server sends them: received into a file, indexed, and read object by object.
//!
//! In: the stream of a pack that needs nothing beside it (the answer to a client that has nothing). Out: the objects by
//! their names. Memory does not grow with the pack: 32 bytes for each object are held, and the bytes of one object and
//! the bases of its delta while it is read. Nothing is mapped into memory, because what is mapped counts as the memory
//! of the process. The stream is hostile: counts and sizes are bounded by [`Limits`], and a name is only ever the hash of
//! the object's content, with the detection of collisions that Git has.
//!
//! The format is described in gitformat-pack(5).
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//! # fn receive(mut stream: impl std::io::BufRead, id: gix_hash::ObjectId) -> Result<(), Box<dyn std::error::Error>> {
//! let file = std::fs::File::options().read(true).write(true).create_new(true).open("received.pack")?;
//! let pack = git_pack::Pack::receive(&mut stream, file, &git_pack::Limits::default(), &AtomicBool::new(false))?;
//! let mut content = Vec::new();
//! let kind = pack.read(&id, &mut content)?;
//! # Ok(()) }
//! ```

mod delta;
mod entry;
mod error;
mod inflate;
mod receive;
mod resolve;

use std::fs::File;
use std::io::Write;

use gix_hash::ObjectId;

pub use entry::Kind;
pub use error::Error;

use entry::{Base, Header};
use inflate::{At, Inflater};

/// What a stream may make us do.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of objects; 32 bytes of memory each.
    pub objects: u32,
    /// Bytes of one object, inflated. An object that is a delta is held in memory with its bases, which together may
    /// have twice as many.
    pub object_bytes: u64,
    /// Bytes of all objects together, inflated: it bounds the work that a small stream can cause.
    pub inflated_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            objects: 2_000_000,
            object_bytes: 512 << 20,
            inflated_bytes: 8 << 30,
        }
    }
}

/// A received pack.
#[derive(Debug)]
pub struct Pack {
    file: File,
    /// Sorted by name.
    objects: Vec<(ObjectId, u64)>,
    bytes: u64,
    limits: Limits,
}

impl Pack {
    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    /// Bytes that were received.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The names of all objects, sorted.
    pub fn names(&self) -> impl Iterator<Item = &ObjectId> {
        self.objects.iter().map(|(name, _)| name)
    }

    /// Whether there is an object of that name.
    pub fn contains(&self, id: &ObjectId) -> bool {
        self.offset(id).is_some()
    }

    /// Reads an object into the buffer, over what is in it. None when there is none of that name.
    pub fn read(&self, id: &ObjectId, buffer: &mut Vec<u8>) -> Result<Option<Kind>, Error> {
        buffer.clear();
        let Some(offset) = self.offset(id) else {
            return Ok(None);
        };
        let (header, deltas) = self.chain(offset)?;
        self.inflate_into(&header, buffer)?;
        let (mut instructions, mut result) = (Vec::new(), Vec::new());
        for delta in deltas.iter().rev() {
            instructions.clear();
            self.inflate_into(delta, &mut instructions)?;
            delta::apply(buffer, &instructions, self.limits.object_bytes, &mut result)
                .map_err(|problem| Error::delta(delta.offset, problem))?;
            std::mem::swap(buffer, &mut result);
        }
        Ok(Some(header.kind))
    }

    /// Writes an object's content to `sink`. What is no delta is never held in memory as a whole. None when there is
    /// no object of that name.
    pub fn copy(&self, id: &ObjectId, sink: &mut dyn Write) -> Result<Option<Kind>, Error> {
        let Some(offset) = self.offset(id) else {
            return Ok(None);
        };
        let (header, deltas) = self.chain(offset)?;
        if deltas.is_empty() {
            let mut input = At::new(&self.file, header.data);
            Inflater::default().run(&mut input, header.offset, header.size, &mut |bytes| {
                sink.write_all(bytes).map_err(Error::Write)
            })?;
            return Ok(Some(header.kind));
        }
        let mut content = Vec::new();
        let kind = self.read(id, &mut content)?;
        sink.write_all(&content).map_err(Error::Write)?;
        Ok(kind)
    }

    fn offset(&self, id: &ObjectId) -> Option<u64> {
        let place = self.objects.binary_search_by(|(name, _)| name.cmp(id)).ok()?;
        Some(self.objects[place].1)
    }

    /// The object that is no delta at the end of the chain, and the deltas before it, from the last to the first.
    fn chain(&self, mut offset: u64) -> Result<(Header<Kind>, Vec<Header<Base>>), Error> {
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

    fn inflate_into<K>(&self, header: &Header<K>, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let mut input = At::new(&self.file, header.data);
        Inflater::default().run(&mut input, header.offset, header.size, &mut |bytes| {
            buffer.extend_from_slice(bytes);
            Ok(())
        })
    }
}
