//! NATS's keys (nkeys): an Ed25519 key whose seed and public half are written in base32, with a prefix that says whose
//! it is, and a checksum.

use std::fmt;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::Error;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// `S`: a seed.
const SEED: u8 = 18 << 3;
/// `U`: of a user.
const USER: u8 = 20 << 3;
/// Two bytes of prefix, the seed, two of checksum.
const SEED_BYTES: usize = 2 + 32 + 2;

/// A user's key.
pub(super) struct Key {
    pair: Ed25519KeyPair,
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key(…)")
    }
}

impl Key {
    /// Reads a seed: `SU…`. The error does not quote it.
    pub(super) fn of_seed(text: &str) -> Result<Self, Error> {
        let unusable = || Error::invalid("error parsing nkey seed: it must be the seed of a user (SU…)");
        let bytes = decoded(text.trim()).filter(|bytes| bytes.len() == SEED_BYTES);
        let bytes = bytes.ok_or_else(unusable)?;
        let (content, checksum) = bytes.split_at(SEED_BYTES - 2);
        let whose = (content[0] & 7) << 5 | (content[1] & 248) >> 3;
        if content[0] & 248 != SEED || whose != USER || checksum != crc16(content).to_le_bytes() {
            return Err(unusable());
        }
        let pair = Ed25519KeyPair::from_seed_unchecked(&content[2..]);
        pair.map(|pair| Self { pair }).map_err(|_| unusable())
    }

    /// The public half: `U…`.
    pub(super) fn public(&self) -> String {
        let mut bytes = vec![USER];
        bytes.extend_from_slice(self.pair.public_key().as_ref());
        bytes.extend_from_slice(&crc16(&bytes).to_le_bytes());
        encoded(&bytes)
    }

    /// A signature, in base64 for URLs.
    pub(super) fn sign(&self, message: &[u8]) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.sign(message))
    }
}

/// CRC-16 as XMODEM has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| match crc & 0x8000 {
            0 => crc << 1,
            _ => crc << 1 ^ 0x1021,
        })
    })
}

fn encoded(bytes: &[u8]) -> String {
    let mut text = String::new();
    let (mut buffer, mut bits) = (0u32, 0);
    for byte in bytes {
        buffer = buffer << 8 | u32::from(*byte);
        bits += 8;
        while bits >= 5 {
            bits -= 5;
            text.push(char::from(ALPHABET[(buffer >> bits & 31) as usize]));
        }
        buffer &= (1 << bits) - 1;
    }
    if bits > 0 {
        text.push(char::from(ALPHABET[(buffer << (5 - bits) & 31) as usize]));
    }
    text
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    // Longer than any key: not worth reading.
    if text.len() > 100 {
        return None;
    }
    let mut bytes = Vec::new();
    let (mut buffer, mut bits) = (0u32, 0);
    for c in text.bytes() {
        let value = ALPHABET.iter().position(|known| *known == c)?;
        buffer = buffer << 5 | u32::try_from(value).ok()?;
        bits += 5;
        if bits >= 8 {
            bits -= 8;
            bytes.push((buffer >> bits & 255) as u8);
        }
        buffer &= (1 << bits) - 1;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};

    use super::*;

    /// A key that opens nothing, made with nkeys of NATS, which wrote its public half too.
    const SEED_TEXT: &str = include_str!("key/seed.txt");
    const PUBLIC_TEXT: &str = include_str!("key/public.txt");
    /// Signature by nkeys of the text `nonce`.
    const SIGNATURE_TEXT: &str = include_str!("key/signature.txt");

    #[test]
    fn a_seed_is_the_key_that_nats_makes_of_it() {
        let key = Key::of_seed(SEED_TEXT).unwrap();
        assert_eq!(key.public(), PUBLIC_TEXT.trim());
        assert_eq!(key.sign(b"nonce"), SIGNATURE_TEXT.trim());
        let signature = URL_SAFE_NO_PAD.decode(key.sign(b"nonce")).unwrap();
        UnparsedPublicKey::new(&ED25519, key.pair.public_key().as_ref())
            .verify(b"nonce", &signature)
            .unwrap();
    }

    #[test]
    fn what_is_no_seed_is_refused_without_quoting_it() {
        let seed = SEED_TEXT.trim();
        let wrong_end = format!("{}A", &seed[..seed.len() - 1]);
        let of_account = format!("SA{}", &seed[2..]);
        for text in [
            "",
            "hunter2",
            PUBLIC_TEXT.trim(),
            &wrong_end,
            &of_account,
            &seed.repeat(9),
        ] {
            let error = Key::of_seed(text).unwrap_err().to_string();
            assert_eq!(
                error,
                "error parsing nkey seed: it must be the seed of a user (SU…)"
            );
        }
    }
}
