//! Inflating one entry, from the stream or from the file.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::unix::fs::FileExt as _;

use flate2::{Decompress, FlushDecompress, Status};

use crate::error::Error;

const OUTPUT: usize = 32 << 10;
const INPUT: usize = 16 << 10;

/// Inflates entries, one after the other.
pub(crate) struct Inflater {
    state: Decompress,
    output: Vec<u8>,
}

impl Default for Inflater {
    fn default() -> Self {
        Self {
            state: Decompress::new(true),
            output: vec![0; OUTPUT],
        }
    }
}

impl Inflater {
    /// Inflates the entry at `offset`, whose data begins where `input` stands and must be `size` bytes, into `sink`. Takes
    /// from `input` what belongs to the entry and nothing else.
    pub(crate) fn run(
        &mut self,
        input: &mut dyn BufRead,
        offset: u64,
        size: u64,
        sink: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let problem = |problem| Error::Entry { offset, problem };
        self.state.reset(true);
        loop {
            let available = input.fill_buf().map_err(Error::Receive)?;
            let (taken, given) = (self.state.total_in(), self.state.total_out());
            let at_end = available.is_empty();
            let status = self
                .state
                .decompress(available, &mut self.output, FlushDecompress::None)
                .map_err(|_| problem("its compressed data is broken"))?;
            let taken = usize::try_from(self.state.total_in() - taken).expect("part of a buffer");
            let given = usize::try_from(self.state.total_out() - given).expect("part of a buffer");
            input.consume(taken);
            if self.state.total_out() > size {
                return Err(problem("it is larger than it says"));
            }
            sink(&self.output[..given])?;
            if status == Status::StreamEnd {
                let whole = self.state.total_out() == size;
                return whole.then_some(()).ok_or(problem("it is smaller than it says"));
            }
            if taken == 0 && given == 0 && at_end {
                return Err(Error::Receive(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }
}

/// The file from some place on.
pub(crate) struct At<'a> {
    file: &'a File,
    next: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl<'a> At<'a> {
    pub(crate) fn new(file: &'a File, offset: u64) -> Self {
        Self {
            file,
            next: offset,
            buffer: Vec::new(),
            used: 0,
        }
    }
}

impl BufRead for At<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.used == self.buffer.len() {
            self.buffer.resize(INPUT, 0);
            let read = self.file.read_at(&mut self.buffer, self.next)?;
            self.buffer.truncate(read);
            self.next += read as u64;
            self.used = 0;
        }
        Ok(&self.buffer[self.used..])
    }

    fn consume(&mut self, amount: usize) {
        self.used += amount;
    }
}

impl Read for At<'_> {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(target.len());
        target[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}
