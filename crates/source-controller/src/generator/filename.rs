//! The name of an artifact's file: a checksum of its content as source-watcher computes it, so that paths stay the same
//! when one controller takes over from the other.
//!
//! Adler-32 of lines with the Adler-32 of each file and its path below the artifact's name; it is no digest, and nothing
//! is trusted because of it.

use std::fmt::Write as _;
use std::io::{self, Read};

/// Adler-32, RFC 1950.
#[derive(Debug)]
pub(super) struct Adler(u32, u32);

impl Adler {
    pub(super) fn new() -> Self {
        Self(1, 0)
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        const MODULUS: u32 = 65_521;
        // As many as fit before 32 bits overflow.
        for piece in bytes.chunks(5552) {
            for byte in piece {
                self.0 += u32::from(*byte);
                self.1 += self.0;
            }
            self.0 %= MODULUS;
            self.1 %= MODULUS;
        }
    }

    pub(super) fn finish(&self) -> u32 {
        self.1 << 16 | self.0
    }

    /// The checksum of all that the reader gives.
    pub(super) fn from_reader(mut reader: impl Read) -> io::Result<u32> {
        let mut sum = Self::new();
        let mut buffer = vec![0; 64 << 10];
        loop {
            match reader.read(&mut buffer)? {
                0 => return Ok(sum.finish()),
                read => sum.update(&buffer[..read]),
            }
        }
    }
}

/// The checksum of files, given by path and checksum.
pub(super) fn checksum(name: &str, files: &[(String, u32)]) -> u32 {
    let mut files: Vec<_> = files.iter().collect();
    files.sort();
    let mut sum = Adler::new();
    let mut line = String::new();
    for (path, content) in files {
        line.clear();
        writeln!(line, "{content:x}  {name}/{path}").expect("a String takes everything");
        sum.update(line.as_bytes());
    }
    sum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_adler_32() {
        assert_eq!(Adler::from_reader(&b"Wikipedia"[..]).unwrap(), 0x11e6_0398);
        assert_eq!(checksum("out", &[]), 1);
        let many = vec![0xff; 100_000];
        assert_eq!(Adler::from_reader(&many[..]).unwrap(), 0x149a_302c);
    }
}
