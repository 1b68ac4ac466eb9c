//! OpenPGP signatures, as gpg and Git make them.
//!
//! In: an armored detached signature, the signed bytes, key rings, the time. Out: the id of the key that the signer is
//! known by, or why the signature does not count. rPGP reads packets and does the arithmetic; what a key may do, and
//! until when, is decided here, as ProtonMail/go-crypto decides it, which Flux uses:
//!
//! - a key ring is read as far as it can be read; a key with a broken part is left out as a whole;
//! - the key must be allowed to sign (key flags of its newest self-signature), a subkey must have signed its primary key too;
//! - everything must hold at the time of the verification, not at the time that the signature claims: an expired or
//!   revoked key verifies nothing, not even what it signed before.
//!
//! Stricter than go-crypto: signatures with SHA-1 and RSA keys below 2048 bits are refused. SHA-1 is accepted in what an
//! owner said about the own key, which no one else can choose the words of. The curves of Brainpool and secp256k1 are not supported.

mod certificate;
mod packets;
pub mod sign;

use jiff::Timestamp;
use pgp::packet::{Signature, SignatureType};
use pgp::types::KeyId;

use self::certificate::{Candidate, Certificate, Unfit};

/// Larger signatures are not looked at.
const MAX_SIGNATURE: usize = 64 << 10;
/// Larger key rings are not read.
const MAX_KEYRING: usize = 8 << 20;

/// Why a signature does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is nothing to verify.
    #[error("unable to verify payload: {0} is empty")]
    Empty(&'static str),
    /// No key ring can be read.
    #[error("unable to read armored key ring: {0}")]
    ReadKeyring(String),
    /// The signature cannot be read.
    #[error("{PREFIX}: the signature cannot be read: {0}")]
    ReadSignature(String),
    /// The key that signed is in none of the key rings.
    #[error("{PREFIX}: no matching key: the signature was made with key {key_id}")]
    UnknownKey {
        /// As the signature says.
        key_id: String,
    },
    /// The key is known, but it, or the signature, does not count.
    #[error("{PREFIX}: key {key_id}: {reason}")]
    Refused {
        /// The key that signed.
        key_id: String,
        /// Why not.
        reason: Refusal,
    },
}

const PREFIX: &str = "unable to verify payload with any of the given key rings";

/// Why a signature by a known key does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The bytes are others, or were signed with another key of the same id.
    #[error("the signature is not one over this content")]
    Mismatch,
    /// The hash is not safe any more.
    #[error("the signature uses SHA-1 or MD5, which can be forged")]
    WeakHash,
    /// Something must be understood to trust it, and is not.
    #[error("the signature has a critical notation that is not known")]
    CriticalNotation,
    /// The signature has an end, or a beginning in the future.
    #[error("the signature has expired or is not valid yet")]
    SignatureExpired,
    /// The key cannot be used so.
    #[error("{0}")]
    Key(#[from] Unfit),
}

/// Verifies an armored detached signature over the payload. Answers the id of the signer's primary key, as gpg prints it.
///
/// # Errors
/// When the signature was not made over these bytes with a key of the rings that may sign now.
pub fn verify(signature: &[u8], payload: &[u8], keyrings: &[&[u8]], now: Timestamp) -> Result<String, Error> {
    if signature.trim_ascii().is_empty() {
        return Err(Error::Empty("signature"));
    }
    if payload.is_empty() {
        return Err(Error::Empty("payload"));
    }
    let certificates = read_keyrings(keyrings)?;
    if signature.len() > MAX_SIGNATURE {
        return Err(Error::ReadSignature("it is too large".to_owned()));
    }
    let signatures = packets::read_signatures(signature).map_err(Error::ReadSignature)?;
    let mut refused = None;
    for signature in signatures {
        let issuer = packets::issuer(&signature)
            .ok_or_else(|| Error::ReadSignature("it does not say who made it".to_owned()))?;
        let of_certificate = |certificate| Certificate::candidates(certificate, issuer);
        let candidates: Vec<_> = certificates.iter().flat_map(of_certificate).collect();
        let is_known = !candidates.is_empty();
        let signing: Vec<_> = candidates.into_iter().filter(Candidate::is_for_signing).collect();
        // The first signature of a key that is there to sign decides, as in go-crypto.
        if !signing.is_empty() {
            return decide(&signature, issuer, &signing, payload, now);
        }
        let key_id = shown(issuer);
        let reason = Refusal::Key(Unfit::NotForSigning);
        refused = refused.or(Some(if is_known {
            Error::Refused { key_id, reason }
        } else {
            Error::UnknownKey { key_id }
        }));
    }
    Err(refused.unwrap_or_else(|| {
        Error::ReadSignature("there is no signature of a supported kind in it".to_owned())
    }))
}

/// All keys of all rings. An error only when there is no ring that can be read.
fn read_keyrings(keyrings: &[&[u8]]) -> Result<Vec<Certificate>, Error> {
    let mut certificates = Vec::new();
    let mut unreadable = None;
    let mut has_ring = false;
    for keyring in keyrings {
        let read = if keyring.len() > MAX_KEYRING {
            Err("it is too large".to_owned())
        } else {
            packets::read_keyring(keyring)
        };
        match read {
            Ok(read) => {
                has_ring = true;
                certificates.extend(read);
            }
            Err(problem) => unreadable = unreadable.or(Some(problem)),
        }
    }
    match unreadable {
        Some(problem) if !has_ring => Err(Error::ReadKeyring(problem)),
        _ => Ok(certificates),
    }
}

fn decide(
    signature: &Signature,
    issuer: KeyId,
    candidates: &[Candidate<'_>],
    payload: &[u8],
    now: Timestamp,
) -> Result<String, Error> {
    let mut refusal = None;
    for candidate in candidates {
        match check(signature, candidate, payload, now) {
            Ok(()) => return Ok(shown(candidate.primary_id())),
            Err(reason) => refusal = refusal.or(Some(reason)),
        }
    }
    Err(Error::Refused {
        key_id: shown(issuer),
        reason: refusal.unwrap_or(Refusal::Mismatch),
    })
}

fn check(
    signature: &Signature,
    candidate: &Candidate<'_>,
    payload: &[u8],
    now: Timestamp,
) -> Result<(), Refusal> {
    if !packets::has_strong_hash(signature) {
        return Err(Refusal::WeakHash);
    }
    let is_data = matches!(signature.typ(), Some(SignatureType::Binary | SignatureType::Text));
    if !is_data || !candidate.made(signature, payload) {
        return Err(Refusal::Mismatch);
    }
    if packets::has_critical_notation(signature) {
        return Err(Refusal::CriticalNotation);
    }
    candidate.holds(now)?;
    if packets::is_expired(signature, now) {
        return Err(Refusal::SignatureExpired);
    }
    Ok(())
}

fn shown(id: KeyId) -> String {
    id.to_string().to_uppercase()
}

#[cfg(test)]
mod tests;
