//! Recipients: for whom a data key is encrypted.

use std::fmt;

use super::{PREFIX_OF_HYBRID_RECIPIENT, PREFIX_OF_RECIPIENT, armor, bech32, file, hybrid, x25519};

/// A recipient: the public half of an [identity](super::Identities), `age1…` or `age1pq1…`.
#[derive(Clone)]
pub struct Recipient {
    text: String,
    key: Key,
}

#[derive(Clone)]
enum Key {
    X25519([u8; 32]),
    Hybrid(Box<hybrid::Recipient>),
}

/// Why a text is no recipient.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no recipient of age: {1}")]
pub struct RecipientError(String, &'static str);

/// Nothing could be encrypted, since the library refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to encrypt for a recipient of age: {0}")]
pub struct SealError(pub(super) &'static str);

impl Recipient {
    /// Reads a recipient.
    ///
    /// # Errors
    /// When it is none, or one of a kind that is not supported: a public key of SSH, one of a plugin.
    pub fn parse(text: &str) -> Result<Self, RecipientError> {
        let failed = |problem| RecipientError(text.chars().take(80).collect(), problem);
        if text.starts_with("ssh-") {
            return Err(failed("keys of SSH are not supported"));
        }
        let (prefix, bytes) = bech32::decode(text).map_err(|_| failed("it is malformed"))?;
        let key = match prefix.as_str() {
            PREFIX_OF_RECIPIENT => {
                let bytes = <[u8; 32]>::try_from(bytes.as_slice());
                Key::X25519(bytes.map_err(|_| failed("it does not have 32 bytes"))?)
            }
            PREFIX_OF_HYBRID_RECIPIENT => {
                let recipient = hybrid::Recipient::new(&bytes);
                Key::Hybrid(Box::new(recipient.map_err(failed)?))
            }
            _ => return Err(failed("its kind is unknown; those of plugins are not supported")),
        };
        Ok(Self {
            text: text.to_owned(),
            key,
        })
    }

    /// Encrypts a small content for this recipient alone, as an armored file.
    ///
    /// # Errors
    /// When the library refuses, which it does without randomness.
    pub fn seal(&self, content: &[u8]) -> Result<String, SealError> {
        let sealed = file::seal(content, |file_key| match &self.key {
            Key::X25519(key) => x25519::wrap(key, file_key),
            Key::Hybrid(recipient) => recipient.wrap(file_key),
        });
        Ok(armor::encode(&sealed.map_err(SealError)?))
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Debug for Recipient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Recipient({})", self.text)
    }
}
