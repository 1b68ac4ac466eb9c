//! Digests as they are written, `algorithm:hex`: made with SHA-256, compared with whatever Flux was told to use.

use std::io;

use sha1::Sha1;
use sha2::digest::Digest;
use sha2::{Sha256, Sha384, Sha512};

/// A text that is no digest, or one of an algorithm that is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Invalid;

/// Returns the digest of what is written.
pub(crate) fn digest_of(write: impl FnOnce(&mut dyn io::Write)) -> String {
    format!("sha256:{}", hash::<Sha256>(write))
}

/// Returns whether a digest is that of what is written.
pub(crate) fn is_of(digest: &str, write: impl FnOnce(&mut dyn io::Write)) -> Result<bool, Invalid> {
    let (algorithm, value) = digest.split_once(':').ok_or(Invalid)?;
    let digits = match algorithm {
        "sha1" => 40,
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return Err(Invalid),
    };
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if value.len() != digits || !value.bytes().all(is_hex) {
        return Err(Invalid);
    }
    let found = match algorithm {
        "sha1" => hash::<Sha1>(write),
        "sha384" => hash::<Sha384>(write),
        "sha512" => hash::<Sha512>(write),
        _ => hash::<Sha256>(write),
    };
    Ok(found == value)
}

fn hash<D: Digest>(write: impl FnOnce(&mut dyn io::Write)) -> String {
    let mut hasher = Hasher(D::new());
    write(&mut hasher);
    hex::encode(hasher.0.finalize())
}

struct Hasher<D>(D);

impl<D: Digest> io::Write for Hasher<D> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
