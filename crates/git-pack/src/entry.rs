//! The head of an entry: kind, size, and the base of a delta.

use std::io::BufRead;

use gix_hash::ObjectId;

use crate::error::Error;

/// Type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A commit.
    Commit,
    /// A folder.
    Tree,
    /// A file, or the target of a link.
    Blob,
    /// An annotated tag.
    Tag,
}

impl Kind {
    /// The word in the header that is hashed with the content.
    pub fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// Base of a delta.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The object at this offset.
    Offset(u64),
    /// The object of this name.
    Name(ObjectId),
}

/// An object, or a delta: `K` is what it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header<K> {
    pub(crate) kind: K,
    /// Where the entry begins.
    pub(crate) offset: u64,
    /// Where its compressed data begins.
    pub(crate) data: u64,
    /// Bytes of the data, inflated. Not yet checked against anything.
    pub(crate) size: u64,
}

pub(crate) enum Entry {
    Whole(Header<Kind>),
    Delta(Header<Base>),
}

/// Reads the head of the entry at `offset`, where `input` stands.
pub(crate) fn read(input: &mut dyn BufRead, offset: u64) -> Result<Entry, Error> {
    let problem = |problem| Error::Entry { offset, problem };
    let mut head = Head { input, read: 0 };
    let first = head.byte()?;
    let mut size = u64::from(first & 0x0f);
    let (mut byte, mut shift) = (first, 4);
    while byte & 0x80 != 0 {
        byte = head.byte()?;
        if shift > 53 {
            return Err(problem("its size is beyond any bound"));
        }
        size |= u64::from(byte & 0x7f) << shift;
        shift += 7;
    }
    let kind = match first >> 4 & 0x07 {
        1 => Ok(Kind::Commit),
        2 => Ok(Kind::Tree),
        3 => Ok(Kind::Blob),
        4 => Ok(Kind::Tag),
        6 => {
            let distance = head
                .distance()?
                .ok_or(problem("the distance to its base is beyond any bound"))?;
            let base = offset.checked_sub(distance).filter(|_| distance > 0);
            Err(Base::Offset(base.ok_or(problem("its base is not before it"))?))
        }
        7 => {
            let mut name = [0; 20];
            head.input.read_exact(&mut name).map_err(Error::Receive)?;
            head.read += 20;
            Err(Base::Name(ObjectId::from(name)))
        }
        _ => return Err(problem("its kind is unknown")),
    };
    let data = offset + head.read;
    Ok(match kind {
        Ok(kind) => Entry::Whole(Header {
            kind,
            offset,
            data,
            size,
        }),
        Err(kind) => Entry::Delta(Header {
            kind,
            offset,
            data,
            size,
        }),
    })
}

struct Head<'a> {
    input: &'a mut dyn BufRead,
    read: u64,
}

impl Head<'_> {
    fn byte(&mut self) -> Result<u8, Error> {
        let mut byte = [0];
        self.input.read_exact(&mut byte).map_err(Error::Receive)?;
        self.read += 1;
        Ok(byte[0])
    }

    /// Big-endian groups of seven bits, where each further group adds one so that no number has two forms. None when it
    /// does not fit.
    fn distance(&mut self) -> Result<Option<u64>, Error> {
        let mut byte = self.byte()?;
        let mut value = u64::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.byte()?;
            if value > u64::MAX >> 8 {
                return Ok(None);
            }
            value = ((value + 1) << 7) | u64::from(byte & 0x7f);
        }
        Ok(Some(value))
    }
}
