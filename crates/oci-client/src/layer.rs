//! A layer as it arrives: a reader that counts and hashes, and refuses what is not the promised content.

use std::io::{self, Read};

use artifact::digest::{Digest, Hasher};
use bytes::Bytes;
use reqwest::Response;
use tokio::runtime::Handle;
use tokio::time::Instant;

use transport::http;
use transport::received::Received;

/// A layer that is not what its manifest says.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rest could not be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Too short; what is too long fails while reading.
    #[error("failed to verify the layer: it has {actual} bytes instead of {expected}")]
    Size {
        /// As in the manifest.
        expected: u64,
        /// As it came.
        actual: u64,
    },
    /// Other content.
    #[error("failed to verify the layer: its digest is '{actual}' instead of '{expected}'")]
    Digest {
        /// As in the manifest.
        expected: Digest,
        /// As it came.
        actual: Digest,
    },
}

/// Reads a blob on a blocking thread of the runtime in which it was made.
pub struct Layer {
    response: Response,
    chunk: Bytes,
    runtime: Handle,
    deadline: Instant,
    hasher: Hasher,
    expected: Digest,
    size: u64,
    read: u64,
    received: Received,
}

impl Layer {
    pub(super) fn new(response: Response, expected: Digest, size: u64, deadline: Instant) -> Self {
        let (runtime, hasher) = (Handle::current(), Hasher::new());
        Self {
            response,
            chunk: Bytes::new(),
            runtime,
            deadline,
            hasher,
            expected,
            size,
            read: 0,
            received: Received::here(),
        }
    }

    /// Reads what a reader of archives left over, and says whether all of it was the promised content. What was read
    /// before must not be used unless this succeeds.
    pub fn finish(mut self) -> Result<(), Error> {
        io::copy(&mut self, &mut io::sink())?;
        if self.read != self.size {
            return Err(Error::Size {
                expected: self.size,
                actual: self.read,
            });
        }
        let (expected, actual) = (self.expected, self.hasher.finish());
        if expected == actual {
            Ok(())
        } else {
            Err(Error::Digest { expected, actual })
        }
    }
}

impl Read for Layer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() {
            let (runtime, response) = (&self.runtime, &mut self.response);
            let next = http::next_chunk(response, self.deadline);
            let next = self.received.within(|| runtime.block_on(next));
            let Some(chunk) = next.map_err(io::Error::other)? else {
                return Ok(0);
            };
            self.read += chunk.len() as u64;
            if self.read > self.size {
                let message = format!(
                    "the layer is larger than the {} bytes that its manifest says",
                    self.size
                );
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            self.hasher.update(&chunk);
            self.chunk = chunk;
        }
        let length = buffer.len().min(self.chunk.len());
        buffer[..length].copy_from_slice(&self.chunk.split_to(length));
        Ok(length)
    }
}
