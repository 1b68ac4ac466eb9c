//! Signatures of container images as cosign makes them.
//!
//! In: a signature in one of its two forms, the digest of the manifest that it should be about, and whom to trust (an
//! [`Authority`]). Out: since when it is known to exist ([`Verified`]), or why it is not good. The forms are the *simple* one of cosign 1 and 2 (a payload that
//! names the digest, and annotations: [`SimpleSignature`]) and the *bundle* of cosign 3 (JSON around an in-toto
//! statement). Attestations of our own are made with a [`SigningKey`]. Where they are found is the caller's matter; nothing is asked over a network, not even the transparency
//! log: what it promised must come with the signature. Attestations ([`Attestation`]) have two forms as well.
//!
//! As in Flux, a signature made with a key needs no entry in the transparency log. Unlike there, the digest in the
//! payload of a simple signature must be the artifact's, so that the signature of another image is of no use.

mod attestation;
mod bundle;
mod envelope;
mod error;
mod key;
mod keyless;
mod signing;
mod simple;
mod witness;

pub use attestation::{Attestation, Attested};
pub use key::{KeyError, PublicKey};
pub use keyless::{Identity, TrustedRoot};
pub use signing::{SigningError, SigningKey, attested, simple_payload};
pub use simple::SimpleSignature;
pub use witness::Witness;

pub use error::Error;

use jiff::Timestamp;

/// A signature that is good.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// When the transparency log recorded it, or a time stamp service saw it; of several times the last. None for a
    /// signature made with a key, whose entry in the log is not looked at.
    pub recorded_at: Option<Timestamp>,
}

/// Authority whose signatures are accepted.
#[derive(Debug, Clone, Copy)]
pub enum Authority<'a> {
    /// The owner of this key's.
    Key(&'a PublicKey),
    /// Those made with a short-lived certificate, entered into a log of this installation, by one of these. By anybody
    /// at all when there are none.
    Keyless {
        /// The certificate authorities and logs.
        root: &'a TrustedRoot,
        /// Accepted signers.
        identities: &'a [Identity],
    },
}

impl Authority<'_> {
    /// Verifies a signature in the form of cosign 1 and 2. The digest is written `sha256:…`.
    ///
    /// # Errors
    /// When the signature is none, is not about this digest, or was not made by this authority.
    pub fn verify_simple(&self, signature: &SimpleSignature, digest: &str) -> Result<Verified, Error> {
        simple::check_claim(&signature.payload, digest)?;
        match self {
            Self::Key(key) => simple::verify_with_key(signature, key).map(|()| Verified::default()),
            Self::Keyless { root, identities } => simple::verify_keyless(signature, root, identities),
        }
    }

    /// Verifies a bundle (its JSON). The digest is written `sha256:…`.
    ///
    /// # Errors
    /// When the bundle is none, is not about this digest, or was not made by this authority.
    pub fn verify_bundle(&self, json: &[u8], digest: &str) -> Result<Verified, Error> {
        let (statement, verified) = match self {
            Self::Key(key) => (bundle::open_with_key(json, digest, key)?, Verified::default()),
            Self::Keyless { root, identities } => bundle::open_keyless(json, digest, root, identities)?,
        };
        statement.check_is_signature()?;
        Ok(verified)
    }

    /// Verifies an attestation of this type (such as `https://slsa.dev/provenance/v1`). The digest is written `sha256:…`.
    ///
    /// # Errors
    /// When the attestation is none, is not about this digest, is of another type, or was not made by this authority.
    pub fn verify_attestation(
        &self,
        attestation: &Attestation,
        digest: &str,
        predicate_type: &str,
    ) -> Result<Attested, Error> {
        match self {
            Self::Key(key) => attestation.verify_with_key(digest, predicate_type, key),
            Self::Keyless { root, identities } => {
                attestation.verify_keyless(digest, predicate_type, root, identities)
            }
        }
    }
}

/// Returns whether this is a bundle of a kind that is looked at at all.
#[must_use]
pub fn is_bundle(json: &[u8]) -> bool {
    bundle::is_supported(json)
}

/// Returns whether a bundle holds an attestation instead of a signature, by its own words: nothing is verified.
pub fn is_attestation(json: &[u8]) -> bool {
    bundle::is_attestation(json)
}

#[cfg(test)]
mod tests;
