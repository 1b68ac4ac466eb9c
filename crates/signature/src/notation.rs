//! Signatures of OCI artifacts as notation makes them (Notary Project).
//!
//! In: an envelope (JWS or COSE), a [`TrustPolicy`] with the statement that applies, certificates that are trusted, the
//! artifact's descriptor and the time. Out: a [`Verdict`], or why the signature is not good. The checks, their order and
//! which of them a level enforces are those of notation-go: integrity, authenticity (a certificate of the chain is
//! trusted, and the signer is one of the trusted identities), expiry, authentic time, revocation.
//!
//! Not here: time stamps by an authority (a policy that demands one is answered by a failed check), plugins, and asking
//! for revocation over a network: a chain that names a place to ask has an unknown status, which only a level that
//! does not enforce revocation lets pass.

mod cbor;
mod certificate;
mod distinguished_name;
mod envelope;
mod error;
mod policy;

pub use policy::{Level, PolicyError, Statement, TrustPolicy};

use jiff::Timestamp;
use serde::Deserialize;

use self::certificate::Certificate;
use self::envelope::{Envelope, Scheme};
use self::policy::{Action, Check};

pub use error::Error;

/// The only kind of payload.
const PAYLOAD: &str = "application/vnd.cncf.notary.payload.v1+json";

/// The certificate in a file: the first of a PEM, or what is there as it is, which should be DER then.
#[must_use]
pub fn certificate(file: &[u8]) -> Vec<u8> {
    match x509_parser::pem::parse_x509_pem(file) {
        Ok((_, pem)) => pem.contents,
        Err(_) => file.to_vec(),
    }
}

/// Artifact to verify.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Artifact {
    /// Media type of its manifest.
    pub media_type: String,
    /// Digest of its manifest, `sha256:…`.
    pub digest: String,
    /// Length of its manifest.
    pub size: u64,
}

/// Verdict of a verification that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Someone trusted signed it.
    Trusted,
    /// Someone signed it whom the policy does not trust, and it only wants that logged.
    Untrusted,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    target_artifact: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    #[serde(default)]
    media_type: String,
    #[serde(default)]
    digest: String,
    #[serde(default)]
    size: u64,
}

/// Verifies an envelope against the statement of a trust policy.
///
/// `trusted` are certificates in DER. As in Flux, all of them are in each trust store that the statement names.
///
/// # Errors
/// When a check fails that the statement's level enforces.
pub fn verify(
    media_type: &str,
    envelope: &[u8],
    statement: &Statement,
    trusted: &[Vec<u8>],
    artifact: &Artifact,
    now: Timestamp,
) -> Result<Verdict, Error> {
    let envelope = Envelope::open(media_type, envelope)?;
    if envelope.payload_type != PAYLOAD {
        let kind = &envelope.payload_type;
        return Err(Error::Integrity(format!(
            "payload content type \"{kind}\" not supported"
        )));
    }
    if let Some(plugin) = &envelope.plugin {
        return Err(Error::Plugin(plugin.clone()));
    }
    let level = statement.level();
    let authenticity = authenticity(&envelope, statement, trusted);
    let verdict = match &authenticity {
        Ok(()) => Verdict::Trusted,
        Err(_) => Verdict::Untrusted,
    };
    enforce(level, Check::Authenticity, authenticity)?;
    enforce(level, Check::Expiry, expiry(&envelope, now))?;
    enforce(level, Check::AuthenticTimestamp, time(&envelope, statement, now))?;
    if level.action(Check::Revocation) != Action::Skip {
        enforce(level, Check::Revocation, revocation(&envelope.chain))?;
    }
    check_descriptor(&envelope.payload, artifact)?;
    Ok(verdict)
}

fn enforce(level: &Level, check: Check, result: Result<(), Error>) -> Result<(), Error> {
    match level.action(check) {
        Action::Enforce => result,
        Action::Log | Action::Skip => Ok(()),
    }
}

/// A certificate of the chain is trusted, and its owner is who may sign.
fn authenticity(envelope: &Envelope, statement: &Statement, trusted: &[Vec<u8>]) -> Result<(), Error> {
    let store = match envelope.scheme {
        Scheme::X509 => "ca",
        Scheme::SigningAuthority => "signingAuthority",
    };
    if !statement.has_store(store) || trusted.is_empty() {
        let problem = "no trusted certificates are found to verify authenticity".to_owned();
        return Err(Error::Authenticity(problem));
    }
    let is_trusted = |certificate: &Certificate| trusted.contains(&certificate.der);
    if !envelope.chain.iter().any(is_trusted) {
        return Err(Error::Untrusted);
    }
    statement
        .check_identity(envelope.leaf())
        .map_err(Error::Authenticity)
}

fn expiry(envelope: &Envelope, now: Timestamp) -> Result<(), Error> {
    match envelope.expiry {
        Some(expiry) if now >= expiry => Err(Error::Expired(expiry.to_string())),
        _ => Ok(()),
    }
}

/// The certificates were valid when it was signed, where an authority vouches for that time; else they must be now.
fn time(envelope: &Envelope, statement: &Statement, now: Timestamp) -> Result<(), Error> {
    if envelope.scheme == Scheme::SigningAuthority {
        let signed = envelope.signing_time;
        return all_valid(&envelope.chain, |certificate| {
            (!certificate.is_valid_at(signed)).then(|| {
                format!(
                    "certificate \"{}\" was not valid when the digital signature was produced at \"{signed}\"",
                    certificate.subject
                )
            })
        });
    }
    let expired = envelope
        .chain
        .iter()
        .any(|certificate| now > certificate.not_after);
    if statement.has_store("tsa") && (expired || !statement.timestamps_only_after_expiry()) {
        let problem =
            "time stamps by an authority (trust store of type tsa) are not supported by this controller yet";
        return Err(Error::Time(problem.to_owned()));
    }
    all_valid(&envelope.chain, |certificate| {
        let subject = &certificate.subject;
        if now < certificate.not_before {
            return Some(format!(
                "verification time is before certificate \"{subject}\" validity period, it will be valid from \"{}\"",
                certificate.not_before
            ));
        }
        (now > certificate.not_after).then(|| {
            format!(
                "verification time is after certificate \"{subject}\" validity period, it was expired at \"{}\"",
                certificate.not_after
            )
        })
    })
}

fn all_valid(chain: &[Certificate], problem: impl Fn(&Certificate) -> Option<String>) -> Result<(), Error> {
    match chain.iter().find_map(problem) {
        Some(problem) => Err(Error::Time(problem)),
        None => Ok(()),
    }
}

/// Certificates that name no place to ask cannot be revoked; of the others no one knows without a network.
fn revocation(chain: &[Certificate]) -> Result<(), Error> {
    let (_root, issued) = chain.split_last().unwrap_or((&chain[0], &[]));
    match issued.iter().find(|certificate| certificate.can_be_revoked) {
        Some(certificate) => Err(Error::Revocation(certificate.subject.clone())),
        None => Ok(()),
    }
}

fn check_descriptor(payload: &[u8], artifact: &Artifact) -> Result<(), Error> {
    let payload: Payload = serde_json::from_slice(payload)
        .map_err(|_| Error::Integrity("failed to parse the payload of the signature".to_owned()))?;
    let Target {
        media_type,
        digest,
        size,
    } = payload.target_artifact;
    let found = Artifact {
        media_type,
        digest,
        size,
    };
    if found == *artifact {
        Ok(())
    } else {
        Err(Error::Descriptor)
    }
}

#[cfg(test)]
mod tests;
