//! Keys of X25519 together with ML-KEM-768: recipients `age1pq1…`, which quantum computers do not open.
//!
//! HPKE (RFC 9180) in its base mode with the key encapsulation MLKEM768-X25519 (X-Wing), HKDF with SHA-256 and
//! ChaCha20-Poly1305.

use aws_lc_rs::digest::{SHA3_256, digest};
use aws_lc_rs::hmac;
use ml_kem::kem::{Decapsulate as _, Encapsulate as _};
use ml_kem::ml_kem_768::{DecapsulationKey, EncapsulationKey};
use shake::Shake256;
use shake::digest::{ExtendableOutput as _, Update as _, XofReader as _};
use zeroize::Zeroizing;

use super::file::{FILE_KEY, Stanza, decode, encode, seal_with, unseal};
use super::unwrapped::Unwrapped;
use super::{Problem, x25519};

const KIND: &str = "mlkem768x25519";
const INFO: &[u8] = b"age-encryption.org/mlkem768x25519";
/// X-Wing draws itself.
const LABEL: &[u8] = br"\.//^\";
/// HPKE, then key encapsulation, key derivation and encryption by their numbers.
const SUITE: &[u8] = b"HPKE\x64\x7a\x00\x01\x00\x03";
const CIPHERTEXT: usize = 1088;
const POINT: usize = 32;
const TAG: usize = 16;

pub(super) struct Identity {
    lattice: DecapsulationKey,
    curve: x25519::Identity,
}

impl Identity {
    /// Both keys come from one seed.
    pub(super) fn new(seed: &[u8; 32]) -> Result<Self, Problem> {
        let mut hash = Shake256::default();
        hash.update(seed);
        let mut expanded = Zeroizing::new([0; 96]);
        hash.finalize_xof().read(&mut expanded[..]);
        let mut lattice = ml_kem::Seed::default();
        lattice.copy_from_slice(&expanded[..64]);
        let mut curve = Zeroizing::new([0; 32]);
        curve.copy_from_slice(&expanded[64..]);
        Ok(Self {
            lattice: DecapsulationKey::from_seed(lattice),
            curve: x25519::Identity::new(&curve)?,
        })
    }

    pub(super) fn unwrap(&self, stanza: &Stanza) -> Result<Unwrapped, Problem> {
        if stanza.kind != KIND {
            return Ok(Unwrapped::Other);
        }
        const INVALID: Problem = "invalid mlkem768x25519 recipient block";
        let [encapsulated] = &stanza.arguments[..] else {
            return Err(INVALID);
        };
        let encapsulated = decode(encapsulated).ok_or(INVALID)?;
        if stanza.body.len() != FILE_KEY + TAG || encapsulated.len() != CIPHERTEXT + POINT {
            return Err(INVALID);
        }
        let (ciphertext, point) = encapsulated.split_at(CIPHERTEXT);
        let shared = self.shared(ciphertext, point).ok_or(INVALID)?;
        let (key, nonce) = schedule(&shared);
        Ok(unseal(&key, nonce, &stanza.body).map_or(Unwrapped::Other, Unwrapped::FileKey))
    }

    fn shared(&self, ciphertext: &[u8], point: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let of_lattice = self.lattice.decapsulate_slice(ciphertext).ok()?;
        let of_curve = self.curve.agree(point)?;
        Some(combined(&of_lattice[..], &of_curve, point, self.curve.public()))
    }
}

/// X-Wing's secret out of those of both keys, with the point that was sent and the recipient's.
fn combined(of_lattice: &[u8], of_curve: &[u8], sent: &[u8], theirs: &[u8]) -> Zeroizing<Vec<u8>> {
    let all = Zeroizing::new([of_lattice, of_curve, sent, theirs, LABEL].concat());
    Zeroizing::new(digest(&SHA3_256, &all).as_ref().to_vec())
}

/// The public keys.
#[derive(Clone)]
pub(super) struct Recipient {
    lattice: EncapsulationKey,
    curve: [u8; POINT],
}

impl Recipient {
    pub(super) fn new(bytes: &[u8]) -> Result<Self, Problem> {
        const MALFORMED: Problem = "it does not have the bytes of a key of ML-KEM-768 and of one of X25519";
        let at = bytes.len().checked_sub(POINT).ok_or(MALFORMED)?;
        let (lattice, curve) = bytes.split_at(at);
        let lattice = lattice.try_into().map_err(|_| MALFORMED)?;
        let mut point = [0; POINT];
        point.copy_from_slice(curve);
        Ok(Self {
            lattice: EncapsulationKey::new(lattice).map_err(|_| MALFORMED)?,
            curve: point,
        })
    }

    pub(super) fn wrap(&self, file_key: &[u8; FILE_KEY]) -> Result<Stanza, Problem> {
        let (ciphertext, of_lattice) = self.lattice.encapsulate();
        let ours = x25519::Identity::generate()?;
        let of_curve = ours
            .agree(&self.curve)
            .ok_or("the recipient's key is of low order")?;
        let shared = combined(&of_lattice[..], &of_curve, ours.public(), &self.curve);
        let (key, nonce) = schedule(&shared);
        Ok(Stanza {
            kind: KIND.to_owned(),
            arguments: vec![encode(&[&ciphertext[..], ours.public()].concat())],
            body: seal_with(&key, nonce, file_key)?,
        })
    }
}

/// The key and the first nonce of HPKE.
fn schedule(shared: &[u8]) -> (Zeroizing<[u8; 32]>, [u8; 12]) {
    let nothing = extract(b"", b"psk_id_hash", b"");
    let info = extract(b"", b"info_hash", INFO);
    let context = [&[0][..], &nothing[..], &info[..]].concat();
    let secret = extract(shared, b"secret", b"");
    let mut nonce = [0; 12];
    nonce.copy_from_slice(&expand(&secret, b"base_nonce", &context, 12)[..12]);
    (expand(&secret, b"key", &context, 32), nonce)
}

fn extract(salt: &[u8], label: &[u8], input: &[u8]) -> Zeroizing<[u8; 32]> {
    mac(salt, &[b"HPKE-v1", SUITE, label, input])
}

/// The first block of HKDF's output, which is all that is needed.
fn expand(secret: &[u8; 32], label: &[u8], info: &[u8], length: u8) -> Zeroizing<[u8; 32]> {
    mac(secret, &[&[0, length], b"HPKE-v1", SUITE, label, info, &[1]])
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let mut context = hmac::Context::with_key(&key);
    for part in parts {
        context.update(part);
    }
    let mut output = Zeroizing::new([0; 32]);
    output.copy_from_slice(context.sign().as_ref());
    output
}
