//! Keys on the curve P-256 whose number begins with a zero byte.
//!
//! One key in 256 is such. ssh-keygen leaves the zero out, and `ssh-key` 0.7.0-rc.11 refuses numbers of fewer than 32
//! bytes. So what it refuses is read here a second time, with the zeros put back.

use russh::keys::PrivateKey;
use russh::keys::ssh_key::encoding::{Decode, Reader};
use russh::keys::ssh_key::private::{EcdsaKeypair, EcdsaPrivateKey, KeypairData};
use russh::keys::ssh_key::public::{EcdsaPublicKey, KeyData};
use russh::keys::ssh_key::{self, Algorithm, Cipher, EcdsaCurve, Kdf};
use zeroize::Zeroizing;

const MAGIC: &[u8] = b"openssh-key-v1\0";
const SCALAR: usize = 32;
const P256: Algorithm = Algorithm::Ecdsa {
    curve: EcdsaCurve::NistP256,
};

/// Reads a key without a passphrase, from the bytes of its block.
pub(super) fn plain(bytes: &[u8]) -> Option<PrivateKey> {
    let mut reader = bytes.strip_prefix(MAGIC)?;
    let cipher = Cipher::decode(&mut reader).ok()?;
    Kdf::decode(&mut reader).ok()?;
    if cipher != Cipher::None || u32::decode(&mut reader).ok()? != 1 {
        return None;
    }
    let public: Result<_, ssh_key::Error> = reader.read_prefixed(KeyData::decode);
    let section = Zeroizing::new(Vec::<u8>::decode(&mut reader).ok()?);
    pair(&section, &public.ok()?)
}

/// Reads a key with a passphrase, whose cost the caller has checked.
pub(super) fn encrypted(key: &PrivateKey, passphrase: &str) -> Option<PrivateKey> {
    if key.algorithm() != P256 || key.cipher().has_tag() {
        return None;
    }
    let (secret, iv) = key.kdf().derive_key_and_iv(key.cipher(), passphrase).ok()?;
    let mut section = Zeroizing::new(key.key_data().encrypted()?.to_vec());
    let cipher = key.cipher();
    cipher.decrypt(&secret, &iv, &mut section, None).ok()?;
    pair(&section, key.public_key().key_data())
}

/// Reads the part of the file that a passphrase encrypts: two equal numbers, then the pair of keys.
fn pair(section: &[u8], expected: &KeyData) -> Option<PrivateKey> {
    let mut reader = section;
    if u32::decode(&mut reader).ok()? != u32::decode(&mut reader).ok()?
        || Algorithm::decode(&mut reader).ok()? != P256
    {
        return None;
    }
    let public = EcdsaPublicKey::decode(&mut reader).ok()?;
    if KeyData::Ecdsa(public) != *expected {
        return None;
    }
    let EcdsaPublicKey::NistP256(public) = public else {
        return None;
    };
    let number = Zeroizing::new(Vec::<u8>::decode(&mut reader).ok()?);
    let mut scalar = Zeroizing::new([0; SCALAR]);
    let zeros = SCALAR.checked_sub(number.len())?;
    scalar[zeros..].copy_from_slice(&number);
    let private = EcdsaPrivateKey::from(*scalar);
    let pair = EcdsaKeypair::NistP256 { public, private };
    PrivateKey::new(KeypairData::Ecdsa(pair), "").ok()
}
