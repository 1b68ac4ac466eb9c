//! Data keys that are encrypted with age (<https://age-encryption.org/v1>).
//!
//! Only what SOPS needs: small armored files, for keys of X25519 or of its hybrid with ML-KEM-768. The crate
//! `age` does not know the second kind, and needs forty crates that translate its messages. Keys of SSH and plugins,
//! which the `sops` command takes from its user's machine, Flux does not take either.

mod armor;
mod bech32;
mod file;
mod hybrid;
mod recipient;
mod unwrapped;
mod x25519;

use cloud_identity::Future;
use zeroize::Zeroizing;

use crate::key::{EncryptedKey, KeyError, KeyService, MasterKey};
use file::Stanza;
pub use recipient::{Recipient, RecipientError, SealError};
use unwrapped::Unwrapped;

const PREFIX: &str = "AGE-SECRET-KEY-";
const HYBRID_PREFIX: &str = "AGE-SECRET-KEY-PQ-";
const PREFIX_OF_RECIPIENT: &str = "age";
const PREFIX_OF_HYBRID_RECIPIENT: &str = "age1pq";

/// Why a text holds no identities. Quotes nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to parse and add to age identities: line {line}: {problem}")]
pub struct ParseError {
    line: usize,
    problem: &'static str,
}

/// Keys of age.
#[derive(Default)]
pub struct Identities(Vec<Identity>);

enum Identity {
    X25519(x25519::Identity),
    Hybrid(Box<hybrid::Identity>),
}

type Problem = &'static str;

impl Identities {
    /// Adds the identities of a file: one a line; empty lines and those that begin with `#` do not count.
    pub fn import(&mut self, text: &str) -> Result<(), ParseError> {
        let mut found = Vec::new();
        for (number, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let identity = Identity::parse(line).map_err(|problem| ParseError {
                line: number + 1,
                problem,
            })?;
            found.push(identity);
        }
        self.0.extend(found);
        Ok(())
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens an armored file.
    pub fn open(&self, armored: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let failed = |problem| {
            KeyError(format!(
                "failed to create reader for decrypting sops data key with age: {problem}"
            ))
        };
        let binary = armor::decode(armored).map_err(failed)?;
        self.open_binary(&binary).map_err(failed)
    }

    fn open_binary(&self, binary: &[u8]) -> Result<Zeroizing<Vec<u8>>, Problem> {
        file::open(binary, |stanzas| self.file_key(stanzas))
    }

    /// The key of a file, from the first identity that it is for.
    fn file_key(&self, stanzas: &[Stanza]) -> Result<Zeroizing<Vec<u8>>, Problem> {
        for identity in &self.0 {
            for stanza in stanzas {
                let unwrapped = match identity {
                    Identity::X25519(identity) => identity.unwrap(stanza)?,
                    Identity::Hybrid(identity) => identity.unwrap(stanza)?,
                };
                if let Unwrapped::FileKey(key) = unwrapped {
                    return Ok(key);
                }
            }
        }
        Err("no identity matched any of the recipients")
    }
}

impl Identity {
    fn parse(text: &str) -> Result<Self, Problem> {
        if !text.starts_with(PREFIX) {
            return Err(if text.starts_with("AGE-PLUGIN-") {
                "identities of plugins are not supported"
            } else {
                "unknown identity type"
            });
        }
        let (prefix, secret) = bech32::decode(text).map_err(|_| "malformed secret key")?;
        let secret: Zeroizing<[u8; 32]> = match <[u8; 32]>::try_from(secret.as_slice()) {
            Ok(secret) => Zeroizing::new(secret),
            Err(_) => return Err("malformed secret key: it does not have 32 bytes"),
        };
        match prefix.as_str() {
            PREFIX => x25519::Identity::new(&secret).map(Self::X25519),
            HYBRID_PREFIX => hybrid::Identity::new(&secret).map(|identity| Self::Hybrid(Box::new(identity))),
            _ => Err("malformed secret key: unknown type"),
        }
    }
}

impl KeyService for Identities {
    fn handles(&self, master: &MasterKey) -> bool {
        matches!(master, MasterKey::Age { .. }) && !self.is_empty()
    }

    fn decrypt<'a>(&'a self, key: &'a EncryptedKey) -> Future<'a, Result<Zeroizing<Vec<u8>>, KeyError>> {
        Box::pin(std::future::ready(self.open(&key.encrypted)))
    }
}

impl std::fmt::Debug for Identities {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Identities({})", self.0.len())
    }
}

#[cfg(test)]
#[path = "age/tests.rs"]
mod tests;
