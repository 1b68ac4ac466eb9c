//! The content of one object as a stream.

use std::io::{self, Cursor, Read};

use flate2::bufread::ZlibDecoder;

use crate::inflate::At;
use crate::memory::Share;

/// The content of an object, from its beginning to its end.
pub struct Content<'a> {
    from: From<'a>,
    /// Bytes that are left.
    left: u64,
}

enum From<'a> {
    /// As it lies in the pack.
    Packed(Box<ZlibDecoder<At<'a>>>),
    /// Made of deltas. The share is given back with the bytes.
    Made(Cursor<Vec<u8>>, #[expect(dead_code, reason = "held")] Share),
}

impl<'a> Content<'a> {
    pub(crate) fn packed(input: At<'a>, size: u64) -> Self {
        Self {
            from: From::Packed(Box::new(ZlibDecoder::new(input))),
            left: size,
        }
    }

    pub(crate) fn made(bytes: Vec<u8>, share: Share) -> Self {
        Self {
            left: bytes.len() as u64,
            from: From::Made(Cursor::new(bytes), share),
        }
    }

    /// Bytes that are left.
    pub fn left(&self) -> u64 {
        self.left
    }
}

impl Read for Content<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.from {
            From::Packed(decoder) => decoder.read(target)?,
            From::Made(bytes, _) => bytes.read(target)?,
        };
        // Name and size were compared when it was received: another size means that the file was changed since.
        let changed = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the pack changed since it was received",
            )
        };
        if read == 0 && !target.is_empty() && self.left > 0 {
            return Err(changed());
        }
        self.left = self.left.checked_sub(read as u64).ok_or_else(changed)?;
        Ok(read)
    }
}
