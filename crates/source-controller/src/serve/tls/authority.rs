//! Our own certificate authority, as data: what to keep, which key signs, and when that changes. Pure but for the making of keys.
//!
//! There are one or two authorities at a time. A second one is made while the first has a third of its life left; for a
//! while it is only announced, so that clients learn to trust it before the first certificate is signed by it.

use std::{fmt, time::Duration};

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose,
};
use rustls::{
    pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer},
    sign::CertifiedKey,
};
use serde::{Deserialize, Serialize};

use super::certificate;

const DAY: SignedDuration = SignedDuration::from_hours(24);
const AUTHORITY_LIFE: SignedDuration = SignedDuration::from_hours(365 * 24);
/// Remaining lifetime at which the next authority is made.
const RENEWED_BEFORE: SignedDuration = SignedDuration::from_hours(120 * 24);
const SERVING_LIFE: SignedDuration = DAY;
/// Remaining lifetime at which the next serving certificate is issued.
const REISSUED_BEFORE: SignedDuration = SignedDuration::from_hours(8);
/// Clocks of other machines may be behind ours.
const SKEW: SignedDuration = SignedDuration::from_mins(5);
/// How long after its begin an authority signs: that is an hour after it was announced, longer than a kubelet takes to show
/// a changed ConfigMap.
const SIGNS_AFTER: SignedDuration = SignedDuration::from_mins(65);
/// More is no state of ours.
const MOST_AUTHORITIES: usize = 8;

/// Why there is no usable authority.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The stored data is not what was written.
    #[error("failed to read the kept authorities")]
    Parse(#[source] serde_json::Error),
    /// They are too many, or none.
    #[error("failed to read the kept authorities: there are {0} of them")]
    Number(usize),
    /// Keys or certificates cannot be made.
    #[error("failed to make a certificate")]
    Make(#[from] rcgen::Error),
    /// The created authority cannot be used.
    #[error(transparent)]
    Use(#[from] certificate::Error),
}

/// The authorities, newest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Authorities(Vec<Authority>);

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Authority {
    /// Its subject.
    name: String,
    not_before: Timestamp,
    not_after: Timestamp,
    /// PEM.
    certificate: String,
    /// PEM.
    key: String,
}

/// A serving certificate.
#[derive(Debug)]
pub struct Issued {
    /// The certificate with its key.
    pub certificate: CertifiedKey,
    /// When the next one is due.
    pub renew_at: Timestamp,
}

impl Authorities {
    /// Reads what [`Self::to_json`] wrote.
    ///
    /// # Errors
    /// When it is something else.
    pub fn parse(json: &[u8]) -> Result<Self, Error> {
        let parsed: Self = serde_json::from_slice(json).map_err(Error::Parse)?;
        match parsed.0.len() {
            1..=MOST_AUTHORITIES => Ok(parsed),
            number => Err(Error::Number(number)),
        }
    }

    /// Serializes the authority, keys included.
    ///
    /// # Errors
    /// Never, as far as anybody knows.
    pub fn to_json(&self) -> Result<Vec<u8>, Error> {
        serde_json::to_vec(self).map_err(Error::Parse)
    }

    /// The certificates, for clients.
    pub fn bundle(&self) -> String {
        self.0
            .iter()
            .map(|authority| authority.certificate.as_str())
            .collect()
    }

    /// Returns the authority to store instead; None if there is nothing to change.
    ///
    /// # Errors
    /// When no key can be made.
    pub fn renewed(&self, now: Timestamp) -> Result<Option<Self>, Error> {
        let mut authorities: Vec<Authority> =
            self.0.iter().filter(|one| now < one.not_after).cloned().collect();
        let newest = authorities.first();
        if newest.is_none_or(|newest| earlier(newest.not_after, RENEWED_BEFORE) <= now) {
            authorities.insert(0, Authority::make(now)?);
        }
        authorities.truncate(MOST_AUTHORITIES);
        let renewed = Self(authorities);
        Ok((renewed != *self).then_some(renewed))
    }

    /// The one that signs: the newest that has been announced long enough, or else the oldest.
    fn signer(&self, now: Timestamp) -> Option<&Authority> {
        let announced = self.0.iter().find(|one| one.signs_from() <= now);
        announced.or(self.0.last())
    }

    /// Issues a certificate for names and addresses.
    ///
    /// # Errors
    /// When there is no authority, or its key cannot be used.
    pub fn issue(&self, names: &[String], now: Timestamp) -> Result<Issued, Error> {
        let signer = self.signer(now).ok_or(Error::Number(0))?;
        let issuer = Issuer::new(signer.parameters(), KeyPair::from_pem(&signer.key)?);
        let not_after = later(now, SERVING_LIFE).min(signer.not_after);
        let mut parameters = CertificateParams::new(names)?;
        parameters.distinguished_name = subject("windlass artifact service");
        set_validity(&mut parameters, earlier(now, SKEW), not_after);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        parameters.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = parameters.signed_by(&key, &issuer)?;
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        // A newly announced authority takes over when it may, not when the certificate is old.
        let newer = self.0.iter().take_while(|authority| *authority != signer);
        let next_signer = newer.map(Authority::signs_from).min();
        let reissue = earlier(not_after, REISSUED_BEFORE);
        Ok(Issued {
            certificate: certificate::certified(vec![certificate.der().clone()], private)?,
            renew_at: next_signer.map_or(reissue, |from| from.min(reissue)),
        })
    }
}

impl Authority {
    fn make(now: Timestamp) -> Result<Self, Error> {
        let mut authority = Self {
            // Unique, so that no two authorities have one subject.
            name: format!("windlass artifacts {}", now.as_microsecond()),
            not_before: earlier(now, SKEW),
            not_after: later(now, AUTHORITY_LIFE),
            certificate: String::new(),
            key: String::new(),
        };
        let key = KeyPair::generate()?;
        authority.certificate = authority.parameters().self_signed(&key)?.pem();
        authority.key = key.serialize_pem();
        Ok(authority)
    }

    fn parameters(&self) -> CertificateParams {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = subject(&self.name);
        set_validity(&mut parameters, self.not_before, self.not_after);
        parameters.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        parameters
    }

    fn signs_from(&self) -> Timestamp {
        later(self.not_before, SIGNS_AFTER)
    }
}

fn subject(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

/// In whole seconds, as certificates have it.
fn set_validity(parameters: &mut CertificateParams, not_before: Timestamp, not_after: Timestamp) {
    let since_epoch =
        |time: Timestamp| Duration::from_secs(u64::try_from(time.as_second()).unwrap_or_default());
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + since_epoch(not_before);
    parameters.not_after = epoch + since_epoch(not_after);
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn earlier(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_sub(by).unwrap_or(Timestamp::MIN)
}

/// Without the key.
impl fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Authority")
            .field("name", &self.name)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
