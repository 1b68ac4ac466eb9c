//! SSH signatures, as `ssh-keygen -Y sign` and Git make them (OpenSSH's PROTOCOL.sshsig).
//!
//! In: the armored signature, the signed bytes, lists of trusted keys in the format of `authorized_keys`, the time. Out:
//! the fingerprint of the key that signed, or why no key did. Only the namespace `git` counts: a signature that was
//! made for something else says nothing about a commit.
//!
//! Decisions are those of Flux (hiddeco/sshsig on golang.org/x/crypto/ssh), and stricter where OpenSSH is: no
//! signatures with SHA-1, no DSA, no RSA below 2048 bits, and no keys that are there to certify others. Limits of time
//! in a list (`expiry-time`, `valid-after`, `valid-before`) are held against the time of the verification: the time that a
//! commit gives is its author's to choose.

mod key;
mod list;
mod wire;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

use self::key::PublicKey;
use self::list::{Entry, Limit};
use self::wire::Reader;

/// The namespace of signatures over Git objects.
const NAMESPACE: &[u8] = b"git";
const PREAMBLE: &[u8; 6] = b"SSHSIG";
const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";
/// A signature of the largest RSA key needs a tenth of it.
const MAX_SIGNATURE: usize = 64 << 10;

/// Why a signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing to verify.
    #[error("unable to verify payload: {0} is empty")]
    Empty(&'static str),
    /// The signature cannot be read.
    #[error("unable to unarmor SSH signature: {0}")]
    ReadSignature(&'static str),
    /// The list of keys cannot be read, and there is no other.
    #[error("unable to parse authorized keys: {0}")]
    ReadKeys(#[from] list::Error),
    /// No key of the lists made it.
    #[error("unable to verify payload with any of the given authorized keys: no matching key: {0}")]
    NoMatchingKey(Mismatch),
}

/// Why none of the keys matches.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The key that signed is in none of the lists.
    #[error("the signature was made with the key {fingerprint}, which is not among them")]
    Unknown {
        /// Of the key in the signature.
        fingerprint: String,
    },
    /// It is, but the signature is not one over these bytes.
    #[error("key {fingerprint}: {problem}")]
    Refused {
        /// Of the key in the signature.
        fingerprint: String,
        /// Why it does not count.
        problem: &'static str,
    },
}

/// Verifies an armored signature over the payload. Answers the fingerprint of the key that made it.
///
/// # Errors
/// When the signature was not made over these bytes with one of the keys.
pub fn verify(signature: &[u8], payload: &[u8], lists: &[&[u8]], now: Timestamp) -> Result<String, Error> {
    if payload.is_empty() {
        return Err(Error::Empty("payload"));
    }
    let signature = Signature::read(signature)?;
    let fingerprint = signature.key.fingerprint();
    let mut entries = Vec::new();
    let mut unreadable = None;
    let mut has_list = false;
    for list in lists {
        match list::read(list) {
            Ok(read) => {
                has_list = true;
                entries.extend(read);
            }
            Err(error) => unreadable = unreadable.or(Some(error)),
        }
    }
    if let (false, Some(error)) = (has_list, unreadable) {
        return Err(error.into());
    }
    let problem = match trust(&entries, &signature.key, now) {
        Trust::Unknown => return Err(Error::NoMatchingKey(Mismatch::Unknown { fingerprint })),
        Trust::Refused(problem) => Some(problem),
        Trust::Trusted => signature.problem(payload),
    };
    match problem {
        None => Ok(fingerprint),
        Some(problem) => Err(Error::NoMatchingKey(Mismatch::Refused { fingerprint, problem })),
    }
}

enum Trust {
    Unknown,
    Refused(&'static str),
    Trusted,
}

/// One entry that trusts the key is enough.
fn trust(entries: &[Entry], key: &PublicKey, now: Timestamp) -> Trust {
    let mut verdict = Trust::Unknown;
    for entry in entries.iter().filter(|entry| entry.blob == key.blob()) {
        match entry.limits.iter().find_map(|limit| limit.refuses(now)) {
            None => return Trust::Trusted,
            Some(problem) => verdict = Trust::Refused(problem),
        }
    }
    verdict
}

impl Limit {
    fn refuses(&self, now: Timestamp) -> Option<&'static str> {
        match self {
            Self::NotBefore(start) if now < *start => Some("it is not valid yet"),
            Self::NotAfter(end) if now >= *end => Some("it has expired"),
            Self::NotBefore(_) | Self::NotAfter(_) => None,
            Self::OtherNamespace => Some("it is not trusted for the namespace git"),
            Self::Authority => Some("it may only certify other keys, which is not supported"),
        }
    }
}

/// A signature that was read.
struct Signature {
    key: PublicKey,
    namespace: Vec<u8>,
    hash: Vec<u8>,
    algorithm: Vec<u8>,
    blob: Vec<u8>,
    /// Remaining fields of keys that are kept in hardware.
    rest: Vec<u8>,
}

impl Signature {
    fn read(armored: &[u8]) -> Result<Self, Error> {
        let broken = Error::ReadSignature("it is broken");
        let bytes = dearmor(armored)?;
        let mut reader = Reader::new(&bytes);
        if reader.take(PREAMBLE.len()) != Some(PREAMBLE) || reader.number() != Some(1) {
            return Err(Error::ReadSignature("its version is unknown"));
        }
        let mut field = || reader.text().map(<[u8]>::to_vec);
        let fields = (|| Some((field()?, field()?, field()?, field()?, field()?)))();
        let (key, namespace, _reserved, hash, signature) = fields.ok_or(broken.clone())?;
        if !reader.is_empty() {
            return Err(broken);
        }
        let key = PublicKey::read(&key).ok_or(Error::ReadSignature("its key is of an unknown kind"))?;
        let mut inner = Reader::new(&signature);
        let fields = (|| Some((inner.text()?.to_vec(), inner.text()?.to_vec())))();
        let (algorithm, blob) = fields.ok_or(broken)?;
        Ok(Self {
            key,
            namespace,
            hash,
            algorithm,
            blob,
            rest: inner.rest().to_vec(),
        })
    }

    /// Why this is no signature over the payload; None when it is one.
    fn problem(&self, payload: &[u8]) -> Option<&'static str> {
        if self.namespace != NAMESPACE {
            return Some("the signature was made for another namespace than git");
        }
        let digest = match self.hash.as_slice() {
            b"sha256" => &aws_lc_rs::digest::SHA256,
            b"sha512" => &aws_lc_rs::digest::SHA512,
            _ => return Some("the signature uses a hash other than sha256 and sha512"),
        };
        let digest = aws_lc_rs::digest::digest(digest, payload);
        let mut signed = PREAMBLE.to_vec();
        for field in [NAMESPACE, b"", &self.hash, digest.as_ref()] {
            wire::push_text(&mut signed, field);
        }
        self.key.problem(&self.algorithm, &self.blob, &self.rest, &signed)
    }
}

/// The bytes between the first line and the last.
fn dearmor(armored: &[u8]) -> Result<Vec<u8>, Error> {
    if armored.trim_ascii().is_empty() {
        return Err(Error::Empty("signature"));
    }
    if armored.len() > MAX_SIGNATURE {
        return Err(Error::ReadSignature("it is too large"));
    }
    let text = std::str::from_utf8(armored).map_err(|_| Error::ReadSignature("it is not text"))?;
    let body = text
        .trim()
        .strip_prefix(BEGIN)
        .and_then(|rest| rest.split_once(END));
    let (body, _) = body.ok_or(Error::ReadSignature("its frame is broken"))?;
    let body: String = body.split_ascii_whitespace().collect();
    STANDARD
        .decode(body)
        .map_err(|_| Error::ReadSignature("it is not base64"))
}

#[cfg(test)]
mod tests;
