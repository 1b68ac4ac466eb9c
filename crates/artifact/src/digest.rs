//! The digest of content: SHA-256, written `sha256:<64 lowercase hex digits>`.
//!
//! Blobs, folders and archives are all named by this type. Git's commit hashes and other algorithms appear only
//! inside a [`Revision`](crate::Revision), as text.

use std::{fmt, io, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

const PREFIX: &str = "sha256:";

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The text names another algorithm, or none.
    #[error("failed to parse digest '{0}': only sha256 is supported")]
    Algorithm(String),
    /// The part after the colon is not 64 lowercase hex digits.
    #[error("failed to parse digest '{0}': expected 64 lowercase hex digits")]
    Encoding(String),
}

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn from_content(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }

    /// The 64 hex digits without the algorithm, for file names.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Reads 64 lowercase hex digits.
    ///
    /// # Errors
    /// [`ParseError::Encoding`] for anything else.
    pub fn from_hex(text: &str) -> Result<Self, ParseError> {
        let error = || ParseError::Encoding(abbreviate(text));
        // Upper case is refused, so that equal digests are equal text.
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Err(error());
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| error())?;
        Ok(Self(bytes))
    }
}

/// Computes the digest of content that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// A hasher that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The digest of all pieces.
    #[must_use]
    pub fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl io::Write for Hasher {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.update(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FromStr for Digest {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let hex = text
            .strip_prefix(PREFIX)
            .ok_or_else(|| ParseError::Algorithm(abbreviate(text)))?;
        Self::from_hex(hex)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{PREFIX}{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Shortens a text from outside for messages, since its length is not ours to choose.
fn abbreviate(text: &str) -> String {
    const SHOWN: usize = 80;
    if text.chars().count() <= SHOWN {
        return text.to_owned();
    }
    text.chars().take(SHOWN).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    const HELLO: &str = "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    #[test]
    fn text_and_digest_are_one_to_one() {
        assert_eq!(Digest::from_content(b"hello").to_string(), HELLO);
        assert_eq!(HELLO.parse(), Ok(Digest::from_content(b"hello")));
        assert_eq!(
            serde_json::to_string(&Digest::from_content(b"hello")).unwrap(),
            format!("\"{HELLO}\"")
        );
        assert_eq!(
            serde_json::from_str::<Digest>(&format!("\"{HELLO}\"")).unwrap(),
            Digest::from_content(b"hello")
        );
    }

    #[test]
    fn pieces_have_the_digest_of_the_whole() {
        let mut hasher = Hasher::new();
        hasher.update(b"he");
        hasher.write_all(b"llo").unwrap();
        assert_eq!(hasher.finish(), Digest::from_content(b"hello"));
    }

    #[test]
    fn other_texts_are_refused() {
        let hex = &HELLO[PREFIX.len()..];
        let algorithm = [
            hex.to_owned(),
            format!("sha512:{hex}"),
            format!("SHA256:{hex}"),
            String::new(),
        ];
        for text in algorithm {
            assert_eq!(
                text.parse::<Digest>(),
                Err(ParseError::Algorithm(text.clone())),
                "{text}"
            );
        }
        let encoding = [
            format!("sha256:{}", hex.to_uppercase()),
            "sha256:".to_owned(),
            format!("{HELLO}0"),
        ];
        for text in encoding {
            assert!(
                matches!(text.parse::<Digest>(), Err(ParseError::Encoding(_))),
                "{text}"
            );
        }
        let long = "x".repeat(100_000).parse::<Digest>().unwrap_err().to_string();
        assert!(long.len() < 300, "{}", long.len());
    }
}
