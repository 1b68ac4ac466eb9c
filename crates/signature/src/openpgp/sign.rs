//! Signatures that we make: over commits, with a key of the user's.
//!
//! In: an armored secret key of one owner, its passphrase, the bytes. Out: an armored detached signature. The key is chosen as
//! ProtonMail/go-crypto does: the newest subkey that may sign now, else the primary key. The key is a tenant's: what
//! its passphrase makes us compute is bounded.

use jiff::Timestamp;
use pgp::composed::{ArmorOptions, Deserializable as _, DetachedSignature, SignedSecretKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::ser::Serialize as _;
use pgp::types::{KeyDetails as _, KeyId, Password, S2kParams, SecretParams, StringToKey};
use rand::rngs::OsRng;

use super::certificate::Certificate;
use super::packets;

/// Larger keys are not read.
const MAX_KEY: usize = 1 << 20;
/// Argon2 takes 2 to this power KiB: 64 MiB.
const MAX_ARGON2_MEMORY: u8 = 16;
const MAX_ARGON2_PASSES: u8 = 8;

/// Why there is no signature. Quotes nothing of the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is no armored secret key.
    #[error("failed to read the OpenPGP key: {0}")]
    Read(&'static str),
    /// Which of several keys is meant is not known.
    #[error("failed to read the OpenPGP key: it holds the keys of {0} owners, and must hold one")]
    Several(usize),
    /// None of its keys may sign now.
    #[error("the OpenPGP key {0} has no key that may sign now")]
    NoSigningKey(String),
    /// It has a passphrase, and none is given, or another.
    #[error("failed to decrypt the OpenPGP key {0}: the passphrase is missing or wrong")]
    Passphrase(String),
    /// Its passphrase is protected in a way that takes too much.
    #[error("refused the OpenPGP key {0}: undoing its passphrase takes too much memory")]
    Expensive(String),
    /// The key cannot sign.
    #[error("failed to sign with the OpenPGP key {0}")]
    Sign(String),
}

/// A key that signs.
pub struct Signer {
    key: SignedSecretKey,
    password: Password,
    /// Which subkey; None: the primary key.
    subkey: Option<usize>,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let primary = super::shown(self.key.primary_key.legacy_key_id());
        formatter.debug_tuple("Signer").field(&primary).finish()
    }
}

impl Signer {
    /// Reads an armored secret key and chooses what of it signs.
    ///
    /// # Errors
    /// When it is not the key of one owner, or none of it may sign now. The passphrase is not tried.
    pub fn read(armored: &[u8], passphrase: Option<&str>, now: Timestamp) -> Result<Self, Error> {
        if armored.len() > MAX_KEY {
            return Err(Error::Read("it is larger than 1 MiB"));
        }
        let keys = SignedSecretKey::from_armor_many(armored)
            .map_err(|_| Error::Read("it is not an armored secret key"))?
            .0;
        let mut keys: Vec<_> = keys.filter_map(Result::ok).take(16).collect();
        let (Some(key), true) = (keys.pop(), keys.is_empty()) else {
            return Err(match keys.len() {
                0 => Error::Read("it holds no secret key"),
                others => Error::Several(others + 1),
            });
        };
        let subkey = choose(&key, now)?;
        let signer = Self {
            key,
            password: Password::from(passphrase.unwrap_or_default()),
            subkey,
        };
        let id = super::shown(signer.key.primary_key.legacy_key_id());
        if is_expensive(signer.secret()) {
            return Err(Error::Expensive(id));
        }
        Ok(signer)
    }

    /// Signs the bytes. Returns the armored signature.
    ///
    /// # Errors
    /// When the passphrase is wrong or missing, or the key cannot sign.
    pub fn sign(&self, payload: &[u8]) -> Result<String, Error> {
        let id = || super::shown(self.key.primary_key.legacy_key_id());
        let (hash, password) = (HashAlgorithm::Sha256, &self.password);
        let signature = match self.subkey {
            Some(at) => {
                let key = &self.key.secret_subkeys[at].key;
                DetachedSignature::sign_binary_data(OsRng, key, password, hash, payload)
            }
            None => {
                DetachedSignature::sign_binary_data(OsRng, &self.key.primary_key, password, hash, payload)
            }
        };
        let is_locked = self.secret().is_encrypted();
        let failed = |_| {
            if is_locked {
                Error::Passphrase(id())
            } else {
                Error::Sign(id())
            }
        };
        let signature = signature.map_err(failed)?;
        let armored = signature.to_armored_string(ArmorOptions::default());
        armored.map_err(|_| Error::Sign(id()))
    }

    fn secret(&self) -> &SecretParams {
        match self.subkey {
            Some(at) => self.key.secret_subkeys[at].key.secret_params(),
            None => self.key.primary_key.secret_params(),
        }
    }
}

/// Returns which subkey signs; None means the primary key.
fn choose(key: &SignedSecretKey, now: Timestamp) -> Result<Option<usize>, Error> {
    let public = key.to_public_key().to_bytes();
    let public = public.map_err(|_| Error::Read("it cannot be read"))?;
    let certificates =
        packets::read_keyring(&public).map_err(|_| Error::Read("its statements contradict each other"))?;
    let may_sign = |id: KeyId| {
        let candidates = certificates
            .iter()
            .flat_map(|certificate| Certificate::candidates(certificate, id));
        let mut usable =
            candidates.filter(|candidate| candidate.is_for_signing() && candidate.holds(now).is_ok());
        usable.next().is_some()
    };
    let subkeys = key.secret_subkeys.iter().enumerate();
    let newest = subkeys
        .filter(|(_, subkey)| may_sign(subkey.key.legacy_key_id()))
        .max_by_key(|(_, subkey)| subkey.key.created_at().as_secs());
    match newest {
        Some((at, _)) => Ok(Some(at)),
        None if may_sign(key.primary_key.legacy_key_id()) => Ok(None),
        None => Err(Error::NoSigningKey(super::shown(key.primary_key.legacy_key_id()))),
    }
}

fn is_expensive(secret: &SecretParams) -> bool {
    let SecretParams::Encrypted(encrypted) = secret else {
        return false;
    };
    match encrypted.string_to_key_params() {
        S2kParams::Aead { s2k, .. } | S2kParams::Cfb { s2k, .. } | S2kParams::MalleableCfb { s2k, .. } => {
            matches!(s2k, StringToKey::Argon2 { t, m_enc, .. } if *m_enc > MAX_ARGON2_MEMORY || *t > MAX_ARGON2_PASSES)
        }
        S2kParams::Unprotected | S2kParams::LegacyCfb { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use testkit::git::signing::Gpg;

    use super::*;
    use crate::openpgp::verify;

    const PAYLOAD: &[u8] = b"tree 1\nauthor a <a@b> 1 +0000\n\nwords\n";

    fn now() -> Timestamp {
        Timestamp::now()
    }

    fn secret(gpg: &Gpg, key: &str) -> Vec<u8> {
        gpg.gpg(
            &[
                "--armor",
                "--pinentry-mode",
                "loopback",
                "--passphrase",
                "",
                "--export-secret-keys",
                key,
            ],
            &[],
        )
        .unwrap()
    }

    #[test]
    fn signatures_of_all_kinds_of_keys_are_verified() {
        let gpg = Gpg::new().unwrap();
        for algorithm in ["ed25519", "rsa2048", "nistp256"] {
            let owner = format!("{algorithm} <a@example.com>");
            let key = gpg.generate(&[], &owner, algorithm, "sign", "never").unwrap();
            let signer = Signer::read(&secret(&gpg, &key), None, now()).unwrap();
            let signature = signer.sign(PAYLOAD).unwrap();
            let ring = gpg.export(&key).unwrap();
            let id = verify(signature.as_bytes(), PAYLOAD, &[&ring], now()).unwrap();
            assert!(key.ends_with(&id), "{algorithm}");
            // gpg thinks so too.
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("signature");
            std::fs::write(&file, &signature).unwrap();
            gpg.gpg(&["--verify", file.to_str().unwrap(), "-"], PAYLOAD)
                .unwrap();
        }
    }

    #[test]
    fn a_subkey_that_signs_goes_before_the_primary_key() {
        let gpg = Gpg::new().unwrap();
        let key = gpg
            .generate(&[], "sub <s@example.com>", "ed25519", "cert", "never")
            .unwrap();
        let read = |armored: &[u8]| Signer::read(armored, None, now());
        let error = read(&secret(&gpg, &key)).unwrap_err();
        assert!(matches!(error, Error::NoSigningKey(_)), "{error}");
        gpg.add_subkey(&key, "rsa2048", "sign", "never").unwrap();
        let signer = read(&secret(&gpg, &key)).unwrap();
        let signature = signer.sign(PAYLOAD).unwrap();
        let ring = gpg.export(&key).unwrap();
        verify(signature.as_bytes(), PAYLOAD, &[&ring], now()).unwrap();
    }

    #[test]
    fn a_passphrase_must_be_the_right_one() {
        let gpg = Gpg::new().unwrap();
        let parameters = "%echo\nKey-Type: EDDSA\nKey-Curve: ed25519\nKey-Usage: sign\nName-Email: p@example.com\nPassphrase: right\n%commit\n";
        gpg.gpg(
            &["--pinentry-mode", "loopback", "--gen-key"],
            parameters.as_bytes(),
        )
        .unwrap();
        let armored = gpg
            .gpg(
                &[
                    "--armor",
                    "--pinentry-mode",
                    "loopback",
                    "--passphrase",
                    "right",
                    "--export-secret-keys",
                    "p@example.com",
                ],
                &[],
            )
            .unwrap();
        let sign = |passphrase| Signer::read(&armored, passphrase, now()).unwrap().sign(PAYLOAD);
        assert!(sign(Some("right")).is_ok());
        assert!(matches!(sign(Some("wrong")), Err(Error::Passphrase(_))));
        assert!(matches!(sign(None), Err(Error::Passphrase(_))));
    }

    #[test]
    fn what_is_no_single_secret_key_is_refused() {
        let gpg = Gpg::new().unwrap();
        let one = gpg
            .generate(&[], "one <1@example.com>", "ed25519", "sign", "never")
            .unwrap();
        let two = gpg
            .generate(&[], "two <2@example.com>", "ed25519", "sign", "never")
            .unwrap();
        let both = gpg
            .gpg(
                &[
                    "--armor",
                    "--pinentry-mode",
                    "loopback",
                    "--passphrase",
                    "",
                    "--export-secret-keys",
                    &one,
                    &two,
                ],
                &[],
            )
            .unwrap();
        let refusal = |armored: &[u8]| Signer::read(armored, None, now()).unwrap_err();
        assert_eq!(refusal(&both), Error::Several(2));
        assert!(
            matches!(refusal(&gpg.export(&one).unwrap()), Error::Read(_)),
            "a public key"
        );
        assert!(matches!(refusal(b"nonsense"), Error::Read(_)));
        assert!(matches!(refusal(b""), Error::Read(_)));
    }
}
