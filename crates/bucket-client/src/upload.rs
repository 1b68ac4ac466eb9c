//! What is put into a bucket: bytes in memory, or a file.

use std::fs::File;

use artifact::digest::Digest;
use bytes::Bytes;
use reqwest::Body;

/// Content of an object. Stores want to know its length, and S3 its digest, before it comes.
#[derive(Debug)]
pub struct Upload {
    content: Content,
    size: u64,
    digest: Digest,
}

#[derive(Debug)]
enum Content {
    Bytes(Bytes),
    File(File),
}

impl Upload {
    /// These bytes.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self {
            size: bytes.len() as u64,
            digest: Digest::from_content(&bytes),
            content: Content::Bytes(bytes),
        }
    }

    /// A file from where it stands, of which so many bytes with this digest are left.
    pub fn from_file(file: File, size: u64, digest: Digest) -> Self {
        Self {
            content: Content::File(file),
            size,
            digest,
        }
    }

    /// Number of bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Their SHA-256 in hex.
    pub(super) fn hash(&self) -> String {
        self.digest.hex()
    }

    pub(super) fn into_body(self) -> Body {
        match self.content {
            Content::Bytes(bytes) => bytes.into(),
            Content::File(file) => tokio::fs::File::from_std(file).into(),
        }
    }
}
