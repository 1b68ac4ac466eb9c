//! Receiving: the stream goes to the file, and the objects that are no deltas get their names on the way.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write as _};
use std::sync::atomic::Ordering;

use gix_hash::{Hasher, Kind as Hash, ObjectId};

use crate::error::Error;
use crate::inflate::Inflater;
use crate::resolve::{self, Seen};
use crate::{Limits, Pack, Settings};

const CHECKSUM: usize = 20;
const BUFFER: usize = 64 << 10;

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

/// The stream: what is taken from it is hashed and written to the file.
pub(super) struct Input<'a> {
    stream: &'a mut dyn BufRead,
    file: BufWriter<&'a File>,
    hasher: Hasher,
    pub(super) position: u64,
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
    pub(super) fn written(&mut self) -> Result<(), Error> {
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
