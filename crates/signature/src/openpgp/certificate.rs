//! A public key with what its owner said about it: names, subkeys, ends, revocations.
//!
//! In: the packets of one key, in their order. Out: a [`Certificate`] whose statements are all verified, and from it the
//! [`Candidate`]s that a signature may have been made with.

use jiff::Timestamp;
use pgp::packet::{Packet, PublicKey, PublicSubkey, RevocationCode, Signature, SignatureType, UserId};
use pgp::ser::Serialize;
use pgp::types::{KeyDetails, KeyId, KeyVersion, PublicParams, Tag, VerifyingKey};

use super::packets::{has_critical_notation, is_expired, is_over, is_supported};

const MIN_RSA_BITS: u16 = 2048;

/// Why a key cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Its owner does not use it to sign.
    #[error("the key may not be used to sign")]
    NotForSigning,
    /// It, its primary key, or its owner's name was revoked.
    #[error("the key is revoked")]
    Revoked,
    /// Its time is over, or that of its primary key, or has not begun.
    #[error("the key has expired or is not valid yet")]
    Expired,
    /// The self-signature has expired.
    #[error("the self-signature of the key has expired or is not valid yet")]
    SelfSignatureExpired,
    /// Something must be understood to trust it, and is not.
    #[error("the self-signature of the key has a critical notation that is not known")]
    CriticalNotation,
    /// It can be broken.
    #[error("RSA keys below 2048 bits are not safe")]
    Short,
}

/// A key that can be used.
pub(super) struct Certificate {
    primary: PublicKey,
    identities: Vec<Identity>,
    /// Of keys of version 6, which need no name.
    direct: Option<Signature>,
    revocations: Vec<Signature>,
    subkeys: Vec<Subkey>,
}

#[derive(Default)]
struct Identity {
    binding: Option<Signature>,
    revocations: Vec<Signature>,
}

struct Subkey {
    key: PublicSubkey,
    binding: Signature,
    revocations: Vec<Signature>,
}

/// A key with the id that a signature names.
pub(super) struct Candidate<'a> {
    certificate: &'a Certificate,
    subkey: Option<&'a Subkey>,
}

impl Certificate {
    /// The keys of this certificate with the id.
    pub(super) fn candidates(&self, id: KeyId) -> Vec<Candidate<'_>> {
        let candidate = |subkey| Candidate {
            certificate: self,
            subkey,
        };
        let primary = (self.primary.legacy_key_id() == id).then(|| candidate(None));
        let subkeys = self
            .subkeys
            .iter()
            .filter(|subkey| subkey.key.legacy_key_id() == id);
        primary
            .into_iter()
            .chain(subkeys.map(|subkey| candidate(Some(subkey))))
            .collect()
    }

    /// The identity that speaks for the key: the one that was revoked least, then the one called primary, then the newest.
    fn identity(&self) -> Option<&Identity> {
        self.identities.iter().reduce(|best, other| {
            let rank = |identity: &Identity| {
                let binding = identity.binding.as_ref();
                (
                    std::cmp::Reverse(identity.revocations.len()),
                    binding.is_some_and(Signature::is_primary),
                    binding.and_then(Signature::created),
                )
            };
            if rank(other) > rank(best) { other } else { best }
        })
    }

    /// Returns the owner's signature over the key as a whole.
    fn binding(&self) -> Option<&Signature> {
        match self.primary.version() {
            KeyVersion::V6 => self.direct.as_ref(),
            _ => self.identity()?.binding.as_ref(),
        }
    }
}

impl Candidate<'_> {
    /// The key that the signer is known by.
    pub(super) fn primary_id(&self) -> KeyId {
        self.certificate.primary.legacy_key_id()
    }

    /// Returns whether its owner uses it to sign.
    pub(super) fn is_for_signing(&self) -> bool {
        let binding = match self.subkey {
            Some(subkey) => Some(&subkey.binding),
            None => self.certificate.binding(),
        };
        binding.is_some_and(|binding| binding.key_flags().sign())
    }

    /// Returns whether it, or the key that vouches for it, can be broken.
    fn is_short(&self) -> bool {
        let subkey = self.subkey.map(|subkey| subkey.key.public_params());
        subkey.is_some_and(is_short) || is_short(self.certificate.primary.public_params())
    }

    /// Returns whether it made the signature over these bytes.
    pub(super) fn made(&self, signature: &Signature, payload: &[u8]) -> bool {
        match self.subkey {
            Some(subkey) => made(&subkey.key, signature, payload),
            None => made(&self.certificate.primary, signature, payload),
        }
    }

    /// Returns whether it can be used at this time.
    pub(super) fn holds(&self, now: Timestamp) -> Result<(), Unfit> {
        let certificate = self.certificate;
        let primary = certificate.binding().ok_or(Unfit::NotForSigning)?;
        if self.is_short() {
            return Err(Unfit::Short);
        }
        let mut bindings = vec![primary];
        if let Some(subkey) = self.subkey {
            bindings.push(&subkey.binding);
            bindings.extend(subkey.binding.embedded_signature());
        }
        if bindings.iter().any(|binding| has_critical_notation(binding)) {
            return Err(Unfit::CriticalNotation);
        }
        let of_identity = match certificate.primary.version() {
            KeyVersion::V6 => None,
            _ => certificate.identity(),
        };
        let revocations = [
            Some(&certificate.revocations),
            self.subkey.map(|subkey| &subkey.revocations),
            of_identity.map(|identity| &identity.revocations),
        ];
        if revocations
            .into_iter()
            .flatten()
            .any(|list| is_revoked(list, now))
        {
            return Err(Unfit::Revoked);
        }
        let subkey_is_over = self
            .subkey
            .is_some_and(|subkey| is_key_over(&subkey.key, &subkey.binding, now));
        if is_key_over(&certificate.primary, primary, now) || subkey_is_over {
            return Err(Unfit::Expired);
        }
        if bindings.iter().any(|binding| is_expired(binding, now)) {
            return Err(Unfit::SelfSignatureExpired);
        }
        Ok(())
    }
}

fn made(key: &impl VerifyingKey, signature: &Signature, payload: &[u8]) -> bool {
    let algorithm = signature.config().map(|config| config.pub_alg);
    algorithm == Some(key.algorithm()) && signature.verify(key, payload).is_ok()
}

fn is_key_over(key: &impl KeyDetails, binding: &Signature, now: Timestamp) -> bool {
    let lifetime = binding
        .key_expiration_time()
        .map_or(0, pgp::types::Duration::as_secs);
    is_over(key.created_at().as_secs(), lifetime, now)
}

/// A key that others have was never safe; any other revocation counts while it holds itself.
fn is_revoked(revocations: &[Signature], now: Timestamp) -> bool {
    revocations.iter().any(|revocation| {
        revocation.revocation_reason_code() == Some(&RevocationCode::KeyCompromised)
            || !is_expired(revocation, now)
    })
}

/// A key whose packets are being read.
pub(super) struct Reading {
    certificate: Certificate,
    directs: Vec<Signature>,
    /// Subject of the next signature.
    subject: Subject,
    problem: Option<&'static str>,
}

#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each certificate that is being read"
)]
enum Subject {
    Key,
    Identity(UserId, Identity),
    Subkey(PublicSubkey, Option<Signature>, Vec<Signature>),
    Nothing,
}

impl Reading {
    pub(super) fn new(primary: PublicKey) -> Self {
        Self {
            certificate: Certificate {
                primary,
                identities: Vec::new(),
                direct: None,
                revocations: Vec::new(),
                subkeys: Vec::new(),
            },
            directs: Vec::new(),
            subject: Subject::Key,
            problem: None,
        }
    }

    /// Takes the next packet of the key.
    pub(super) fn add(&mut self, packet: Packet) {
        match packet {
            Packet::Signature(signature) if is_supported(&signature) => {
                if let Err(problem) = self.add_signature(signature) {
                    self.problem = self.problem.or(Some(problem));
                }
            }
            Packet::UserId(id) => self.change_subject(Subject::Identity(id, Identity::default())),
            Packet::PublicSubkey(key) => self.change_subject(Subject::Subkey(key, None, Vec::new())),
            Packet::Signature(_) | Packet::Marker(_) | Packet::Trust(_) => {}
            _ => self.change_subject(Subject::Nothing),
        }
    }

    fn change_subject(&mut self, next: Subject) {
        match std::mem::replace(&mut self.subject, next) {
            Subject::Identity(_, identity)
                if identity.binding.is_some() || !identity.revocations.is_empty() =>
            {
                self.certificate.identities.push(identity);
            }
            Subject::Subkey(key, Some(binding), revocations) => self.certificate.subkeys.push(Subkey {
                key,
                binding,
                revocations,
            }),
            Subject::Subkey(_, None, _) => {
                self.problem = self.problem.or(Some("a subkey is not followed by a signature"));
            }
            Subject::Identity(..) | Subject::Key | Subject::Nothing => {}
        }
    }

    fn add_signature(&mut self, signature: Signature) -> Result<(), &'static str> {
        let primary = &self.certificate.primary;
        match &mut self.subject {
            Subject::Key | Subject::Nothing => match signature.typ() {
                Some(SignatureType::KeyRevocation) => self.certificate.revocations.push(signature),
                Some(SignatureType::Key) => self.directs.push(signature),
                _ => {}
            },
            Subject::Identity(id, identity) => {
                let typ = signature
                    .typ()
                    .filter(|_| signature.is_certification() || is_revocation(&signature));
                let typ = typ.ok_or("a name has a signature of the wrong type")?;
                if super::packets::issuer(&signature) != Some(primary.legacy_key_id()) {
                    return Ok(()); // what others say of a name does not matter
                }
                let verified = signature.verify_certification(primary, Tag::UserId, id);
                verified.map_err(|_| "the self-signature of a name is invalid")?;
                if typ == SignatureType::CertRevocation {
                    identity.revocations.push(signature);
                } else {
                    replace_older(&mut identity.binding, signature);
                }
            }
            Subject::Subkey(key, binding, revocations) => {
                let typ = signature.typ();
                if !matches!(
                    typ,
                    Some(SignatureType::SubkeyBinding | SignatureType::SubkeyRevocation)
                ) {
                    return Err("a subkey has a signature of the wrong type");
                }
                verify_subkey(primary, key, &signature)?;
                if typ == Some(SignatureType::SubkeyRevocation) {
                    revocations.push(signature);
                } else {
                    replace_older(binding, signature);
                }
            }
        }
        Ok(())
    }

    /// The key, when nothing is wrong with it.
    pub(super) fn finish(mut self) -> Result<Certificate, &'static str> {
        self.change_subject(Subject::Nothing);
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let mut certificate = self.certificate;
        let primary = &certificate.primary;
        if primary.version() == KeyVersion::V6 {
            let mut newest = None;
            for direct in self.directs {
                replace_older(&mut newest, direct);
            }
            let direct = newest.ok_or("there is no direct signature of the key")?;
            direct
                .verify_key(primary)
                .map_err(|_| "the direct signature of the key is invalid")?;
            certificate.direct = Some(direct);
        } else if certificate.identities.is_empty() {
            return Err("there is no name that the key has signed");
        }
        let primary = &certificate.primary;
        if certificate
            .revocations
            .iter()
            .any(|revocation| revocation.verify_key(primary).is_err())
        {
            return Err("the key was revoked by another key");
        }
        Ok(certificate)
    }
}

fn is_revocation(signature: &Signature) -> bool {
    signature.typ() == Some(SignatureType::CertRevocation)
}

fn replace_older(slot: &mut Option<Signature>, newer: Signature) {
    if slot.as_ref().is_none_or(|old| newer.created() > old.created()) {
        *slot = Some(newer);
    }
}

/// A subkey that signs must have signed its primary key too; else anybody could claim it.
fn verify_subkey(
    primary: &(impl VerifyingKey + Serialize),
    key: &PublicSubkey,
    signature: &Signature,
) -> Result<(), &'static str> {
    let invalid = "the signature of a subkey is invalid";
    signature
        .verify_subkey_binding(primary, key)
        .map_err(|_| invalid)?;
    if signature.key_flags().sign() {
        let back = signature.embedded_signature().filter(|back| is_supported(back));
        let back = back.ok_or("a signing subkey has not signed its primary key")?;
        back.verify_primary_key_binding(key, primary)
            .map_err(|_| invalid)?;
    }
    Ok(())
}

/// Returns whether it is an RSA key that can be broken.
fn is_short(parameters: &PublicParams) -> bool {
    let PublicParams::RSA(key) = parameters else {
        return false;
    };
    // The modulus comes first, behind the number of its bits.
    let bits = key.to_bytes().ok().and_then(|bytes| bytes.first_chunk().copied());
    bits.is_none_or(|bits| u16::from_be_bytes(bits) < MIN_RSA_BITS)
}
