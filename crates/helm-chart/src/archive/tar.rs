//! Tar as Go's archive/tar reads it, as far as charts need it: old, POSIX and GNU headers, long names, extended headers.
//!
//! A reader of our own because its errors must be Go's and because nothing but file contents may take memory: extended
//! headers are bounded, and all reads together are.

use std::io::{self, Read};

use super::problem::Problem;
use super::read_up_to;

const BLOCK: usize = 512;

/// How long an extended header may be: Go's `maxSpecialFileSize`.
const MAX_EXTENSION: u64 = 1 << 20;

/// One header of an archive.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) size: u64,
    kind: u8,
    mode: u64,
}

impl Entry {
    pub(super) fn is_folder(&self) -> bool {
        self.kind == b'5'
            || self.mode & 0o170_000 == 0o040_000
            || (self.kind == 0 && self.name.ends_with('/'))
    }

    pub(super) fn is_extension(&self) -> bool {
        self.kind == b'g'
    }

    /// Returns how many bytes follow the header: none for links, devices and folders, whatever the header says.
    fn stored_size(&self) -> u64 {
        match self.kind {
            b'1'..=b'6' => 0,
            _ => self.size,
        }
    }
}

/// Reads an archive from front to back.
#[derive(Debug)]
pub(super) struct TarReader<R> {
    reader: io::Take<R>,
    limit: u64,
    /// Bytes of the last entry that were not read yet, and those that fill its last block.
    unread: u64,
    padding: u64,
}

/// Extended headers of the entry behind them.
#[derive(Default)]
struct Extensions {
    name: Option<String>,
    size: Option<u64>,
}

impl<R: Read> TarReader<R> {
    /// Reads at most `limit` bytes.
    pub(super) fn new(reader: R, limit: u64) -> Self {
        Self {
            // One more, to tell the limit from the end.
            reader: reader.take(limit + 1),
            limit,
            unread: 0,
            padding: 0,
        }
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.limit + 1 - self.reader.limit()
    }

    /// Reads the next header; None at the end.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry>, Problem> {
        let mut extensions = Extensions::default();
        loop {
            let Some(mut entry) = self.next_header()? else {
                return Ok(None);
            };
            self.unread = entry.stored_size();
            self.padding = self.unread.next_multiple_of(BLOCK as u64) - self.unread;
            match entry.kind {
                b'x' => self.read_records(entry.size, &mut extensions)?,
                b'L' => extensions.name = Some(text(&self.read_extension(entry.size)?)),
                b'K' => {
                    self.read_extension(entry.size)?;
                }
                b'g' => return Ok(Some(entry)),
                _ => {
                    if let Some(size) = extensions.size {
                        entry.size = size;
                        self.unread = entry.stored_size();
                        self.padding = self.unread.next_multiple_of(BLOCK as u64) - self.unread;
                    }
                    entry.name = extensions.name.unwrap_or(entry.name);
                    return Ok(Some(entry));
                }
            }
        }
    }

    /// Reads what follows the last header, at most `size` bytes.
    pub(super) fn read_contents(&mut self, size: u64) -> Result<Vec<u8>, Problem> {
        let size = size.min(self.unread);
        let mut data = Vec::new();
        let read = self.reader.by_ref().take(size).read_to_end(&mut data);
        read.map_err(|error| Problem::of_stream(&error))?;
        self.unread -= data.len() as u64;
        if (data.len() as u64) < size {
            return Err(self.ended());
        }
        Ok(data)
    }

    fn next_header(&mut self) -> Result<Option<Entry>, Problem> {
        self.skip()?;
        let Some(block) = self.block()? else {
            return Ok(None);
        };
        if block == [0; BLOCK] {
            return match self.block()? {
                Some(block) if block != [0; BLOCK] => Err(invalid()),
                _ => Ok(None),
            };
        }
        parse(&block).map(Some)
    }

    /// Passes over what is left of the last entry. The end of the stream may stand in its last, unfilled block.
    fn skip(&mut self) -> Result<(), Problem> {
        let skipped = io::copy(&mut self.reader.by_ref().take(self.unread), &mut io::sink());
        if skipped.map_err(|error| Problem::of_stream(&error))? < self.unread {
            return Err(self.ended());
        }
        let padded = io::copy(&mut self.reader.by_ref().take(self.padding), &mut io::sink());
        padded.map_err(|error| Problem::of_stream(&error))?;
        (self.unread, self.padding) = (0, 0);
        Ok(())
    }

    fn block(&mut self) -> Result<Option<[u8; BLOCK]>, Problem> {
        let mut block = [0; BLOCK];
        let read = read_up_to(&mut self.reader, &mut block).map_err(|error| Problem::of_stream(&error))?;
        match read {
            BLOCK => Ok(Some(block)),
            0 if self.reader.limit() > 0 => Ok(None),
            _ => Err(self.ended()),
        }
    }

    fn ended(&self) -> Problem {
        if self.reader.limit() == 0 {
            return Problem::TooLarge(format!(
                "failed to unpack the chart: more than {} bytes",
                self.limit
            ));
        }
        Problem::Damaged("unexpected EOF".to_owned())
    }

    fn read_extension(&mut self, size: u64) -> Result<Vec<u8>, Problem> {
        if size > MAX_EXTENSION {
            return Err(Problem::Damaged("archive/tar: header field too long".to_owned()));
        }
        self.read_contents(size)
    }

    /// Reads the records of an extended header: `LENGTH KEY=VALUE\n`.
    fn read_records(&mut self, size: u64, extensions: &mut Extensions) -> Result<(), Problem> {
        let data = self.read_extension(size)?;
        let mut rest = &data[..];
        while !rest.is_empty() {
            let space = rest.iter().position(|byte| *byte == b' ').ok_or_else(invalid)?;
            let length: usize = std::str::from_utf8(&rest[..space])
                .ok()
                .and_then(|digits| digits.parse().ok())
                .ok_or_else(invalid)?;
            if length <= space || length > rest.len() || rest[length - 1] != b'\n' {
                return Err(invalid());
            }
            let record = &rest[space + 1..length - 1];
            let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(invalid)?;
            let value = &record[equals + 1..];
            match &record[..equals] {
                b"path" if !value.is_empty() => extensions.name = Some(text(value)),
                b"size" if !value.is_empty() => {
                    let size = std::str::from_utf8(value)
                        .ok()
                        .and_then(|digits| digits.parse().ok());
                    extensions.size = Some(size.ok_or_else(invalid)?);
                }
                _ => {}
            }
            rest = &rest[length..];
        }
        Ok(())
    }
}

fn parse(block: &[u8; BLOCK]) -> Result<Entry, Problem> {
    let stated = number(&block[148..156])?;
    let sum = |value: fn(u8) -> i64| -> i64 {
        let bytes = block.iter().enumerate();
        bytes
            .map(|(index, byte)| {
                if (148..156).contains(&index) {
                    32
                } else {
                    value(*byte)
                }
            })
            .sum()
    };
    // Some old programs summed signed bytes.
    let sums = [sum(i64::from), sum(|byte| i64::from(byte.cast_signed()))];
    if !sums.iter().any(|sum| u64::try_from(*sum) == Ok(stated)) {
        return Err(invalid());
    }
    let mut name = text(&block[..100]);
    let prefix = text(&block[345..500]);
    if &block[257..265] == b"ustar\x0000" && !prefix.is_empty() {
        name = format!("{prefix}/{name}");
    }
    Ok(Entry {
        name,
        size: number(&block[124..136])?,
        kind: block[156],
        mode: number(&block[100..108])?,
    })
}

/// Reads a number: octal digits, or 256 as base when the first bit is set.
fn number(field: &[u8]) -> Result<u64, Problem> {
    if field[0] & 0x80 != 0 {
        // A negative number, or one above 63 bits, is refused.
        let mut number = u64::from(field[0] & 0x7f);
        for byte in &field[1..] {
            number = number.checked_mul(256).ok_or_else(invalid)? | u64::from(*byte);
        }
        return i64::try_from(number)
            .map(i64::cast_unsigned)
            .map_err(|_| invalid());
    }
    let digits = field
        .trim_ascii()
        .split(|byte| *byte == 0)
        .find(|part| !part.is_empty());
    let digits = digits.unwrap_or_default().trim_ascii();
    if digits.is_empty() {
        return Ok(0);
    }
    std::str::from_utf8(digits)
        .ok()
        .filter(|digits| !digits.starts_with('+'))
        .and_then(|digits| u64::from_str_radix(digits, 8).ok())
        .ok_or_else(invalid)
}

/// Reads a text up to the first zero.
fn text(field: &[u8]) -> String {
    let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end]).into_owned()
}

fn invalid() -> Problem {
    Problem::Damaged("archive/tar: invalid tar header".to_owned())
}
