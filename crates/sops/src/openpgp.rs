//! Data keys that are encrypted with OpenPGP.
//!
//! Keys have no passphrase: there is no one to ask. Whether a key has expired or was revoked does not matter for what
//! was encrypted before, and gpg, which Flux runs, does not ask either.

use std::io::Read as _;

use cloud_identity::Future;
use pgp::composed::{Deserializable as _, Message, SignedSecretKey};
use pgp::types::Password;
use zeroize::Zeroizing;

use crate::key::{EncryptedKey, KeyError, KeyService, MasterKey};

const ARMOR: &str = "-----BEGIN PGP ";
/// More than any data key has; a message may be compressed.
const MAX_DATA_KEY: u64 = 4096;
/// A message may be signed or compressed around what it says.
const MAX_LAYERS: usize = 4;
/// Keys of one file.
const MAX_KEYS: usize = 1000;

/// Why a text holds no keys. Quotes nothing of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to import armored key data into GnuPG keyring: {0}")]
pub struct ParseError(&'static str);

/// Secret keys of OpenPGP.
#[derive(Default)]
pub struct SecretKeys(Vec<SignedSecretKey>);

impl SecretKeys {
    /// Adds the secret keys of a file, which is armored, in one or several blocks, or binary. Public keys in it are
    /// passed over.
    pub fn import(&mut self, file: &[u8]) -> Result<(), ParseError> {
        let before = self.0.len();
        match std::str::from_utf8(file) {
            Ok(text) if text.contains(ARMOR) => {
                let blocks = text.split(ARMOR).skip(1).map(|block| format!("{ARMOR}{block}"));
                for block in blocks.filter(|block| block.contains("PRIVATE KEY BLOCK")) {
                    let block = Zeroizing::new(block);
                    if let Ok((keys, _)) = SignedSecretKey::from_armor_many(block.as_bytes()) {
                        self.0.extend(keys.filter_map(Result::ok).take(MAX_KEYS));
                    }
                }
            }
            _ => {
                if let Ok(keys) = SignedSecretKey::from_bytes_many(file) {
                    self.0.extend(keys.filter_map(Result::ok).take(MAX_KEYS));
                }
            }
        }
        if self.0.len() == before {
            return Err(ParseError("it holds no secret key"));
        }
        Ok(())
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Opens an armored message.
    pub fn open(&self, armored: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
        // What rPGP says may quote what it read; these words do not.
        let failed = |problem: &str| KeyError(format!("could not decrypt data key with PGP key: {problem}"));
        let (message, _) =
            Message::from_armor(armored.as_bytes()).map_err(|_| failed("the message cannot be read"))?;
        let password = Password::empty();
        let message = message
            .decrypt_with_keys(vec![&password], self.0.iter().collect())
            .map_err(|_| failed("no secret key, or one with a passphrase"))?;
        contents(message).ok_or_else(|| failed("the message holds no data key"))
    }
}

/// Returns the contents of a decrypted message, whole and authenticated.
fn contents(mut message: Message<'_>) -> Option<Zeroizing<Vec<u8>>> {
    for _ in 0..MAX_LAYERS {
        if !message.is_compressed() {
            break;
        }
        message = message.decompress().ok()?;
    }
    let mut data = Zeroizing::new(Vec::new());
    // One byte more than is allowed, so that the end of what is allowed is read, and with it its authentication.
    message.take(MAX_DATA_KEY + 1).read_to_end(&mut data).ok()?;
    let length = u64::try_from(data.len()).ok()?;
    (1..=MAX_DATA_KEY).contains(&length).then_some(data)
}

impl KeyService for SecretKeys {
    fn handles(&self, master: &MasterKey) -> bool {
        matches!(master, MasterKey::OpenPgp { .. }) && !self.is_empty()
    }

    fn decrypt<'a>(&'a self, key: &'a EncryptedKey) -> Future<'a, Result<Zeroizing<Vec<u8>>, KeyError>> {
        Box::pin(std::future::ready(self.open(&key.encrypted)))
    }
}

impl std::fmt::Debug for SecretKeys {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "SecretKeys({})", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

    fn read(name: &str) -> Vec<u8> {
        std::fs::read(format!("{FOLDER}/{name}")).unwrap()
    }

    fn keys(files: &[&str]) -> SecretKeys {
        let mut keys = SecretKeys::default();
        for file in files {
            keys.import(&read(file)).unwrap();
        }
        keys
    }

    fn opened(keys: &SecretKeys, message: &str) -> Result<Vec<u8>, String> {
        let message = String::from_utf8(read(message)).unwrap();
        keys.open(&message)
            .map(|key| key.to_vec())
            .map_err(|error| error.0)
    }

    #[test]
    fn messages_of_gpg_are_opened() {
        let keys = keys(&["keys/curve.asc", "gpg/rsa.gpg"]);
        for message in ["gpg/rsa.txt", "gpg/curve.txt", "gpg/zip.txt", "gpg/zlib.txt"] {
            assert_eq!(opened(&keys, message).unwrap(), [b'k'; 32], "{message}");
        }
    }

    #[test]
    fn one_file_may_hold_several_keys() {
        let mut both = read("keys/p256.asc");
        both.extend(b"\n");
        both.extend(read("keys/rsa.asc"));
        let mut keys = SecretKeys::default();
        keys.import(&both).unwrap();
        assert_eq!(opened(&keys, "gpg/rsa.txt").unwrap(), [b'k'; 32]);
    }

    #[test]
    fn what_cannot_be_opened_is_refused() {
        let without = "could not decrypt data key with PGP key: no secret key, or one with a passphrase";
        assert_eq!(
            opened(&keys(&["keys/curve.asc"]), "gpg/rsa.txt").unwrap_err(),
            without
        );
        assert_eq!(
            opened(&keys(&["gpg/locked.key"]), "gpg/locked.txt").unwrap_err(),
            without
        );
        let large = opened(&keys(&["keys/rsa.asc"]), "gpg/large.txt").unwrap_err();
        assert_eq!(
            large,
            "could not decrypt data key with PGP key: the message holds no data key"
        );
        for file in [&read("gpg/public.key")[..], b"hunter2", b""] {
            let error = SecretKeys::default().import(file).unwrap_err().to_string();
            assert_eq!(
                error,
                "failed to import armored key data into GnuPG keyring: it holds no secret key"
            );
        }
    }

    #[test]
    fn a_changed_message_is_refused() {
        let message = String::from_utf8(read("gpg/rsa.txt")).unwrap();
        let lines: Vec<&str> = message.lines().collect();
        let last = lines.len() - 3;
        let changed: String = lines[last]
            .chars()
            .map(|c| if c == 'A' { 'B' } else { 'A' })
            .collect();
        let message = message.replace(lines[last], &changed);
        assert!(keys(&["keys/rsa.asc"]).open(&message).is_err());
    }
}
