//! Keys of X25519.

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use zeroize::Zeroizing;

use super::Problem;
use super::file::{FILE_KEY, Stanza, decode, derive, encode, random, seal_with, unseal};
use super::unwrapped::Unwrapped;

const KIND: &str = "X25519";
const PURPOSE: &[u8] = b"age-encryption.org/v1/X25519";
const TAG: usize = 16;

pub(super) struct Identity {
    secret: PrivateKey,
    public: Vec<u8>,
}

impl Identity {
    /// A new key, for one file.
    pub(super) fn generate() -> Result<Self, Problem> {
        let mut secret = Zeroizing::new([0; 32]);
        random(&mut secret[..])?;
        Self::new(&secret)
    }

    pub(super) fn new(secret: &[u8; 32]) -> Result<Self, Problem> {
        let secret = PrivateKey::from_private_key(&X25519, secret).map_err(|_| "malformed secret key")?;
        let public = secret.compute_public_key().map_err(|_| "malformed secret key")?;
        Ok(Self {
            public: public.as_ref().to_vec(),
            secret,
        })
    }

    pub(super) fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret that both sides have. Fails for a public key of low order.
    pub(super) fn agree(&self, theirs: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let theirs = UnparsedPublicKey::new(&X25519, theirs);
        agreement::agree(&self.secret, theirs, (), |shared| {
            Ok(Zeroizing::new(shared.to_vec()))
        })
        .ok()
    }

    pub(super) fn unwrap(&self, stanza: &Stanza) -> Result<Unwrapped, Problem> {
        if stanza.kind != KIND {
            return Ok(Unwrapped::Other);
        }
        const INVALID: Problem = "invalid X25519 recipient block";
        let [theirs] = &stanza.arguments[..] else {
            return Err(INVALID);
        };
        let theirs = decode(theirs).filter(|key| key.len() == 32).ok_or(INVALID)?;
        let shared = self.agree(&theirs).ok_or("invalid X25519 recipient")?;
        let key = derive(&shared, &[&theirs[..], &self.public].concat(), PURPOSE)?;
        if stanza.body.len() != FILE_KEY + TAG {
            return Err("invalid X25519 recipient block: incorrect file key size");
        }
        Ok(unseal(&key, [0; 12], &stanza.body).map_or(Unwrapped::Other, Unwrapped::FileKey))
    }
}

/// The part of a recipient with this public key.
pub(super) fn wrap(theirs: &[u8; 32], file_key: &[u8; FILE_KEY]) -> Result<Stanza, Problem> {
    let ours = Identity::generate()?;
    let shared = ours.agree(theirs).ok_or("the recipient's key is of low order")?;
    let key = derive(&shared, &[ours.public(), &theirs[..]].concat(), PURPOSE)?;
    Ok(Stanza {
        kind: KIND.to_owned(),
        arguments: vec![encode(ours.public())],
        body: seal_with(&key, [0; 12], file_key)?,
    })
}
