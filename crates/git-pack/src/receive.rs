//! Receiving: the stream goes to the file, and the objects that are no deltas get their names on the way.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write as _};
use std::sync::atomic::Ordering;

use gix_hash::{Hasher, Kind as Hash, ObjectId};

use crate::entry::{self, Base, Entry, Kind};
use crate::error::Error;
use crate::inflate::Inflater;
use crate::{Limits, Pack, Settings, resolve};

const CHECKSUM: usize = 20;
const BUFFER: usize = 64 << 10;

/// Summary of a stream, after its end.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Those that are no deltas.
    pub(crate) whole: Vec<(ObjectId, u64, Kind)>,
    /// Deltas, by what they are applied to.
    pub(crate) deltas: Vec<(Base, u64)>,
    /// Bytes of all objects so far.
    pub(crate) inflated: u64,
}

impl Pack {
    /// Receives a pack into the empty `file`, and no byte beyond its end. The file must be open for reading too.
    pub fn receive(stream: &mut dyn BufRead, file: File, settings: &Settings) -> Result<Self, Error> {
        let limits = &settings.limits;
        let mut input = Input::new(stream, &file)?;
        let count = head(&mut input, limits)?;
        let mut seen = Seen::default();
        let mut inflater = Inflater::default();
        for _ in 0..count {
            if settings.cancelled.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            seen.next(&mut input, &mut inflater, limits)?;
        }
        let bytes = input.end()?;
        let objects = resolve::resolve(&file, seen, settings)?;
        Ok(Self {
            file,
            objects,
            bytes,
            settings: settings.clone(),
        })
    }
}

/// Reads the first twelve bytes and answers the number of objects.
fn head(input: &mut Input<'_>, limits: &Limits) -> Result<u32, Error> {
    let mut head = [0; 12];
    input.read_exact(&mut head).map_err(Error::Receive)?;
    let number =
        |from: usize| u32::from_be_bytes([head[from], head[from + 1], head[from + 2], head[from + 3]]);
    if &head[..4] != b"PACK" || !matches!(number(4), 2 | 3) {
        return Err(Error::Signature);
    }
    let count = number(8);
    if count > limits.objects {
        return Err(Error::TooLarge {
            what: "the number of its objects",
            limit: limits.objects.into(),
        });
    }
    Ok(count)
}

impl Seen {
    fn next(&mut self, input: &mut Input<'_>, inflater: &mut Inflater, limits: &Limits) -> Result<(), Error> {
        let offset = input.position;
        match entry::read(input, offset)? {
            Entry::Whole(header) => {
                self.count(header.size, limits)?;
                let mut name = name(header.kind, header.size);
                inflater.run(input, offset, header.size, &mut |bytes| {
                    name.update(bytes);
                    Ok(())
                })?;
                let name = name.try_finalize().map_err(|_| Error::Collision { offset })?;
                self.whole.push((name, offset, header.kind));
            }
            Entry::Delta(header) => {
                self.count(header.size, limits)?;
                if header.size > limits.delta_bytes {
                    let what = "the size in bytes of one of its deltas";
                    let limit = limits.delta_bytes;
                    return Err(Error::TooLarge { what, limit });
                }
                inflater.run(input, offset, header.size, &mut |_| Ok(()))?;
                self.deltas.push((header.kind, offset));
            }
        }
        input.written()
    }

    /// Takes account of an object's or delta's size before it is inflated.
    pub(crate) fn count(&mut self, size: u64, limits: &Limits) -> Result<(), Error> {
        self.inflated = self.inflated.saturating_add(size);
        let too_large = |what, limit| Err(Error::TooLarge { what, limit });
        if size > limits.object_bytes {
            return too_large("the size in bytes of one of its objects", limits.object_bytes);
        }
        if self.inflated > limits.inflated_bytes {
            return too_large("the size in bytes of all its objects", limits.inflated_bytes);
        }
        Ok(())
    }
}

/// The beginning of an object's name.
pub(crate) fn name(kind: Kind, size: u64) -> Hasher {
    let mut hasher = gix_hash::hasher(Hash::Sha1);
    hasher.update(format!("{} {size}\0", kind.word()).as_bytes());
    hasher
}

/// The stream: what is taken from it is hashed and written to the file.
struct Input<'a> {
    stream: &'a mut dyn BufRead,
    file: BufWriter<&'a File>,
    hasher: Hasher,
    position: u64,
    /// `consume` cannot fail.
    failed: Option<io::Error>,
}

impl<'a> Input<'a> {
    fn new(stream: &'a mut dyn BufRead, file: &'a File) -> Result<Self, Error> {
        Ok(Self {
            stream,
            file: BufWriter::with_capacity(BUFFER, file),
            hasher: gix_hash::hasher(Hash::Sha1),
            position: 0,
            failed: None,
        })
    }

    /// Fails when something could not be written.
    fn written(&mut self) -> Result<(), Error> {
        self.failed
            .take()
            .map_or(Ok(()), |error| Err(Error::Write(error)))
    }

    /// Compares the checksum at the end. Answers the number of bytes with it.
    fn end(mut self) -> Result<u64, Error> {
        self.written()?;
        self.file.flush().map_err(Error::Write)?;
        let mut sent = [0; CHECKSUM];
        self.stream.read_exact(&mut sent).map_err(Error::Receive)?;
        let found = self.hasher.try_finalize().map_err(|_| Error::Checksum)?;
        let bytes = self.position + CHECKSUM as u64;
        (found == ObjectId::from(sent))
            .then_some(bytes)
            .ok_or(Error::Checksum)
    }
}

impl BufRead for Input<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.stream.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        // The same buffer as that of which the amount is: nothing was taken since.
        if let Ok(buffer) = self.stream.fill_buf() {
            let taken = &buffer[..amount];
            self.hasher.update(taken);
            if let Err(error) = self.file.write_all(taken) {
                self.failed.get_or_insert(error);
            }
        }
        self.position += amount as u64;
        self.stream.consume(amount);
    }
}

impl Read for Input<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(target.len());
        target[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}
